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
 *                 host. This is the validation (§4.1.4): a conflict is repaired where it is found
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
import { DEVICE_CATCH_UP_ROUNDS, DEVICE_CATCH_UP_ROWS } from "../../../runtime/limits.ts";
import { programsOf } from "../../bulk/cursor.ts";
import type { Taken } from "../../bulk/runs.ts";
import type { Instance, WordFunction } from "../../expressions/compile.ts";
import { Failure } from "../../expressions/library.ts";
import { type Program, programFrom } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import { workOf } from "../device-work.ts";
import { wordsIn } from "../hidden-tables.ts";
import { CHANGED, ChangeMap, DELETED, SAME, UNMATCHED } from "./change-map.ts";
import { beginDeviceJob, endDeviceJob } from "./device-jobs.ts";
import { type ChangeOrder, type CrashPoint, STOPPED, stopped } from "./messages.ts";
import {
  type GatheredPlace,
  type MapEntry,
  openEntries,
  PageWalk,
  type Reads,
  type RowVisitor,
} from "./page-walk.ts";
import type { ElementTable } from "./read-job.ts";
import { whyNotChange } from "./shippable.ts";
import { VersionWriter } from "./version-writer.ts";

/** How long a snapshot for one step of a walk may take. */
const STEP_MS = 10_000;
const STEP_ENTRIES = 1_024;

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
  #isAnnounced = false;
  #isApplied = false;
  /** Where a row of fixed size is changed. */
  readonly #row = new Views(new ArrayBuffer(PAGE_BYTES));
  #store: TableStore;

  constructor(opened: ElementTable, order: ChangeOrder) {
    const { executor, store, shared } = opened;
    this.#opened = opened;
    this.#order = order;
    this.#store = store;
    this.#program = programFrom(order.program, store.table);
    this.#instance = programsOf(store.table).forWords(this.#program);
    this.#instance.context.momentMs = order.momentMs;
    this.#writer = new VersionWriter(shared, this.#map, () => this.#check());
    this.#tx = new Transaction(executor);
    this.#tx.subject = `table ${store.table.name}`;
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
    this.#isApplied = true;
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
    await this.#writer.end(this.#isApplied).catch(() => {});
    endDeviceJob(this.#opened.executor);
    this.#crash("ended");
    if (this.#isApplied) this.#store.store.maintain();
  }

  /** Steps 2 and 3. */
  async #scan(): Promise<void> {
    const { shared, executor } = this.#opened;
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
    const walk = new PageWalk(shared);
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

  wants(entry: MapEntry): boolean {
    return this.#map.find(entry) < 0;
  }

  row(views: Views, at: number, place: GatheredPlace): void {
    const words = wordsIn(place.where);
    const taken = this.#instance.take(views, at, words);
    if (taken === false) this.#map.add(place, UNMATCHED);
    else if (taken === true) this.#map.add(place, SAME);
    else if (taken instanceof Failure) throw taken.error;
    else if (this.#program.task.kind === "delete") this.#map.add(place, DELETED);
    else this.#rewrite(views, at, words, place, taken as Taken);
  }

  #rewrite(views: Views, at: number, words: number, place: GatheredPlace, taken: Taken): void {
    const { codec } = this.#opened.shared;
    if (codec.fixedWords === words) {
      // The row as it is, with the changed fields written over it.
      this.#row.i32.set(views.i32.subarray(at, at + words));
      codec.stageUpdate(taken.key, taken.changes as Record<string, unknown>);
      codec.patch(this.#row, 0);
      this.#writer.add(place, this.#row.i32.subarray(0, words));
      return;
    }
    const before = codec.decodeToMerge(views, at, words);
    const changes = codec.takeChanges(taken.changes as Record<string, unknown>);
    const length = codec.encode(codec.merge(before, changes));
    // A row that has become too long for a page is left to the end.
    if (length > MAX_PAGE_ROW_WORDS) return;
    this.#writer.add(place, codec.scratch.i32.subarray(0, length));
  }

  keyed(): void {
    this.#keyed++;
  }

  pause(): Promise<void> {
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
      const why = whyNotChange(this.#store, this.#program);
      if (why !== undefined) {
        throw new SituError(
          "SITU_SCHEMA",
          `table ${this.#store.table.name} was changed during the update (${why}): try again`,
        );
      }
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
    const { shared } = this.#opened;
    const store = this.#store;
    const map = this.#map;
    const form = store.openForm(this.#instance.take);
    const cursor = openEntries(shared, { keys: true });
    const found: MapEntry[] = [];
    this.#matched = 0;
    this.#changed = 0;
    this.#repaired = 0;
    while (cursor.next(tx, found, STEP_ENTRIES)) {
      this.#check();
      for (const entry of found) {
        const at = map.find(entry);
        const state = at < 0 ? 0 : map.states[at];
        if (state === UNMATCHED) continue;
        if (state === 0) {
          this.#repair(tx, store, entry.key, form.read(tx, entry.key));
          continue;
        }
        this.#matched++;
        if (state === SAME) continue;
        this.#changed++;
        if (state === DELETED) shared.map.remove(tx, entry.key);
        else if (state === CHANGED) {
          const place = shared.placeRow(map.pages[at], map.newGenerations[at], map.wheres[at]);
          shared.entries.update(tx, entry.key, place);
        }
      }
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
    if (this.#order.crashAt === point) process.kill(process.pid, "SIGKILL");
  }
}
