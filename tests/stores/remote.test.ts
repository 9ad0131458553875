/**
 * Lookups by verbs against the table they look into: in peace, and with transactions between any
 * two reads, which insert, remove, grow rows, make chains and split shards.
 */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { INSTALLING, LOCK, lockWord } from "../../src/memory/object.ts";
import { MAX_VERB_WORDS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { openRemote, readAlone } from "../../src/stores/remote/open.ts";
import {
  confirm,
  describeRemote,
  type Found,
  type RemoteStore,
} from "../../src/stores/remote/remote.ts";
import type { RowCodec } from "../../src/stores/store.ts";
import { check, fc } from "../helpers/property.ts";
import { answer, areCurrent, readSet, serve, shown } from "../helpers/remote.ts";
import { seed, temporaryStores } from "../helpers/store.ts";
import { createBuckets } from "../helpers/store-buckets.ts";
import { createTable, openExecutor, rehashed, run } from "../helpers/store-engine.ts";
import { COLLISIONS, Inline, Variable, Wide } from "../helpers/store-model.ts";

const stores = temporaryStores();

const LAYOUTS = ["hopscotch", "buckets"] as const;
type Layout = (typeof LAYOUTS)[number];

const TABLES = {
  "rows in their buckets": {
    table: Inline,
    row: (id: number, value: number) => ({ id, value }),
  },
  "rows of one size in objects": {
    table: Wide,
    row: (id: number, value: number) => ({ id, a: "a".repeat(value % 201), value }),
  },
  "rows of many sizes": {
    table: Variable,
    row: (id: number, value: number) => ({ id, text: "é".repeat(value) }),
  },
} as const;

type AnyRow = { id: number };
type AnyCodec = RowCodec<AnyRow, number>;
type Shape = (id: number, value: number) => AnyRow;

/** A table, and a view of it from afar. */
async function tableOf(layout: Layout, codec: AnyCodec, other: AnyCodec) {
  const executor = await openExecutor(stores, stores.folder());
  const create = () =>
    layout === "buckets" ? createBuckets(executor, codec) : createTable(executor, codec);
  const open = ({ root }: { root: ReturnType<typeof create>["root"] }): RemoteStore<number> =>
    openRemote(
      // Through JSON, as a node would tell it.
      JSON.parse(JSON.stringify(describeRemote(layout, codec.fixedWords, root, executor.memory))),
      other,
    );
  return { executor, create, open };
}

function rowIn(codec: AnyCodec, { outcome, views, at, words }: Found): AnyRow | undefined {
  return outcome === "found" ? codec.decode(views, at, words) : undefined;
}

describe.each(LAYOUTS)("%s", (layout) => {
  describe.each(Object.keys(TABLES) as (keyof typeof TABLES)[])("%s", (kind) => {
    const table = TABLES[kind].table as never;
    const shape = TABLES[kind].row as Shape;
    const isInline = kind === "rows in their buckets";

    it("finds what is there, by a directory of its own that learns of splits", async () => {
      const codec: AnyCodec = rehashed(table, (hash) => hash);
      const afar: AnyCodec = rehashed(table, (hash) => hash);
      const { executor, create, open } = await tableOf(layout, codec, afar);
      const under = create();
      const { tx, store } = under;
      const remote = open(under);
      const { memory } = executor;
      const random = new Random(seed);
      const model = new Map<number, number>();
      const keys = isInline ? 6_000 : 2_500;
      for (let round = 0; round < 12; round++) {
        for (let step = 0; step < keys / 8; step++) {
          const id = random.below(keys);
          const value = random.below(random.below(10) === 0 ? 3_000 : 100);
          if (random.below(4) === 0) {
            run(executor, tx, () => store.remove(tx, id));
            model.delete(id);
          } else {
            run(executor, tx, () => store.put(tx, shape(id, value)));
            model.set(id, value);
          }
          store.maintain();
        }
        for (let n = 0; n < 400; n++) {
          const id = random.below(keys);
          const value = model.get(id);
          const found = serve(memory, remote.lookup(id));
          assert.equal(found.outcome, value === undefined ? "absent" : "found");
          assert.deepEqual(rowIn(afar, found), value === undefined ? undefined : shape(id, value));
          assert(areCurrent(memory, found.dependencies));
          assert(serve(memory, confirm(found.dependencies)));
          // The same as a local transaction depends on, and what leads there, where that can move.
          const local = run(executor, tx, () => {
            store.read(tx, id);
            return readSet(tx);
          });
          const dependencies = shown(found.dependencies);
          if (layout === "buckets" || found.isProved) assert.deepEqual(dependencies, local);
          else for (const each of local) assert(dependencies.includes(each));
          const alone = serve(memory, readAlone(remote, id));
          assert.equal(alone.isProved, true);
          assert.deepEqual(rowIn(afar, alone), rowIn(afar, found));
        }
      }
      // One head for each shard, and one more for each split of a shard that was known.
      expect(remote.heads).toBeGreaterThan(2);
      expect(remote.heads).toBeLessThan(200);
    });

    it.each(Object.keys(COLLISIONS))(
      "is right or not believed, with changes between the reads, and %s",
      async (name) => {
        const codec: AnyCodec = rehashed(table, COLLISIONS[name]);
        const afar: AnyCodec = rehashed(table, COLLISIONS[name]);
        const { executor, create, open } = await tableOf(layout, codec, afar);
        const { memory } = executor;
        let proved = 0;
        let believed = 0;
        check(
          fc.property(fc.integer(), (chosen) => {
            const random = new Random(chosen);
            const under = create();
            const { tx, store } = under;
            const remote = open(under);
            const model = new Map<number, number>();
            // Most often some more than a bucket holds, so that pairs move between it and its chain.
            const keys = 1 + random.below(random.below(4) > 0 ? 40 : 400);
            /** What the key that is looked for has been, from the start of its lookup on. */
            let wanted = -1;
            const history: (number | undefined)[] = [];
            const change = (): void => {
              run(executor, tx, () => {
                for (let left = 1 + random.below(3); left > 0; left--) {
                  const id = random.below(3) === 0 && wanted >= 0 ? wanted : random.below(keys);
                  const value = random.below(random.below(8) === 0 ? 2_000 : 60);
                  if (random.below(3) === 0) {
                    store.remove(tx, id);
                    model.delete(id);
                  } else {
                    store.put(tx, shape(id, value));
                    model.set(id, value);
                  }
                }
              });
              store.maintain();
              history.push(model.get(wanted));
            };
            for (let n = 0; n < keys; n++) change();
            for (let lookup = 0; lookup < 60; lookup++) {
              wanted = random.below(keys);
              history.length = 0;
              history.push(model.get(wanted));
              const some = random.below(4);
              const isAlone = random.below(2) === 0;
              const reading = isAlone ? readAlone(remote, wanted) : remote.lookup(wanted);
              const found = serve(memory, reading, () => {
                for (let left = random.below(some + 1); left > 0; left--) change();
              });
              if (found.outcome === "locked" || found.outcome === "ask") continue;
              const row = rowIn(afar, found);
              const rowOf = (value: number | undefined): AnyRow | undefined =>
                value === undefined ? undefined : shape(wanted, value);
              // At least one of them is needed for anything, and all together prove it.
              assert(found.dependencies.length > 0);
              if (areCurrent(memory, found.dependencies)) {
                assert.deepEqual(row, rowOf(model.get(wanted)));
                believed++;
              }
              if (found.isProved) {
                const was = history.some((value) => isSame(row, rowOf(value)));
                assert(was, `${JSON.stringify(row)} was never there`);
                proved++;
              }
            }
          }),
          isInline ? 10 : 5,
        );
        expect(believed).toBeGreaterThan(10);
        if (isInline) expect(proved).toBeGreaterThan(10);
      },
    );
  });

  it("many lookups take turns on one codec and one directory, while shards are split", async () => {
    const codec: AnyCodec = rehashed(Variable as never, (hash) => hash);
    const { executor, create, open } = await tableOf(layout, codec, codec);
    const { memory } = executor;
    const under = create();
    const { tx, store } = under;
    const textOf = (id: number): string => "x".repeat(id % 290);
    let rows = 0;
    const insert = (): void => {
      const id = rows++;
      run(executor, tx, () => store.put(tx, { id, text: textOf(id) } as AnyRow));
      store.maintain();
    };
    while (rows < 400) insert();
    const remote = open(under);
    const random = new Random(seed);
    const begin = () => {
      // Rows that were there when it began, and some that never are.
      const id = random.below(5) === 0 ? 1_000_000 + random.below(1_000) : random.below(rows);
      const reading = remote.lookup(id);
      return { id, reading, step: reading.next([]) };
    };
    const running = Array.from({ length: 64 }, begin);
    let believed = 0;
    while (rows < 4_000) {
      if (random.below(8) === 0) insert();
      const at = random.below(running.length);
      const each = running[at];
      if (each.step.done !== true) {
        each.step = each.reading.next(each.step.value.map((wanted) => answer(memory, wanted)));
        continue;
      }
      const found = each.step.value;
      running[at] = begin();
      if (found.outcome === "locked" || !areCurrent(memory, found.dependencies)) continue;
      const wanted = each.id < 1_000_000 ? { id: each.id, text: textOf(each.id) } : undefined;
      assert.deepEqual(rowIn(codec, found), wanted);
      believed++;
    }
    expect(believed).toBeGreaterThan(1_000);
    expect(remote.heads).toBeGreaterThan(3);
  });

  it("is told when an object is locked, and when a row is too large for a verb", async () => {
    const codec: AnyCodec = rehashed(Variable as never, (hash) => hash);
    const { executor, create, open } = await tableOf(layout, codec, codec);
    const { memory } = executor;
    const under = create();
    const { tx, store } = under;
    const text = "x".repeat(4 * MAX_VERB_WORDS);
    run(executor, tx, () => store.put(tx, { id: 1, text: "small" } as AnyRow));
    run(executor, tx, () => store.put(tx, { id: 2, text } as AnyRow));
    run(executor, tx, () => store.put(tx, { id: 3, text: text.repeat(15) } as AnyRow));
    const remote = open(under);
    expect(serve(memory, remote.lookup(2)).outcome).toBe("ask");
    expect(serve(memory, remote.lookup(3)).outcome).toBe("ask");
    const small = serve(memory, remote.lookup(1));
    expect(rowIn(codec, small)).toEqual({ id: 1, text: "small" });
    for (const { regionId, word } of small.dependencies) {
      const { i32 } = memory.region(regionId);
      Atomics.store(i32, word + LOCK, lockWord(executor.slot, INSTALLING));
      expect(serve(memory, remote.lookup(1))).toMatchObject({
        outcome: "locked",
        dependencies: [],
      });
      expect(serve(memory, confirm(small.dependencies))).toBe(false);
      Atomics.store(i32, word + LOCK, 0);
    }
    expect(serve(memory, readAlone(remote, 1))).toMatchObject({ outcome: "found", isProved: true });
    // A change between the lookup and its confirmation.
    let reads = 0;
    const late = serve(memory, readAlone(remote, 1), () => {
      if (++reads < small.reads + 1) return;
      run(executor, tx, () => store.put(tx, { id: 1, text: "other" } as AnyRow));
    });
    expect(late.outcome === "locked" || layout === "hopscotch").toBe(true);
  });
});

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
