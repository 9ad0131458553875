/**
 * Tables in a bare store (engine-store.ts), for tests of the checks: they plant damage right in the
 * words of its regions, and see it reported.
 */

import { expect } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import type { Geometry } from "../../src/memory/control.ts";
import { HEADER_WORDS } from "../../src/memory/object.ts";
import type { Cursor } from "../../src/stores/store.ts";
import { createCatalogue, openTable } from "../../src/tables/catalogue.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { TableStore } from "../../src/tables/indexes/table-store.ts";
import type { Table } from "../../src/tables/table.ts";
import { Problems } from "../../src/tools/structures/check.ts";
import { SeenCells } from "../../src/tools/structures/seen-cells.ts";
import type { Part, TableParts } from "../../src/tools/tables/parts.ts";
import { readTables } from "../../src/tools/tables/read-tables.ts";
import { ToolRun } from "../../src/tools/tables/tool-run.ts";
import { type Verification, verifyTables } from "../../src/tools/tables/verify.ts";
import { EngineStore, SMALL } from "./engine-store.ts";

const MIB = 2 ** 20;

/** Room for some ten thousand rows, and for a few of the largest. */
export const ROOMY: Geometry = {
  ...SMALL,
  slots: 4,
  journalBytes: 4 * MIB,
  regionBytes: 16 * MIB,
  regions: 4,
  ringBytes: 4 * MIB,
  chunkBytes: 4 * MIB,
};

/** A store with a catalogue, and one executor in it. */
export class CheckedStore {
  readonly store: EngineStore;
  readonly executor: Executor;
  readonly #tx: Transaction;

  constructor(geometry: Geometry = ROOMY) {
    this.store = new EngineStore(geometry, "threads");
    this.executor = this.store.open();
    // The tests choose keys by their hash.
    this.executor.newHashSeed = () => 0;
    this.#tx = new Transaction(this.executor);
    createCatalogue(this.executor);
  }

  /** Any declared table. */
  open(table: Pick<Table, "name">): TableStore {
    return openTable(this.executor, table as Table);
  }

  run<T>(body: (tx: Transaction) => T): T {
    return runSync(this.executor, this.#tx, 5_000, () => body(this.#tx), undefined);
  }

  /** A transaction on the rows of a table and its indexes, with the upkeep that follows it. */
  change<T>(table: TableStore, body: (tx: Transaction) => T): T {
    const result = this.run(body);
    table.store.maintain();
    return result;
  }

  /** Puts many rows, some in each transaction. */
  fill(table: TableStore, rows: readonly RowValues[], batch = 64): void {
    for (let from = 0; from < rows.length; from += batch) {
      this.change(table, (tx) => {
        for (const row of rows.slice(from, from + batch)) table.store.put(tx, row);
      });
    }
  }

  verify(): Promise<Verification> {
    return verifyTables(this.executor);
  }

  /** Where the structures of a table are rooted. */
  async parts(name: string): Promise<TableParts> {
    const tool = new ToolRun(this.executor, {});
    return await tool.withSnapshot(async () => {
      const seen = new SeenCells(this.executor.slabs.blocks);
      const found = readTables(tool, seen, new Problems(10, "the catalogue"));
      return found.find(({ table }) => table.name === name)!;
    });
  }

  /** A transaction on one structure alone, past the table that it belongs to. */
  changePart(
    part: Part,
    body: (store: ReturnType<Part["structure"]["open"]>, tx: Transaction) => void,
  ): void {
    const store = part.structure.open(this.executor, part.root);
    this.run((tx) => body(store, tx));
  }

  objectAt(address: Address): Words {
    return new Words(this.executor, regionIdOf(address), wordOf(address));
  }

  /** Where a fat pointer in an object leads: its first two words. */
  follow(words: Words, at: number): Words {
    return new Words(this.executor, words.get(at) - 1, words.get(at + 1));
  }

  dispose(): void {
    this.store.dispose();
  }
}

/** The words of an object in a region, from its data on; its header has negative places. */
export class Words {
  readonly i32: Int32Array;
  readonly regionId: number;
  readonly word: number;
  readonly #at: number;

  constructor(executor: Executor, regionId: number, word: number) {
    this.i32 = executor.memory.region(regionId).i32;
    this.regionId = regionId;
    this.word = word;
    this.#at = word + HEADER_WORDS;
  }

  get(at: number): number {
    return this.i32[this.#at + at];
  }

  /** The same words seen from another place in the region. */
  moved(executor: Executor, words: number): Words {
    return new Words(executor, this.regionId, this.word + words);
  }

  place(at: number): Planted {
    return new Planted(this.i32, this.#at + at);
  }
}

/** A word that a test changes and sets right again. */
export class Planted {
  readonly #i32: Int32Array;
  readonly #at: number;
  readonly #before: number;

  constructor(i32: Int32Array, at: number) {
    this.#i32 = i32;
    this.#at = at;
    this.#before = i32[at];
  }

  get value(): number {
    return this.#i32[this.#at];
  }

  set(value: number): this {
    this.#i32[this.#at] = value;
    return this;
  }

  undo(): void {
    this.#i32[this.#at] = this.#before;
  }
}

/** Damages words, sees that the problem is told, sets them right and sees that nothing is told. */
export async function expectFound(
  store: CheckedStore,
  expected: RegExp,
  planted: readonly Planted[],
): Promise<Verification> {
  const found = await store.verify();
  const { problems } = found;
  expect(
    problems.some((problem) => expected.test(problem)),
    problems.join("\n"),
  ).toBe(true);
  expect(found.problemCount).toBeGreaterThanOrEqual(problems.length);
  for (const each of [...planted].reverse()) each.undo();
  expect((await store.verify()).problems).toEqual([]);
  return found;
}

/** Looks for a key that is in no row, and reads all rows: each way ends, and says where the damage is. */
export function expectCorrupt(
  store: CheckedStore,
  { store: rows }: TableStore,
  absent: unknown,
  expected: RegExp,
): void {
  const error = expect.objectContaining({
    code: "SITU_CORRUPT",
    message: expect.stringMatching(expected),
  });
  const cursor = (): Cursor<RowValues> => rows.cursor({ from: undefined, to: undefined }, false);
  const ways: (() => unknown)[] = [
    () =>
      store.run((tx) => {
        const walk = cursor();
        const some: RowValues[] = [];
        while (walk.next(tx, some, 7));
      }),
    () =>
      store.run((tx) => {
        const walk = cursor();
        while (walk.skip(tx) > 0);
      }),
  ];
  if (absent !== undefined) {
    ways.push(
      () => rows.get(absent),
      () => store.run((tx) => rows.read(tx, absent)),
    );
  }
  for (const way of ways) expect(way).toThrow(error);
}
