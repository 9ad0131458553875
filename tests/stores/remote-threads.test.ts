/** Lookups by verbs while other threads write: what they find, and prove, was there. */

import { describe, expect, it } from "vitest";
import { Random } from "../../src/runtime/random.ts";
import { openRemote, readAlone } from "../../src/stores/remote/open.ts";
import type { Found } from "../../src/stores/remote/remote.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { areCurrent, serve } from "../helpers/remote.ts";
import { MIB, seed, temporaryStores } from "../helpers/store.ts";
import { openExecutor } from "../helpers/store-engine.ts";
import { startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

/** Every version of a row is right in itself, and those of a key have rising numbers. */
const WRITER = `
  const { open, table, u32, bytes } = situ;
  const { layout } = data;
  const Pair = table("pair", { id: u32(), value: u32(), check: u32() }, { key: "id", layout });
  const Blob = table("blob", { id: u32(), value: u32(), data: bytes() }, { key: "id", layout });
  const db = await open({ path: data.path, tables: [Pair, Blob] });
  const stop = new Int32Array(data.stop);
  let seed = data.seed, commits = 0;
  const below = (n) => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0, (seed >>> 8) % n);
  const filled = (id, value) => new Uint8Array(1 + (value * 37) % 400).fill((id + value) & 255);
  port.postMessage("ready");
  for (let value = 1; Atomics.load(stop, 0) === 0; value++) {
    // The even keys are this writer's or the other's; all others come and go.
    const id = 4 * below(data.keys) + 2 * data.half;
    const other = 2 * below(4 * data.keys + (value >> 2)) + 1;
    db.transactSync((tx) => {
      tx.put(Pair, { id, value, check: id ^ value });
      tx.put(Blob, { id, value, data: filled(id, value) });
      if (value % 3 === 0) { tx.delete(Pair, other); tx.delete(Blob, other); }
      else {
        tx.put(Pair, { id: other, value, check: other ^ value });
        tx.put(Blob, { id: other, value, data: filled(other, value) });
      }
    });
    commits++;
  }
  await db.close();
  return commits;`;

const KEYS = 100;

describe.each(["hopscotch", "buckets"] as const)("%s", (layout) => {
  it("keys that exist are found, in rising versions, none of them torn", async () => {
    const Pair = table("pair", { id: u32(), value: u32(), check: u32() }, { key: "id", layout });
    const Blob = table("blob", { id: u32(), value: u32(), data: bytes() }, { key: "id", layout });
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Pair, Blob], memoryBytes: 128 * MIB });
    db.transactSync((tx) => {
      for (let id = 0; id < 4 * KEYS; id += 2) {
        tx.put(Pair, { id, value: 0, check: id });
        tx.put(Blob, { id, value: 0, data: new Uint8Array([id & 255]) });
      }
    });
    const executor = await openExecutor(stores, path);
    const { memory } = executor;
    const remoteOf = (each: Table<never, number>) => {
      const { structure, root } = openTable(executor, each as unknown as Table);
      const codec = codecOf(each);
      return { codec, store: openRemote(structure.describeRemote(executor, root)!, codec) };
    };
    const pairs = remoteOf(Pair as never);
    const blobs = remoteOf(Blob as never);
    const stop = new SharedArrayBuffer(4);
    const writers = [0, 1].map((half) => {
      const data = { path, stop, layout, half, keys: KEYS, seed: seed + half };
      return startWorker(stores, WRITER, data);
    });
    await Promise.all(
      writers.map(({ worker }) => new Promise((resolve) => worker.once("message", resolve))),
    );
    const random = new Random(seed);
    const last = new Map<string, number>();
    const tally = { found: 0, locked: 0, current: 0, absent: 0, moved: 0 };
    const wrong: string[] = [];

    const look = (what: string, { codec, store }: typeof pairs, id: number): void => {
      const isAlone = random.below(2) === 0;
      const found: Found = serve(memory, isAlone ? readAlone(store, id) : store.lookup(id));
      if (found.outcome === "locked") tally.locked++;
      if (found.outcome !== "found" && found.outcome !== "absent") return;
      const isTrue = found.isProved || areCurrent(memory, found.dependencies);
      if (!isTrue) tally.moved++;
      if (!isTrue) return;
      if (!found.isProved) tally.current++;
      tally[found.outcome]++;
      if (found.outcome === "absent") {
        if (id % 2 === 0) wrong.push(`${what} ${id} was not found`);
        return;
      }
      const row = codec.decode(found.views, found.at, found.words) as {
        id: number;
        value: number;
        check?: number;
        data?: Uint8Array;
      };
      const isSound =
        row.data === undefined
          ? row.check === (row.id ^ row.value) >>> 0
          : row.data.length === (row.value === 0 ? 1 : 1 + ((row.value * 37) % 400)) &&
            row.data.every((byte) => byte === ((row.id + row.value) & 255));
      if (row.id !== id || !isSound) wrong.push(`${what} ${id} is torn: ${JSON.stringify(row)}`);
      if (id % 2 === 1) return;
      if (row.value < (last.get(what + id) ?? 0)) wrong.push(`${what} ${id} went back`);
      last.set(what + id, row.value);
    };

    for (let n = 0; n < 40_000; n++) {
      const id = random.below(3) > 0 ? 2 * random.below(2 * KEYS) : 2 * random.below(10 * KEYS) + 1;
      look("pair", pairs, id);
      if (n % 2 === 0) look("blob", blobs, id);
    }
    Atomics.store(new Int32Array(stop), 0, 1);
    for (const { result } of writers) expect(await result).toBeGreaterThan(100);
    expect(wrong.slice(0, 10)).toEqual([]);
    expect(tally.found).toBeGreaterThan(10_000);
    expect(tally.absent).toBeGreaterThan(100);
    expect(pairs.store.heads).toBeGreaterThan(1);
  });
});
