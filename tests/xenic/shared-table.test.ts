/** The host's table in memory that its NIC reads as well: against a Map, by keys of one and of two words, full, and while it is written. */

import { expect, it } from "vitest";
import { CachingIndex } from "../../src/protocols/xenic/caching-index.ts";
import { lookUpInHost } from "../../src/protocols/xenic/host-lookup.ts";
import { SharedTable, sharedTableBytes } from "../../src/protocols/xenic/shared-table.ts";
import { Random } from "../../src/runtime/random.ts";
import { seed } from "../helpers/store.ts";

const SHAPE = { rows: 60, valueWords: 3 };

/** What a NIC finds that can only read memory. */
function lookUp(table: SharedTable, index: CachingIndex, key: number): Int32Array | undefined {
  const home = table.homeOf(key);
  const lookup = lookUpInHost(index, table.segmentOf(home), home);
  let found: Int32Array | undefined;
  for (let step = lookup.next(); step.done !== true; ) {
    const answer = table.read(step.value, key);
    if (answer === undefined) throw new Error("nobody is writing");
    found = answer.row?.value ?? found;
    step = lookup.next(answer);
  }
  return found;
}

it("rows that are written, removed and written again, as both threads see them", () => {
  const random = new Random(seed);
  const host = new SharedTable(SHAPE);
  expect(host.memory.byteLength).toBe(sharedTableBytes(SHAPE));
  const nic = new SharedTable(SHAPE, host.memory);
  const { segments, valueWords, keyWords } = nic;
  const index = new CachingIndex({ memoryBytes: 8_192, segments, keyWords, valueWords });
  const model = new Map<number, number[]>();
  const keyOf = (i: number): number => (i % 3 === 0 ? i * 2 ** 41 : i % 3 === 1 ? -i : i);
  for (let step = 1; step <= 6_000; step++) {
    const key = keyOf(random.below(140));
    const isRemoved = random.below(100) < (step % 2_000 < 1_000 ? 30 : 70);
    const value = Array.from({ length: 1 + random.below(3) }, () => step);
    if (isRemoved) model.delete(key);
    else model.set(key, value);
    host.apply(key, { high: 1, low: step }, isRemoved ? null : Int32Array.from(value));
    const asked = keyOf(random.below(140));
    const expected = model.get(asked);
    expect(host.get(asked)?.value).toEqual(expected && Int32Array.from(expected));
    expect(lookUp(nic, index, asked)).toEqual(expected && Int32Array.from(expected));
    expect(nic.rows).toBe(model.size);
    expect(nic.isFull).toBe(model.size >= SHAPE.rows);
  }
});

it("who reads while the host writes is told so, and sees no half of a row", () => {
  const host = new SharedTable(SHAPE);
  const nic = new SharedTable(SHAPE, host.memory);
  host.apply(7, { high: 0, low: 1 }, Int32Array.of(1, 1, 1));
  const read = { kind: "slots", from: nic.homeOf(7), count: 1 } as const;
  expect(nic.read(read, 7)?.row?.value).toEqual(Int32Array.of(1, 1, 1));
  const [sequence] = new Int32Array(host.memory);
  expect(sequence % 2).toBe(0);
  // The host has begun to write, and was stopped.
  new Int32Array(host.memory)[0] = sequence + 1;
  expect(nic.read(read, 7)).toBeUndefined();
  new Int32Array(host.memory)[0] = sequence + 2;
  expect(nic.read(read, 7)?.row?.version).toEqual({ high: 0, low: 1 });
});
