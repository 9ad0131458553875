/** Hashes and sets in all of their forms behave as JavaScript's Map and Set do. */

import { describe, expect, test } from "vitest";
import { anyPositions } from "../../../src/gateways/redis/collections/choose.ts";
import { formOf } from "../../../src/gateways/redis/collections/collection.ts";
import { copyCollection } from "../../../src/gateways/redis/collections/copy.ts";
import { encodingOf } from "../../../src/gateways/redis/collections/encoding.ts";
import { type Form, PACKED_HASH } from "../../../src/gateways/redis/collections/form.ts";
import { InTable } from "../../../src/gateways/redis/collections/in-table.ts";
import { Integers } from "../../../src/gateways/redis/collections/integers.ts";
import { Packed } from "../../../src/gateways/redis/collections/packed.ts";
import type { SettingChanges } from "../../../src/gateways/redis/settings.ts";
import { HASH, SET } from "../../../src/gateways/redis/tables.ts";
import { check, fc } from "../../helpers/property.ts";
import { MIB, temporaryStores } from "../../helpers/store.ts";
import { CollectionsWorld } from "./collections-world.ts";

const stores = temporaryStores();

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("latin1");
const bytes = (from: string): Buffer => Buffer.from(from, "latin1");

/** All of a form, by position. */
function contents(form: Form): [string, string][] {
  const all: [string, string][] = [];
  for (let i = 0; i < form.size; i++) {
    form.go(i);
    all.push([text(form.member), text(form.value)]);
  }
  return all;
}

const changeOf = fc.record({
  what: fc.constantFrom("set", "set", "set", "remove"),
  field: fc.oneof(fc.integer({ min: 0, max: 30 }).map(String), fc.constant("f".repeat(300))),
  value: fc.oneof(
    fc.string({ maxLength: 12, unit: "binary-ascii" }),
    fc.constantFrom("v".repeat(254), "v".repeat(255), "v".repeat(300)),
  ),
});

function apply(form: Form, { what, field, value }: { what: string; field: string; value: string }) {
  const isThere = form.find(bytes(field));
  if (what === "remove") {
    if (isThere) form.remove();
  } else if (isThere) {
    form.change(bytes(value));
  } else {
    form.add(bytes(field), bytes(value));
  }
  return isThere;
}

describe("packed", () => {
  test("is a Map in the order of insertion, with lengths of one byte and of more", () => {
    check(
      fc.property(fc.array(changeOf, { maxLength: 60 }), (changes) => {
        let form = Packed.empty(PACKED_HASH);
        const model = new Map<string, string>();
        for (const change of changes) {
          expect(apply(form, change)).toBe(model.has(change.field));
          if (change.what === "remove") model.delete(change.field);
          else model.set(change.field, change.value);
          expect(contents(form)).toEqual([...model]);
          if (form.size % 3 === 0) form = new Packed(Buffer.from(form.row()));
        }
        for (const [field, value] of model) {
          expect(form.find(bytes(field))).toBe(true);
          expect(text(form.value)).toBe(value);
        }
      }),
      200,
    );
  });
});

describe("integers", () => {
  test("are a sorted set of all widths", () => {
    const integer = fc.oneof(
      fc.bigInt({ min: -40n, max: 40n }),
      fc.constantFrom(-32769n, -32768n, 32767n, 32768n, 2n ** 31n, -(2n ** 31n) - 1n),
      fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    );
    check(
      fc.property(fc.array(fc.tuple(integer, fc.boolean()), { maxLength: 80 }), (changes) => {
        let form = Integers.empty();
        const model = new Set<bigint>();
        for (const [value, isRemoval] of changes) {
          const isThere = form.find(bytes(String(value)));
          expect(isThere).toBe(model.has(value));
          if (isRemoval) {
            if (isThere) form.remove();
            model.delete(value);
          } else {
            if (!isThere) form.add();
            model.add(value);
          }
          form = new Integers(Buffer.from(form.row()));
        }
        const sorted = [...model].sort((a, b) => (a < b ? -1 : 1));
        expect(contents(form).map(([member]) => member)).toEqual(sorted.map(String));
        expect(form.find(bytes("07"))).toBe(false);
        expect(form.find(bytes("x"))).toBe(false);
      }),
      200,
    );
  });
});

const SMALL: SettingChanges = {
  hashMaxPackedEntries: 6,
  hashMaxPackedValue: 10,
  setMaxIntsetEntries: 5,
  setMaxPackedEntries: 8,
};

describe("as commands change them", () => {
  const step = fc.record({
    what: fc.constantFrom("put", "put", "remove"),
    name: fc.oneof(
      fc.integer({ min: -5, max: 12 }).map(String),
      fc.string({ minLength: 1, maxLength: 2, unit: fc.constantFrom("a", "b", "\xff", "\0") }),
      fc.constant("long".repeat(20)),
    ),
    value: fc.string({ maxLength: 14, unit: "binary-ascii" }),
  });

  test("hashes go from form to form and stay Maps; positions have no gaps", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    let round = 0;
    check(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const key = `h${round++}`;
        const model = new Map<string, string>();
        for (const { what, name, value } of steps) {
          if (what === "put") {
            expect(world.run("hset", key, name, value)).toBe(model.has(name) ? 0 : 1);
            model.set(name, value);
          } else {
            expect(world.run("hdel", key, name)).toBe(model.delete(name) ? 1 : 0);
          }
          expect(world.run("hlen", key)).toBe(model.size);
          expect(world.run("hget", key, name)).toBe(model.get(name) ?? null);
        }
        const all = world.run("hgetall", key) as string[];
        const pairs = all.flatMap((each, i) => (i % 2 === 0 ? [[each, all[i + 1]] as const] : []));
        expect(new Map(pairs)).toEqual(model);
        expect(pairs.length).toBe(model.size);
      }),
      60,
    );
  });

  test("sets go from form to form and stay Sets", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    let round = 0;
    check(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const key = `s${round++}`;
        const model = new Set<string>();
        for (const { what, name } of steps) {
          if (what === "put") {
            expect(world.run("sadd", key, name)).toBe(model.has(name) ? 0 : 1);
            model.add(name);
          } else {
            expect(world.run("srem", key, name)).toBe(model.delete(name) ? 1 : 0);
          }
          expect(world.run("scard", key)).toBe(model.size);
          expect(world.run("sismember", key, name)).toBe(model.has(name) ? 1 : 0);
        }
        const all = world.run("smembers", key) as string[];
        expect(all.toSorted()).toEqual([...model].sort());
      }),
      60,
    );
  });

  test("each form is left where Redis leaves its own, and never comes back", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    const encoding = (key: string): string =>
      world.inside(({ keys }) => {
        const { value, type } = keys.find(bytes(key))!;
        return encodingOf(value, type);
      });
    const isInTable = (key: string): boolean =>
      world.inside(({ keys }) => formOf(keys, keys.find(bytes(key))!) instanceof InTable);

    world.run("hset", "h", ...[1, 2, 3, 4, 5, 6].flatMap((i) => [`f${i}`, i]));
    expect(encoding("h")).toBe("listpack");
    world.run("hset", "h", "f7", 7);
    expect(encoding("h")).toBe("hashtable");
    world.run("hdel", "h", "f1", "f2", "f3", "f4", "f5");
    expect(encoding("h")).toBe("hashtable");
    world.run("hset", "long", "f", "x".repeat(11));
    expect(encoding("long")).toBe("hashtable");
    expect(world.rows()).toEqual({ keys: 2, members: 3, garbage: 0 });

    world.run("sadd", "s", 1, 2, 3, 4, 5);
    expect(encoding("s")).toBe("intset");
    world.run("sadd", "s", 6);
    expect([encoding("s"), isInTable("s")]).toEqual(["hashtable", false]);
    world.run("sadd", "s", 7, 8);
    expect(isInTable("s")).toBe(false);
    world.run("sadd", "s", 9);
    expect([encoding("s"), isInTable("s")]).toEqual(["hashtable", true]);
    world.run("sadd", "mixed", 1, 2, "x");
    expect(encoding("mixed")).toBe("hashtable");
    world.run("srem", "mixed", "x");
    expect(encoding("mixed")).toBe("hashtable");
    world.run("sadd", "longer", "x".repeat(65));
    expect(isInTable("longer")).toBe(true);
  });

  test("a change of a large hash's field is a change of its key", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    const version = (): string =>
      world.inside(({ keys }) => {
        keys.findVersion(bytes("h"));
        return `${keys.versionHigh}.${keys.versionLow}`;
      });
    world.run("hset", "h", "f", "x".repeat(11));
    const before = version();
    expect(version()).toBe(before);
    world.run("hset", "h", "f", "y".repeat(11));
    expect(version()).not.toBe(before);
  });

  test("a key keeps its time, and goes with its last member", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    const later = Date.now() + 1e6;
    for (const name of ["f", "x".repeat(20)]) {
      world.run("hset", "h", name, 1);
      world.inside(({ keys }) => keys.expire(bytes("h"), keys.find(bytes("h"))!, later));
      world.run("hset", "h", "more", 1);
      expect(world.inside(({ keys }) => keys.find(bytes("h"))!.expires)).toBe(later);
      world.run("hdel", "h", name, "more");
      expect(world.inside(({ keys }) => keys.typeOf(bytes("h")))).toBe(0);
    }
    expect(world.rows()).toMatchObject({ keys: 0, members: 0 });
  });

  test("a copy has members of its own", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    const fields = Array.from({ length: 20 }, (_, i) => [`f${i}`, `v${i}`]).flat();
    world.run("hset", "from", ...fields);
    world.run("sadd", "small", 1, 2);
    world.inside(({ keys }) => {
      keys.put(bytes("to"), HASH, copyCollection(keys, keys.find(bytes("from"))!));
      keys.put(bytes("tiny"), SET, copyCollection(keys, keys.find(bytes("small"))!));
    });
    world.run("hset", "from", "f0", "changed");
    world.run("sadd", "small", 3);
    expect(world.run("hgetall", "to")).toEqual(fields);
    expect(world.run("smembers", "tiny")).toEqual(["1", "2"]);
    expect(world.rows().members).toBe(40);
  });

  test("what anyone else has written as a hash is an error, not a fault", async () => {
    const world = await CollectionsWorld.open(stores, SMALL);
    for (const value of ["", "\x01", "\x02abc"]) {
      world.inside(({ keys }) => keys.put(bytes("h"), HASH, bytes(value)));
      expect(world.run("hget", "h", "f")).toEqual(
        new Error("ERR the value of this key is not in the form of a hash or set"),
      );
    }
  });

  test("too long a field or member is refused before anything changes", async () => {
    const world = await CollectionsWorld.open(stores);
    const long = "x".repeat(1_025);
    const refusal = new Error("ERR fields and members have at most 1024 bytes");
    expect(world.run("hset", "h", "f", 1, long, 2)).toEqual(refusal);
    expect(world.run("sadd", "s", "m", long)).toEqual(refusal);
    expect(world.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
    expect(world.run("hset", "h", long.slice(1), 2)).toBe(1);
    expect(world.run("hget", "h", long.slice(1))).toBe("2");
    expect(world.run("hget", "h", long)).toBeNull();
    expect(world.run("srem", "h2", long)).toBe(0);
  });

  test("30,000 members are read in one command", async () => {
    const world = await CollectionsWorld.open(stores, {}, { memoryBytes: 64 * MIB });
    for (let from = 0; from < 30_000; from += 1_000) {
      const names = Array.from({ length: 1_000 }, (_, i) => `member:${from + i}`);
      expect(world.run("sadd", "s", ...names)).toBe(1_000);
      expect(world.run("hset", "h", ...names.flatMap((name) => [name, name]))).toBe(1_000);
    }
    expect(new Set(world.run("smembers", "s") as string[]).size).toBe(30_000);
    const all = world.run("hgetall", "h") as string[];
    expect(all.length).toBe(60_000);
    expect(all.every((each, i) => each === all[i - (i % 2)])).toBe(true);
    expect((world.run("sdiff", "s", "nothing") as string[]).length).toBe(30_000);
  });
});

test("any positions are equally likely", () => {
  const met = new Map<string, number>();
  for (let i = 0; i < 6_000; i++) {
    const chosen = anyPositions(5, 2);
    expect(chosen[0]).toBeGreaterThan(chosen[1]);
    met.set(chosen.join(), (met.get(chosen.join()) ?? 0) + 1);
  }
  // Ten pairs, 600 of each expected, standard deviation 23.
  expect(met.size).toBe(10);
  for (const times of met.values()) expect(Math.abs(times - 600)).toBeLessThan(150);
});
