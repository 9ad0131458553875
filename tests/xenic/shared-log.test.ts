/** A log's ring: records in order, held back until they may be applied, more than fit at once, and round the end of the ring. */

import { expect, it } from "vitest";
import { Name } from "../../src/protocols/names.ts";
import type { LogRecord } from "../../src/protocols/xenic/host.ts";
import { LogReader, LogWriter, makeSharedLog } from "../../src/protocols/xenic/shared-log.ts";

function recordOf(sequence: number, words: number): LogRecord {
  const name = Object.assign(new Name(), { coordinator: 2, sequence, low: 0 });
  const value = words === 0 ? null : new Int32Array(words).fill(sequence);
  // A key of two words has its place on an even word.
  const items = [{ table: 1, key: sequence * 2 ** 33, isWritten: true, value }];
  return { name, configurationId: 1, shards: [0], shard: 0, items, isKept: false };
}

it("all records come out once and in order, whatever fits the ring", () => {
  const memory = makeSharedLog(1_024);
  const writer = new LogWriter(memory);
  const reader = new LogReader(memory);
  const applied: number[] = [];
  const acknowledged: number[] = [];
  let next = 1;
  for (let round = 0; round < 400; round++) {
    for (let i = 0; i < round % 7; i++) writer.push(recordOf(next, next++ % 60));
    // Those that are over: all but the last few.
    writer.release(({ name }) => name.sequence < next - (round % 5));
    reader.apply(1 + (round % 4), ({ name, items: [item] }) => {
      const { sequence } = name;
      applied.push(sequence);
      expect(item.key).toBe(sequence * 2 ** 33);
      if (sequence % 60 === 0) expect(item.value).toBeNull();
      else expect(item.value).toEqual(new Int32Array(sequence % 60).fill(sequence));
    });
    for (const { name } of writer.takeApplied()) acknowledged.push(name.sequence);
    expect(acknowledged).toEqual(applied);
  }
  while (writer.length > 0) {
    writer.release(() => true);
    reader.apply(100, ({ name }) => applied.push(name.sequence));
    for (const { name } of writer.takeApplied()) acknowledged.push(name.sequence);
  }
  expect(applied).toEqual(Array.from({ length: next - 1 }, (_, i) => i + 1));
  expect(acknowledged).toEqual(applied);
  expect(reader.isEmpty).toBe(true);
});

it("a record that is not over holds back those behind it", () => {
  const memory = makeSharedLog(4_096);
  const writer = new LogWriter(memory);
  const reader = new LogReader(memory);
  for (const sequence of [1, 2, 3]) writer.push(recordOf(sequence, 1));
  expect(writer.release(({ name }) => name.sequence !== 2)).toBe(true);
  const seen: number[] = [];
  expect(reader.apply(10, ({ name }) => seen.push(name.sequence))).toBe(1);
  expect(seen).toEqual([1]);
  expect(writer.takeApplied()).toHaveLength(1);
  expect(writer.release(({ name }) => name.sequence !== 2)).toBe(false);
  expect(writer.length).toBe(2);
});
