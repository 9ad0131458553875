/** HSCAN and SSCAN meet every member that stays, whatever comes and goes between their steps. */

import { expect, test } from "vitest";
import { check, fc } from "../../helpers/property.ts";
import { temporaryStores } from "../../helpers/store.ts";
import { CollectionsWorld } from "./collections-world.ts";

const stores = temporaryStores();

/** A whole iteration; `between` runs after every step. */
function scanAll(
  world: CollectionsWorld,
  command: "hscan" | "sscan",
  options: (string | number)[] = [],
  between: () => void = () => {},
): string[] {
  const met: string[] = [];
  let cursor = "0";
  for (let steps = 0; steps < 5_000; steps++) {
    const [next, found] = world.run(command, "k", cursor, ...options) as [string, string[]];
    met.push(...found);
    if (next === "0") return met;
    cursor = next;
    between();
  }
  throw new Error("the iteration does not end");
}

test("members that stay are met, while others are added and removed", async () => {
  const world = await CollectionsWorld.open(stores);
  const change = fc.record({
    remove: fc.array(fc.integer({ min: 0, max: 299 }), { maxLength: 40 }),
    add: fc.array(fc.integer({ min: 300, max: 600 }), { maxLength: 10 }),
  });
  const staying = Array.from({ length: 60 }, (_, i) => `stays${i}`);
  const leaving = Array.from({ length: 300 }, (_, i) => `m${i}`);
  check(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 10 }),
      fc.integer({ min: 1, max: 40 }),
      fc.nat(),
      (changes, count, place) => {
        world.inside(({ keys }) => keys.remove(Buffer.from("k")));
        const first = place % leaving.length;
        world.run("sadd", "k", ...leaving.slice(0, first), ...staying, ...leaving.slice(first));
        let round = 0;
        const met = scanAll(world, "sscan", ["count", count], () => {
          const { remove, add } = changes[round++ % changes.length];
          if (remove.length > 0) world.run("srem", "k", ...remove.map((i) => `m${i}`));
          if (add.length > 0) world.run("sadd", "k", ...add.map((i) => `m${i}`));
        });
        const all = new Set(met);
        expect(staying.filter((each) => !all.has(each))).toEqual([]);
      },
    ),
    25,
  );
});

test.each([10, 1_000])(
  "all of %i members and their values, once if nothing changes",
  async (size) => {
    const world = await CollectionsWorld.open(stores);
    const pairs = Array.from({ length: size }, (_, i) => [`f${i}`, `v${i}`]);
    world.run("hset", "k", ...pairs.flat());
    const met = scanAll(world, "hscan");
    expect(met.length).toBe(2 * size);
    expect(met.toSorted()).toEqual(pairs.flat().sort());
    const matched = scanAll(world, "hscan", ["match", "f?", "count", 7]);
    expect(matched.length).toBe(20);
  },
);

test("steps of a large one have as many members as COUNT says", async () => {
  const world = await CollectionsWorld.open(stores);
  world.run("sadd", "k", ...Array.from({ length: 1_000 }, (_, i) => `m${i}`));
  const lengthOf = (...args: (string | number)[]): number =>
    (world.run("sscan", "k", ...args) as [string, string[]])[1].length;
  expect(lengthOf(0)).toBe(10);
  expect(lengthOf(0, "count", 100)).toBe(100);
  expect(lengthOf(0, "count", 5_000)).toBe(1_000);
  // A cursor of another time, when there were more of them.
  expect(lengthOf("18446744073709551615", "count", 30)).toBe(30);
});
