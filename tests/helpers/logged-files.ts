/**
 * A store with a log and checkpoints in files that lie in memory, and a record of which rows it had
 * when each batch was written: so that copies of the files can be recovered and compared.
 */

import { crc32 } from "node:zlib";
import { expect } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { awaitCommits } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { StoreFiles } from "../../src/folder/files.ts";
import type { CheckpointInfo } from "../../src/log/checkpoint/reader.ts";
import { type TakenCheckpoint, takeCheckpoint } from "../../src/log/checkpoint/take.ts";
import { CheckpointWriter } from "../../src/log/checkpoint/writer.ts";
import { rebuild } from "../../src/log/recovery/part.ts";
import { planRecovery } from "../../src/log/recovery/plan.ts";
import { finishMemory } from "../../src/log/recovery/recover.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { listSegments, nextSegment, type SegmentHead } from "../../src/log/segments/segments.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { Tails } from "../../src/log/tail.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD, type Geometry } from "../../src/memory/control.ts";
import { wallClockMs } from "../../src/runtime/clock.ts";
import { Random } from "../../src/runtime/random.ts";
import { createCatalogue, openTable } from "../../src/tables/catalogue.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { TableStore } from "../../src/tables/indexes/table-store.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { verifyTables } from "../../src/tools/tables/verify.ts";
import { EngineStore, SMALL } from "./engine-store.ts";
import { MemoryFiles } from "./memory-files.ts";

export const LOG_ID = "fedcba9876543210fedcba98";

const GEOMETRY: Geometry = { ...SMALL, slots: 4, journalBytes: 1 << 18, regions: 8 };

const SEGMENT_BYTES = 1 << 17;

const Notes = table(
  "notes",
  { id: u32(), text: str() },
  { key: "id", indexes: { byText: { on: ["text"], kind: "hash" } } },
) as Table;

type Rows = ReadonlyMap<number, string>;

/** The rows after a batch. */
export interface Written {
  readonly epoch: number;
  readonly rows: Rows;
}

export class LoggedStore {
  readonly files = new MemoryFiles();
  readonly written: Written[] = [];
  readonly #store = new EngineStore(GEOMETRY, "threads", true);
  readonly #executor: Executor;
  readonly #notes: TableStore;
  readonly #tx: Transaction;
  readonly #random: Random;
  readonly #rows = new Map<number, string>();
  readonly #tails: Tails;
  #writer: LogWriter;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#executor = this.#store.open();
    createCatalogue(this.#executor);
    this.#tails = new Tails(this.#executor.memory);
    this.#writer = this.#begin();
    this.#executor.durability.ensureLogWriter = () => this.#write();
    this.#notes = openTable(this.#executor, Notes);
    this.#tx = new Transaction(this.#executor);
    this.round();
  }

  /** Some transactions, not yet in the log. */
  change(transactions = 5): void {
    const random = this.#random;
    for (let i = 0; i < transactions; i++) {
      const changes = Array.from({ length: 3 }, () => {
        const text =
          random.below(4) === 0 ? undefined : `${random.below(9)}`.repeat(random.below(90));
        return { id: random.below(200), text };
      });
      runSync(
        this.#executor,
        this.#tx,
        5_000,
        () => {
          for (const { id, text } of changes) {
            if (text === undefined) this.#notes.store.remove(this.#tx, id);
            else this.#notes.store.put(this.#tx, { id, text });
          }
        },
        undefined,
      );
      this.#notes.store.maintain();
      for (const { id, text } of changes) {
        if (text === undefined) this.#rows.delete(id);
        else this.#rows.set(id, text);
      }
    }
  }

  /** Writes what was committed as one batch. */
  round(): void {
    this.#write();
    this.#note();
  }

  /** What group-commit.ts does in a round, with segments so small that they are read in no time. */
  #write(): void {
    const { durability } = this.#executor;
    const last = this.#executor.mark();
    awaitCommits(this.#executor, last, 1_000);
    this.#tails.gather(durability.written, last);
    const { records, parts } = this.#tails;
    if (records > 0) {
      const closedMs = wallClockMs();
      this.#writer.append({ after: durability.written, last, records, closedMs }, parts);
      this.#writer.sync();
      durability.setWritten(last);
    }
    durability.publish(last, () => this.#tails.release());
  }

  #note(): void {
    const epoch = this.#executor.durability.written;
    this.written.push({ epoch, rows: new Map(this.#rows) });
  }

  /** When the batches of the log were closed, by their last epochs. */
  closedMs(): Map<number, number> {
    const [first] = listSegments(this.files);
    const { batches } = scanLog(this.files, (first.head as SegmentHead).afterEpoch);
    return new Map(batches.map(({ last, closedMs }) => [last, closedMs]));
  }

  /** Batches that each hold some changes. */
  rounds(count: number): void {
    for (let i = 0; i < count; i++) {
      this.change();
      this.round();
    }
  }

  /** Another writer takes over, and begins a segment. */
  handOver(): void {
    this.#writer.close();
    this.#writer = this.#begin();
  }

  /** The same for one who died: its segment keeps its room. */
  die(): void {
    this.#writer = this.#begin();
  }

  checkpoint(keepLogMs = Number.POSITIVE_INFINITY): TakenCheckpoint {
    const taken = takeCheckpoint(this.#executor, this.files, { logId: LOG_ID, keepLogMs });
    // It has seen to it that the log has all that was committed.
    if (this.#executor.durability.written > (this.written.at(-1)?.epoch ?? 0)) this.#note();
    return taken;
  }

  /** A checkpoint during which others write: it needs the log up to its end. */
  busyCheckpoint(): CheckpointInfo {
    const options = { logId: LOG_ID, catalogue: this.#catalogue };
    const writer = new CheckpointWriter(this.#executor, this.files, options);
    const epoch = this.#executor.mark();
    awaitCommits(this.#executor, epoch, 1_000);
    writer.begin(epoch);
    do this.change(2);
    while (writer.step());
    this.round();
    this.change(2);
    writer.end();
    this.round();
    return writer.publish(this.#executor.durability.written);
  }

  get segments(): string[] {
    return listSegments(this.files).map(({ name }) => name);
  }

  /** The state that the store had when it was durable up to an epoch. */
  at(epoch: number): Written {
    return this.written.findLast((each) => each.epoch <= epoch)!;
  }

  dispose(): void {
    this.#store.dispose();
  }

  get #catalogue(): { regionId: number; word: number } {
    const { i32 } = this.#executor.memory.control;
    return { regionId: i32[CATALOGUE_REGION] - 1, word: i32[CATALOGUE_WORD] };
  }

  #begin(): LogWriter {
    const identity = { logId: LOG_ID, geometry: GEOMETRY, catalogue: this.#catalogue };
    const { written } = this.#executor.durability;
    const number = nextSegment(this.files);
    return new LogWriter(this.files, identity, number, written, wallClockMs(), SEGMENT_BYTES);
  }
}

/** Rebuilds a store from files, verifies it and returns its rows, and the epoch it was of. */
export async function recoverRows(files: StoreFiles): Promise<{ epoch: number; rows: Rows }> {
  const plan = planRecovery(files, LOG_ID);
  const store = new EngineStore(plan.geometry, "threads", true);
  try {
    rebuild(files, plan, store.memory, 0, 1, ({ damage }) => expect(damage).toBeUndefined());
    finishMemory(plan, store.memory);
    const executor = store.open();
    const { problems } = await verifyTables(executor);
    expect(problems).toEqual([]);
    const notes = openTable(executor, Notes);
    const tx = new Transaction(executor);
    const found: RowValues[] = [];
    const rows = new Map<number, string>();
    runSync(
      executor,
      tx,
      5_000,
      () => {
        const cursor = notes.rows.cursor({ from: undefined, to: undefined }, false);
        while (cursor.next(tx, found, 1_000)) {
          for (const { id, text } of found) rows.set(id as number, text as string);
        }
      },
      undefined,
    );
    return { epoch: plan.epoch, rows };
  } finally {
    store.dispose();
  }
}

/** The lengths and checksums of all files, to see that none has changed. */
export function fingerprintOf(files: MemoryFiles): string[] {
  return [...contentOf(files)].map(([name, bytes]) => `${name} ${bytes.length} ${crc32(bytes)}`);
}

/** The bytes of all files. */
export function contentOf(files: MemoryFiles): Map<string, Buffer> {
  const content = new Map<string, Buffer>();
  for (const folder of ["log", "checkpoints"]) {
    for (const name of files.list(folder)) {
      const path = `${folder}/${name}`;
      content.set(path, Buffer.from(files.bytesOf(path)));
    }
  }
  return content;
}
