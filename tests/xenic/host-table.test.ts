/** The host's Robin Hood table against a Map, as its workers write it and as its NIC's reads find rows in it. */

import { expect, it } from "vitest";
import { CachingIndex } from "../../src/protocols/xenic/caching-index.ts";
import { lookUpInHost } from "../../src/protocols/xenic/host-lookup.ts";
import { HostTable } from "../../src/protocols/xenic/host-table.ts";
import { MAX_DISPLACEMENT } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { seed } from "../helpers/store.ts";

/** What a NIC finds that can only read memory. */
function lookUp(table: HostTable, index: CachingIndex, key: number): Int32Array | undefined {
  const home = table.homeOf(key);
  const lookup = lookUpInHost(index, table.segmentOf(home), home);
  let found: Int32Array | undefined;
  for (let step = lookup.next(); step.done !== true; ) {
    const answer = table.read(step.value, key);
    found = answer.row?.value ?? found;
    step = lookup.next(answer);
  }
  return found;
}

it("rows that are written, removed and written again, in a table that is fuller than it was made for", () => {
  const random = new Random(seed);
  const table = new HostTable({ rows: 60, valueWords: 1 });
  const index = new CachingIndex({
    memoryBytes: 4_096,
    segments: table.segments,
    keyWords: 1,
    valueWords: 1,
  });
  const model = new Map<number, number>();
  for (let step = 1; step <= 6_000; step++) {
    const key = random.below(140);
    // More rows than slots at times, and few at others.
    const isRemoved = random.below(100) < (step % 2_000 < 1_000 ? 30 : 70);
    if (isRemoved) model.delete(key);
    else model.set(key, step);
    table.apply(key, { high: 1, low: step }, isRemoved ? null : new Int32Array([step]));
    const asked = random.below(140);
    expect(table.get(asked)?.value[0]).toBe(model.get(asked));
    expect(lookUp(table, index, asked)?.[0]).toBe(model.get(asked));
  }
  expect(new Map([...table.rows()].map(({ key, value }) => [key, value[0]]))).toEqual(model);
  for (let slot = 0; slot < table.slots; slot++) {
    const home = table.homeAt(slot);
    if (home >= 0) expect(slot - home).toBeLessThan(MAX_DISPLACEMENT);
  }
});
