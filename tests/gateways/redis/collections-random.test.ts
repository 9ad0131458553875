/** Members at random: as many as asked for, no others, and in every form each with the same chance. */

import { describe, expect, test } from "vitest";
import { temporaryStores } from "../../helpers/store.ts";
import { CollectionsWorld } from "./collections-world.ts";

const stores = temporaryStores();

const FORMS = [
  { form: "integers", members: Array.from({ length: 100 }, (_, i) => String(i * 1_000)) },
  { form: "packed", members: Array.from({ length: 100 }, (_, i) => `m${i}`) },
  { form: "in a table", members: Array.from({ length: 300 }, (_, i) => `m${i}`) },
];

describe.each(FORMS)("$form", ({ members }) => {
  test("SRANDMEMBER with a count gives different members, and repeats if it is negative", async () => {
    const world = await CollectionsWorld.open(stores);
    world.run("sadd", "s", ...members);
    const all = new Set(members);
    for (const count of [1, 2, 50, members.length - 1, members.length, members.length + 5]) {
      const found = world.run("srandmember", "s", count) as string[];
      expect(found.length).toBe(Math.min(count, members.length));
      expect(new Set(found).size).toBe(found.length);
      expect(found.filter((each) => !all.has(each))).toEqual([]);
      const draws = world.run("srandmember", "s", -count * 3) as string[];
      expect(draws.length).toBe(count * 3);
      expect(draws.filter((each) => !all.has(each))).toEqual([]);
    }
    expect(world.run("scard", "s")).toBe(members.length);
  });

  test("every member has the same chance", async () => {
    const world = await CollectionsWorld.open(stores);
    world.run("sadd", "s", ...members);
    const { length } = members;
    const times = new Map<string, number>();
    for (let i = 0; i < 100; i++) {
      const draws = world.run("srandmember", "s", -length) as string[];
      for (const each of draws) times.set(each, (times.get(each) ?? 0) + 1);
    }
    // Pearson's chi-square over all members, each expected 100 times: mean length − 1, standard
    // deviation √(2 (length − 1)); six of those are a chance of about one in a billion.
    let chiSquare = 0;
    for (const each of members) chiSquare += ((times.get(each) ?? 0) - 100) ** 2 / 100;
    expect(chiSquare).toBeLessThan(length - 1 + 6 * Math.sqrt(2 * (length - 1)));
  });

  test("SPOP takes out what it gives, until nothing is left", async () => {
    const world = await CollectionsWorld.open(stores);
    world.run("sadd", "s", ...members);
    const left = new Set(members);
    for (const count of [0, 1, 20, 33, 7]) {
      const found = world.run("spop", "s", count) as string[];
      expect(found.length).toBe(count);
      for (const each of found) expect(left.delete(each)).toBe(true);
      const one = world.run("spop", "s") as string;
      expect(left.delete(one)).toBe(true);
      expect(world.run("scard", "s")).toBe(left.size);
      expect(new Set(world.run("smembers", "s") as string[])).toEqual(left);
    }
    const rest = world.run("spop", "s", 1_000) as string[];
    expect(new Set(rest)).toEqual(left);
    expect(world.run("spop", "s")).toBeNull();
    expect(world.run("spop", "s", 5)).toEqual([]);
    expect(world.rows().keys).toBe(0);
  });

  test("HRANDFIELD gives fields with their values", async () => {
    const world = await CollectionsWorld.open(stores);
    world.run("hset", "h", ...members.flatMap((each) => [each, `value of ${each}`]));
    for (const count of [3, -500, 1_000]) {
      const found = world.run("hrandfield", "h", count, "withvalues") as string[];
      expect(found.length).toBe(2 * (count < 0 ? -count : Math.min(count, members.length)));
      for (let i = 0; i < found.length; i += 2) {
        expect(members).toContain(found[i]);
        expect(found[i + 1]).toBe(`value of ${found[i]}`);
      }
    }
  });
});
