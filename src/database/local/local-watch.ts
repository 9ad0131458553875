/**
 * The changes of tables, from the log (docs/decisions/0034). A watch holds one batch of the log, decodes a few
 * changes ahead, and reads the next batch when these are taken: a reader that is slow holds up nobody,
 * it only falls behind in the log. It looks at the durable epoch, at longer and longer intervals
 * while that does not move; it holds no lock, no snapshot and no thread of Node's pool.
 */

import { CHANGE_DELETE, CHANGE_INSERT, CHANGE_UPDATE } from "../../engine/changes.ts";
import { FAILED } from "../../engine/durability.ts";
import type { Executor } from "../../engine/executor.ts";
import { epochOf } from "../../engine/tid.ts";
import { NodeFiles } from "../../folder/node-files.ts";
import { BatchChanges } from "../../log/feed/batch-changes.ts";
import { gap, LogFollower } from "../../log/feed/log-follower.ts";
import {
  endOfEpoch,
  epochIn,
  isAfter,
  type Position,
  PositionTexts,
  parsePosition,
  positionText,
} from "../../log/feed/position.ts";
import { SCHEMA_GENERATION } from "../../memory/control.ts";
import { realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { isTurnDue, nextTurn } from "../../runtime/event-loop.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { WATCH_AHEAD_CHANGES, WATCH_LOOK_MAX_MS, WATCH_LOOK_MIN_MS } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { RowCodec } from "../../stores/store.ts";
import { ChangeDecoder } from "../../tables/changes/decoder.ts";
import { changesOf, turnOnChanges } from "../../tables/changes/turn-on.ts";
import type { WatchedChanges } from "../../tables/changes/watched-changes.ts";
import { codecOf } from "../../tables/codec/codec.ts";
import { everyoneKnows } from "../../tables/everyone-knows.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import type { Change, Watch, WatchOptions } from "../watch.ts";

const TYPES: Readonly<Record<number, Change["type"]>> = {
  [CHANGE_INSERT]: "insert",
  [CHANGE_UPDATE]: "update",
  [CHANGE_DELETE]: "delete",
};

const KNOWN = ["from", "where", "signal"];

/** How often a reader that takes change after change lets the event loop turn, if it is time to. */
const TURN_MASK = 0xf;

/** What a watch needs of its database. */
export interface WatchHost {
  readonly executor: Executor;
  /** The folder of the store. */
  readonly path: string;
  readonly timeoutMs: number;
  ended(watch: LocalWatch): void;
}

export class LocalWatch implements Watch<Change> {
  readonly #host: WatchHost;
  readonly #tables: readonly TableStore[];
  readonly #where: ((row: unknown) => boolean) | undefined;
  readonly #signal: AbortSignal | undefined;
  /** By the table's number in the catalogue. */
  readonly #decoders = new Map<number, ChangeDecoder>();
  readonly #follower: LogFollower;
  readonly #changes = new BatchChanges();
  readonly #texts = new PositionTexts();
  /** Of the batch that is being read. */
  #memoryId: string;
  #closedMs = 0;
  #lastEpoch = 0;
  #hasBatch = false;
  /** Only what comes after this is told. */
  readonly #from: Position;
  #position: string;
  #generation = 0;
  /** Decoded, and not told yet. */
  #ahead: Change[] = [];
  #at = 0;
  #running: Promise<unknown> | undefined;
  #isEnded = false;
  #failure: SituError | undefined;
  #wake: (() => void) | undefined;
  #ready: Promise<void> | undefined;

  constructor(host: WatchHost, tables: readonly TableStore[], options: WatchOptions<never>) {
    refuseUnknownOptions("watch", options, KNOWN);
    const { from = "now", where, signal } = options;
    if (where !== undefined && typeof where !== "function") {
      throw new SituError("SITU_TYPE", `watch: where is a function of a row, not ${show(where)}`);
    }
    this.#host = host;
    if (tables.length === 0) throw new SituError("SITU_TYPE", "watch: name at least one table");
    this.#tables = tables;
    this.#where = where as ((row: unknown) => boolean) | undefined;
    this.#signal = signal;
    if (signal?.aborted) throw aborted(signal);
    const { executor } = host;
    this.#memoryId = executor.memory.control.memoryId;
    this.#follower = new LogFollower(new NodeFiles(host.path));
    try {
      const isNamed = from === "now" || from === "start";
      this.#from = isNamed ? this.#begin(from === "start") : this.#resume(from);
    } catch (error) {
      this.#follower.close();
      throw error;
    }
    this.#position = textOf(this.#from);
    signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  get position(): string {
    return this.#position;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Change, undefined>> {
    const isAtHand = this.#running === undefined && this.#at < this.#ahead.length;
    // A look at the clock takes as long as the rest: not for each change.
    const mayGoOn = (this.#at & TURN_MASK) !== 0 || !isTurnDue();
    if (isAtHand && !this.#isEnded && mayGoOn) return Promise.resolve(this.#tell());
    const step = (this.#running ?? Promise.resolve()).then(() => this.#step());
    const settled: Promise<void> = step.then(
      () => this.#hasRun(settled),
      () => this.#hasRun(settled),
    );
    this.#running = settled;
    return step;
  }

  return(): Promise<IteratorResult<Change, undefined>> {
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.end();
  }

  ready(): Promise<void> {
    const { executor, timeoutMs } = this.#host;
    this.#ready ??= everyoneKnows(
      executor,
      timeoutMs,
      "watching a table",
      "the watch goes on, but changes of that transaction may be missing in it",
    );
    return this.#ready;
  }

  /** Ends the watch; with an error, if its reader is to know. */
  end(failure?: SituError): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#failure = failure;
    this.#ahead = [];
    this.#at = 0;
    this.#changes.clear();
    this.#follower.close();
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#host.ended(this);
    this.#wake?.();
  }

  readonly #onAbort = (): void => this.end(aborted(this.#signal!));

  /** Changes are recorded from here on, if they are not already; then the place is taken. */
  #begin(atStart: boolean): Position {
    const { executor, timeoutMs } = this.#host;
    for (const table of this.#tables) this.#adopt(table, turnOnChanges(executor, table, timeoutMs));
    this.#generation = this.#currentGeneration();
    if (atStart) {
      this.#follower.seekStart();
      return { memoryId: this.#follower.memoryId ?? this.#memoryId, high: 0, low: 0, change: 0 };
    }
    // Whatever is committed after this has a later epoch.
    const epoch = executor.mark();
    this.#follower.seekEnd(epoch);
    return endOfEpoch(this.#memoryId, epoch);
  }

  #resume(text: string): Position {
    const position = parsePosition(text);
    const { executor, timeoutMs } = this.#host;
    for (const table of this.#tables) {
      const stored = changesOf(executor, table.position);
      if (stored === undefined || epochIn(position) < stored.since) {
        throw gap(`changes of table ${table.table.name} were not recorded at that time`);
      }
    }
    for (const table of this.#tables) this.#adopt(table, turnOnChanges(executor, table, timeoutMs));
    this.#generation = this.#currentGeneration();
    const { durability, epochs } = executor;
    this.#follower.seek(position, this.#memoryId, (memoryId) =>
      memoryId === this.#memoryId ? epochs.current() : durability.written,
    );
    return position;
  }

  #adopt({ table, structure, position }: TableStore, stored: WatchedChanges): void {
    // The structure is that of the store, and its codec that of another table after a migration.
    const codec = structure.table === table ? structure.codec : codecOf(table);
    const decoder = new ChangeDecoder(table, codec as RowCodec<RowValues, unknown>, stored);
    this.#decoders.set(position, decoder);
  }

  #hasRun(step: Promise<unknown>): void {
    if (this.#running === step) this.#running = undefined;
  }

  async #step(): Promise<IteratorResult<Change, undefined>> {
    if (isTurnDue()) await nextTurn();
    if (this.#at < this.#ahead.length || (await this.#fill())) return this.#tell();
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return { done: true, value: undefined };
  }

  #tell(): IteratorResult<Change, undefined> {
    const value = this.#ahead[this.#at++];
    this.#position = value.position;
    return { done: false, value };
  }

  /** Decodes changes ahead, waiting for the first one. False if the watch has ended. */
  async #fill(): Promise<boolean> {
    let pauseMs = WATCH_LOOK_MIN_MS;
    while (!this.#isEnded) {
      try {
        if (this.#decode()) return true;
        if (this.#read()) {
          pauseMs = WATCH_LOOK_MIN_MS;
          if (isTurnDue()) await nextTurn();
          continue;
        }
        this.#checkLog();
      } catch (error) {
        this.end();
        throw error;
      }
      await this.#pause(pauseMs);
      pauseMs = Math.min(2 * pauseMs, WATCH_LOOK_MAX_MS);
    }
    return false;
  }

  /** Decodes some changes of the batch; false if it has no more. */
  #decode(): boolean {
    if (!this.#hasBatch) return false;
    const changes = this.#changes;
    const ahead: Change[] = [];
    while (ahead.length < WATCH_AHEAD_CHANGES && changes.next()) {
      const decoder = this.#decoders.get(changes.table);
      if (decoder === undefined) continue;
      const { high, low, change } = changes;
      if (!isAfter(this.#from, high, low, change)) continue;
      // Of a time before the recording was turned off, which ends with a gap.
      if (epochOf(high, low) < decoder.stored.since) continue;
      // One who has just learned of a migration may have recorded it before this watch has.
      if (!decoder.knows(changes.format)) this.#look(decoder, changes.table);
      const row = decoder.rowAt(changes.words, changes.rowAt, changes.rowWords, changes.format);
      const key = decoder.keyOf(row);
      if (this.#where !== undefined && !this.#where(row)) continue;
      ahead.push({
        type: TYPES[changes.kind],
        table: decoder.table.name,
        key,
        row,
        position: this.#texts.textOf(this.#memoryId, high, low, change),
        time: this.#closedMs,
      });
    }
    this.#ahead = ahead;
    this.#at = 0;
    if (ahead.length > 0) return true;
    this.#hasBatch = false;
    if (this.#lastEpoch >= epochIn(this.#from)) {
      this.#position = textOf(endOfEpoch(this.#memoryId, this.#lastEpoch));
    }
    return false;
  }

  /** Reads the next batch; false if there is none yet. */
  #read(): boolean {
    const { durability } = this.#host.executor;
    const follower = this.#follower;
    const durable = durability.epoch;
    const batch = follower.next(durable);
    if (batch === undefined) {
      // Nothing was written between the last batch and the beginning: they are the same place.
      const { memoryId } = follower;
      const isBefore = follower.epoch < epochIn(this.#from) && epochIn(this.#from) <= durable;
      if (isBefore && memoryId !== undefined) {
        this.#position = textOf(endOfEpoch(memoryId, follower.epoch));
      }
      return false;
    }
    this.#checkTables();
    this.#memoryId = batch.memoryId;
    this.#closedMs = batch.closedMs;
    this.#lastEpoch = batch.last;
    this.#changes.begin(batch.words);
    this.#hasBatch = true;
    return true;
  }

  /** Fails if changes were not recorded for a while, or are not any more. */
  #checkTables(): void {
    const generation = this.#currentGeneration();
    if (generation === this.#generation) return;
    for (const [position, decoder] of this.#decoders) {
      this.#look(decoder, position);
      decoder.forget();
    }
    this.#generation = generation;
  }

  /** Looks what the catalogue says by now. */
  #look(decoder: ChangeDecoder, position: number): void {
    const stored = changesOf(this.#host.executor, position);
    if (stored?.since !== decoder.stored.since) {
      throw gap(`the recording of changes of table ${decoder.table.name} was turned off`);
    }
    decoder.stored = stored;
  }

  /** Nothing more comes of a log that has failed. */
  #checkLog(): void {
    const { durability } = this.#host.executor;
    if (durability.state >= FAILED)
      throw durability.failed("the watch has told all that is on disk");
    this.#checkTables();
  }

  #currentGeneration(): number {
    return Atomics.load(this.#host.executor.memory.control.i32, SCHEMA_GENERATION);
  }

  async #pause(ms: number): Promise<void> {
    let timer: { cancel(): void } | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      timer = realClock.after(ms, resolve);
    });
    timer?.cancel();
    this.#wake = undefined;
  }
}

function textOf({ memoryId, high, low, change }: Position): string {
  return positionText(memoryId, high, low, change);
}

function aborted({ reason }: AbortSignal): SituError {
  return new SituError("SITU_ABORTED", "the watch was aborted by its signal", { cause: reason });
}
