/**
 * An update or delete in a thread of the device (the paper's §4), as one transaction of that thread's executor:
 *
 *   1. announce   the job is counted in the thread's slot: from now on nobody frees pages
 *   2. scan       rows are read in the order of their pages; of each version it is noted what becomes of it
 *                 (change-map.ts), and new versions are written to pages that nothing leads to (version-writer.ts)
 *   3. catch up   rows that others have changed meanwhile are in the map under other places: what is in the delta is
 *                 moved to pages, and what is new is looked at, until little is left
 *   4. sync       all new versions are on disk
 *   5. apply      one transaction walks over the map and gives each row whose place is known its new one. A row
 *                 with a place that is not known was changed since: it is looked at now, and changed as on the
 *                 host. This is the validation (§4.1.4): a conflict is repaired where it is found. Where indexes or
 *                 watchers depend on what rows hold, all rows that match are changed as on the host
 *   6. end        pages that were not needed are given back, and the job is taken back
 *
 * So nothing is changed before step 5, and there by one commit record, of map entries only. The transaction has
 * read the whole map: it is serializable as any other, at the moment of its commit. Before that, an update that is
 * stopped, fails or dies has changed nothing and holds no lock; it leaves pages that nothing leads to.
 */

import { MAX_PAGE_ROW_WORDS, PAGE_BYTES } from "../../../device/page.ts";
import { readAtSnapshot, runSync } from "../../../engine/run.ts";
import { Snapshot } from "../../../engine/snapshots/snapshot.ts";
import { Transaction } from "../../../engine/transaction.ts";
import { SCHEMA_GENERATION } from "../../../memory/control.ts";
import { Views } from "../../../memory/views.ts";
import { SituError } from "../../../runtime/errors.ts";
import {
  DEVICE_CATCH_UP_ROUNDS,
  DEVICE_CATCH_UP_ROWS,
  DEVICE_STEP_ENTRIES,
  MAX_DEVICE_CHANGE_OBJECTS,
} from "../../../runtime/limits.ts";
import { programsOf } from "../../bulk/cursor.ts";
import type { Taken } from "../../bulk/runs.ts";
import type { Instance, WordFunction } from "../../expressions/compile.ts";
import { Failure } from "../../expressions/library.ts";
import { type Program, programFrom } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import { workOf } from "../device-work.ts";
import { slotIn, wordsIn } from "../hidden-tables.ts";
import { BY_ROW, CHANGED, ChangeMap, DELETED, SAME, UNKNOWN, UNMATCHED } from "./change-map.ts";
import { beginDeviceJob, endDeviceJob } from "./device-jobs.ts";
import type { MapStep } from "./map-steps.ts";
import { MapWalk, sharesPage } from "./map-walk.ts";
import { type ChangeOrder, type CrashPoint, STOPPED, stopped } from "./messages.ts";
import { type GatheredPlace, PageWalk, type Reads, type RowVisitor } from "./page-walk.ts";
import type { Projection } from "./projection.ts";
import type { ElementTable } from "./read-job.ts";
import { whyByRows, whyNotRead } from "./shippable.ts";
import { VersionWriter } from "./version-writer.ts";

/** How long a snapshot for one step of a walk may take. */
const STEP_MS = 10_000;
/** Fields whose values are numbers, as a Float64Array keeps them. */
const NUMBERS = new Set(["u8", "u16", "u32", "u53", "i8", "i16", "i32", "i53", "f64"]);

/** What an update has come to. */
export interface Changed {
  readonly matched: number;
  readonly changed: number;
  /** Pages that were written. */
  readonly pages: number;
  /** Rows that the last transaction had to look at itself. */
  readonly repaired: number;
}

export class ChangeJob implements RowVisitor {
  #matched = 0;
  #changed = 0;
  #repaired = 0;
  /** Rows that a round has found by their keys only. */
  #keyed = 0;
  readonly #opened: ElementTable;
  readonly #order: ChangeOrder;
  readonly #program: Program;
  readonly #instance: Instance<WordFunction>;
  readonly #map = new ChangeMap();
  readonly #writer: VersionWriter;
  readonly #tx: Transaction;
  /** The fields of the condition, and the condition over them. */
  readonly #projection: Projection | undefined;
  readonly #condition: WordFunction | undefined;
  /** Whether more than its place depends on a row: then each is changed as on the host, in the end. */
  #byRows: boolean;
  /** Whether keys are numbers, so that the change map can have them. */
  readonly #hasNumbers: boolean;
  #isAnnounced = false;
  /** Where a row of fixed size is changed. */
  readonly #row = new Views(new ArrayBuffer(PAGE_BYTES));
  #store: TableStore;
  /** What becomes of the rows of a step. */
  #states = new Uint8Array(0);

  constructor(opened: ElementTable, order: ChangeOrder) {
    const { executor, store, shared, projections } = opened;
    this.#opened = opened;
    this.#order = order;
    this.#store = store;
    this.#program = programFrom(order.program, store.table);
    this.#instance = programsOf(store.table).forWords(this.#program);
    this.#instance.context.momentMs = order.momentMs;
    this.#byRows = whyByRows(store, this.#program) !== undefined;
    const { singleKey, key, fields } = store.table;
    this.#hasNumbers = singleKey && NUMBERS.has(fields[key[0]].kind);
    if (this.#program.where !== undefined) {
      const task = { kind: "aggregate", groupBy: [], values: [] } as const;
      const condition = { ...this.#program, task };
      this.#projection = projections.of(shared, condition);
      const instance = this.#projection?.programs.forWords(condition);
      if (instance !== undefined) instance.context.momentMs = order.momentMs;
      this.#condition = instance?.take;
    }
    const filled = projections.ofFile(shared.file.name);
    this.#writer = new VersionWriter(shared, this.#map, () => this.#check(), filled);
    this.#tx = new Transaction(executor);
    this.#tx.subject = `table ${store.table.name}`;
    // It reads the whole map.
    this.#tx.set.mostObjects = MAX_DEVICE_CHANGE_OBJECTS;
  }

  /** All but step 6. */
  async run(reopen: () => TableStore): Promise<Changed> {
    const { executor } = this.#opened;
    beginDeviceJob(executor);
    this.#isAnnounced = true;
    this.#crash("announced");
    await this.#scan();
    this.#crash("written");
    await this.#writer.finish();
    this.#crash("synced");
    this.#check();
    this.#apply(reopen);
    this.#crash("applied");
    // Only what the caller waits for: the rows are changed, whatever becomes of the rest.
    if (this.#order.waits) executor.durability.awaitSync(this.#tx.epoch, this.#order.timeoutMs);
    return {
      matched: this.#matched,
      changed: this.#changed,
      pages: this.#writer.written,
      repaired: this.#repaired,
    };
  }

  /** Step 6, whatever became of the others. Nobody waits for it. */
  async end(): Promise<void> {
    if (!this.#isAnnounced) return;
    // What cannot be given back, for want of memory or a disk, is found by the collector.
    await this.#writer.end(this.#mayBeApplied).catch(() => {});
    endDeviceJob(this.#opened.executor);
    this.#crash("ended");
    if (this.#mayBeApplied) this.#store.store.maintain();
  }

  /** Whether rows may be where they were written: also if an error came after the commit point. */
  get #mayBeApplied(): boolean {
    return this.#tx.commits > 0;
  }

  /** Steps 2 and 3. */
  async #scan(): Promise<void> {
    const { shared, executor, maps } = this.#opened;
    const reader = new Transaction(executor);
    // A snapshot for each step: pages cannot be used again while the job is announced.
    const reads: Reads = (body) => {
      const snapshot = Snapshot.take(executor, STEP_MS, STEP_MS);
      try {
        return readAtSnapshot(executor, reader, snapshot, body, undefined);
      } finally {
        snapshot.release();
      }
    };
    const walk = new PageWalk(maps.of(shared), 0, 1, this.#projection);
    for (let round = 0; round <= DEVICE_CATCH_UP_ROUNDS; round++) {
      const before = this.#map.count;
      this.#keyed = 0;
      await walk.walk(reads, this);
      const found = this.#map.count - before;
      if (round > 0 && found < DEVICE_CATCH_UP_ROWS && this.#keyed < DEVICE_CATCH_UP_ROWS) return;
      this.#moveDelta();
    }
  }

  #moveDelta(): void {
    if (this.#keyed < DEVICE_CATCH_UP_ROWS) return;
    const { shared } = this.#opened;
    const work = workOf(shared.device).find(({ table }) => table === shared);
    work?.mover.move(Number.POSITIVE_INFINITY);
  }

  wants(page: number, generation: number, where: number): boolean {
    return this.#map.stateOf(page, generation, slotIn(where)) === UNKNOWN;
  }

  projected(views: Views, at: number, place: GatheredPlace): boolean {
    if (this.#condition!(views, at, 0) !== -1) return true;
    this.#note(place, UNMATCHED);
    return false;
  }

  row(views: Views, at: number, place: GatheredPlace): void {
    const words = wordsIn(place.where);
    const taken = this.#instance.take(views, at, words);
    if (taken === false) this.#note(place, UNMATCHED);
    else if (taken === true) this.#note(place, SAME);
    else if (taken instanceof Failure) throw taken.error;
    else if (this.#byRows) this.#noteKey(this.#note(place, BY_ROW), taken as Taken);
    else if (this.#program.task.kind === "delete") {
      this.#noteKey(this.#note(place, DELETED), taken as Taken);
    } else this.#rewrite(views, at, words, place, taken as Taken);
  }

  #note({ page, generation, where, slots }: GatheredPlace, state: number): number {
    return this.#map.add(page, generation, slotIn(where), slots, state);
  }

  #noteKey(number: number, { key }: Taken): void {
    if (this.#hasNumbers) this.#map.keys[number] = key as number;
  }

  #rewrite(views: Views, at: number, words: number, place: GatheredPlace, taken: Taken): void {
    const { codec } = this.#opened.shared;
    const writer = this.#writer;
    if (codec.fixedWords === words) {
      // The row as it is, with the changed fields written over it, in its place on the new page.
      codec.stageUpdate(taken.key, taken.changes as Record<string, unknown>);
      const number = this.#note(place, CHANGED);
      this.#noteKey(number, taken);
      const into = writer.reserve(number, words);
      const to = into < 0 ? this.#row : writer.views;
      const start = Math.max(0, into);
      copyRow(views.i32, at, words, to.i32, start);
      codec.patch(to, start);
      if (into < 0) writer.addLater(number, to.i32.subarray(0, words));
      return;
    }
    const before = codec.decodeToMerge(views, at, words);
    const changes = codec.takeChanges(taken.changes as Record<string, unknown>);
    const length = codec.encode(codec.merge(before, changes));
    // A row that has become too long for a page is left to the end.
    if (length > MAX_PAGE_ROW_WORDS) return;
    const number = this.#note(place, CHANGED);
    this.#noteKey(number, taken);
    const into = writer.reserve(number, length);
    const row = codec.scratch.i32.subarray(0, length);
    if (into < 0) writer.addLater(number, row);
    else writer.views.i32.set(row, into);
  }

  keyed(): void {
    this.#keyed++;
  }

  pause(): Promise<void> | undefined {
    this.#check();
    return this.#writer.work();
  }

  #check(): void {
    if (Atomics.load(this.#order.signals, STOPPED) !== 0) throw stopped();
  }

  /** Step 5. */
  #apply(reopen: () => TableStore): void {
    const { executor } = this.#opened;
    const { i32 } = executor.memory.control;
    for (;;) {
      const generation = Atomics.load(i32, SCHEMA_GENERATION);
      this.#store = reopen();
      const why = whyNotRead(this.#store);
      if (why !== undefined) {
        throw new SituError(
          "SITU_SCHEMA",
          `table ${this.#store.table.name} was changed during the update (${why}): try again`,
        );
      }
      // An index or a watch that has come since: what was written to pages is of no use then.
      this.#byRows ||= whyByRows(this.#store, this.#program) !== undefined;
      const { timeoutMs } = this.#order;
      const isDone = runSync(
        executor,
        this.#tx,
        timeoutMs,
        () => {
          // Whoever changes the catalogue from now on waits for this transaction.
          if (Atomics.load(i32, SCHEMA_GENERATION) !== generation) return false;
          this.#applyAll(this.#tx);
          this.#crash("applying");
          return true;
        },
        undefined,
        0,
        true,
        timeoutMs,
      );
      if (isDone) return;
    }
  }

  #applyAll(tx: Transaction): void {
    const { shared, maps } = this.#opened;
    const form = this.#store.openForm(this.#instance.take);
    const repair = (key: unknown): void => this.#repair(tx, this.#store, key, form.read(tx, key));
    const entries = new MapWalk(shared, (page, generation, where) => {
      const state = this.#stateOf(page, generation, where);
      return state !== UNMATCHED && state !== SAME;
    });
    const remembered = maps.of(shared);
    this.#matched = 0;
    this.#changed = 0;
    this.#repaired = 0;
    for (;;) {
      this.#check();
      const { place } = entries;
      const step = place === undefined ? undefined : remembered.peek(place);
      if (step !== undefined && this.#applyStep(tx, step, repair)) {
        entries.place = step.next;
        continue;
      }
      const most = place === undefined ? DEVICE_STEP_ENTRIES : Number.POSITIVE_INFINITY;
      if (!entries.next(tx, most)) return;
      for (const position of entries.found) {
        const page = entries.pages[position];
        const generation = entries.generations[position];
        const where = entries.wheres[position];
        const state = this.#stateOf(page, generation, where);
        this.#applyOne(tx, page, generation, where, state, entries.keys[position], repair);
      }
    }
  }

  /**
   * Applies what is remembered of the map, without reading its entries again: the transaction depends on the versions
   * of the objects that they are in. False, and nothing is done, if one has changed or a row is not known.
   */
  #applyStep(tx: Transaction, step: MapStep, repair: (key: unknown) => void): boolean {
    const { pages, generations, wheres, count, keys, seen } = step;
    if (!this.#hasNumbers || seen === undefined) return false;
    if (this.#states.length < count) this.#states = new Uint8Array(2 * count);
    const states = this.#states;
    for (let i = 0; i < count; i++) {
      states[i] = this.#stateOf(pages[i], generations[i], wheres[i]);
      if (states[i] === UNKNOWN && !keys.has(i)) return false;
    }
    if (!seen.dependIn(tx)) return false;
    for (let i = 0; i < count; i++) {
      const state = states[i];
      if (state === UNMATCHED) continue;
      const number = this.#map.numberOf(pages[i], generations[i], slotIn(wheres[i]));
      const key = state === UNKNOWN ? keys.get(i) : this.#map.keys[number];
      this.#applyOne(tx, pages[i], generations[i], wheres[i], state, key, repair);
    }
    return true;
  }

  #stateOf(page: number, generation: number, where: number): number {
    return sharesPage(where) ? this.#map.stateOf(page, generation, slotIn(where)) : UNKNOWN;
  }

  #applyOne(
    tx: Transaction,
    page: number,
    generation: number,
    where: number,
    state: number,
    key: unknown,
    repair: (key: unknown) => void,
  ): void {
    if (state === UNMATCHED) return;
    if (state === UNKNOWN || (this.#byRows && state !== SAME)) {
      repair(key);
      return;
    }
    this.#matched++;
    if (state === SAME) return;
    this.#changed++;
    const { shared } = this.#opened;
    if (state === DELETED) shared.map.remove(tx, key);
    else if (state === CHANGED) {
      const map = this.#map;
      const at = map.numberOf(page, generation, slotIn(where));
      const place = shared.placeRow(map.pages[at], map.generations[at], map.wheres[at]);
      shared.entries.update(tx, key, place);
    }
  }

  /** A row that has changed since it was looked at, or was not. */
  #repair(tx: Transaction, { store }: TableStore, key: unknown, taken: unknown): void {
    this.#repaired++;
    if (taken === false || taken === undefined) return;
    if (taken instanceof Failure) throw taken.error;
    this.#matched++;
    if (taken === true) return;
    this.#changed++;
    const { changes } = taken as Taken;
    if (changes === undefined) store.remove(tx, key);
    else store.update(tx, key, changes as Record<string, unknown>);
  }

  #crash(point: CrashPoint): void {
    const { death } = this.#order;
    if (death?.at !== point) return;
    if (death.of === "process") process.kill(process.pid, "SIGKILL");
    // Ends nothing but the thread.
    else process.exit();
  }
}

/** Rows of more words are copied by the engine's own loop, which begins slowly. */
const SHORT_WORDS = 32;

function copyRow(from: Int32Array, at: number, words: number, to: Int32Array, into: number): void {
  if (words > SHORT_WORDS) to.set(from.subarray(at, at + words), into);
  else for (let i = 0; i < words; i++) to[into + i] = from[at + i];
}
