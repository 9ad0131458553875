/** Transactions that read from a snapshot and write: the first committer wins. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ConflictError } from "../../src/runtime/errors.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import { growthOf, LIFE_MS, read, TINY, Worker, write } from "../helpers/snapshots.ts";

let store: EngineStore;
let writer: Worker;
let reader: Worker;

function start(geometry = TINY): void {
  store?.dispose();
  store = new EngineStore(geometry);
  writer = new Worker(store);
  reader = new Worker(store);
}

beforeEach(() => start());
afterEach(() => store.dispose());

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("a transaction that reads from a snapshot and writes", () => {
  test("the first committer wins: the second starts again, from a newer snapshot", () => {
    const [x] = writer.create([0]);
    let attempts = 0;
    reader.run((tx) => {
      attempts++;
      tx.readsOnly = true;
      const value = read(tx, x)!;
      if (attempts === 1) writer.write(x, 10);
      tx.readsOnly = true;
      expect(read(tx, x)).toBe(value);
      tx.readsOnly = false;
      write(tx, x, value + 1);
    }, LIFE_MS);
    expect(attempts).toBe(2);
    expect(reader.read(x)).toBe(11);
    expect(reader.open).toBe(0);
  });

  test("who commits between the write and the commit wins as well", () => {
    const [x] = writer.create([0]);
    let attempts = 0;
    reader.run((tx) => {
      attempts++;
      tx.readsOnly = true;
      const value = read(tx, x)!;
      tx.readsOnly = false;
      write(tx, x, value + 1);
      if (attempts === 1) writer.write(x, 10);
    }, LIFE_MS);
    expect(attempts).toBe(2);
    expect(reader.read(x)).toBe(11);
  });

  test("a blind write, too, loses against one after the snapshot", () => {
    const [x] = writer.create([0]);
    let attempts = 0;
    reader.run((tx) => {
      if (++attempts === 1) writer.write(x, 10);
      tx.readsOnly = false;
      write(tx, x, 5);
    }, LIFE_MS);
    expect(attempts).toBe(2);
    expect(reader.read(x)).toBe(5);
  });

  test("what is only read may change: write skew, which the default prevents", () => {
    const skew = (snapshotMs: number): number[] => {
      const [x, y] = writer.create([1, 1]);
      let attempts = 0;
      reader.run((tx) => {
        attempts++;
        tx.readsOnly = true;
        const sum = read(tx, x)! + read(tx, y)!;
        if (attempts === 1) writer.write(y, 0);
        tx.readsOnly = false;
        if (sum === 2) write(tx, x, 0);
      }, snapshotMs);
      return [attempts, reader.read(x)!, reader.read(y)!];
    };
    expect(skew(LIFE_MS)).toEqual([1, 0, 0]);
    expect(skew(0)).toEqual([2, 1, 0]);
  });

  test("it sees its own writes, and one moment of all else", () => {
    const [x, y, z] = writer.create([1, 2, 3]);
    reader.run((tx) => {
      tx.readsOnly = false;
      write(tx, x, 100);
      writer.write(y, 20);
      writer.write(z, 30);
      tx.readsOnly = true;
      expect([x, y, z].map((place) => read(tx, place))).toEqual([100, 2, 3]);
    }, LIFE_MS);
    expect([x, y, z].map((place) => reader.read(place))).toEqual([100, 20, 30]);
  });

  test("reading never ends it, however often others write", () => {
    const places = writer.create(upTo(40));
    let attempts = 0;
    const growth = growthOf(writer, () => {
      reader.run((tx) => {
        attempts++;
        for (let round = 0; round < 3; round++) {
          for (const place of places) writer.write(place, 1_000 + round);
          expect(places.map((place) => read(tx, place))).toEqual(upTo(40));
        }
      }, LIFE_MS);
    });
    expect(attempts).toBe(1);
    expect(growth.conflicts).toBe(0);
  });

  test("one who never gets through fails with SITU_CONFLICT, and leaves no snapshot behind", () => {
    const [x] = writer.create([0]);
    const never = (): void => {
      reader.run((tx) => {
        writer.write(x, writer.read(x)! + 1);
        tx.readsOnly = false;
        write(tx, x, 5);
      }, LIFE_MS);
    };
    expect(never).toThrow(ConflictError);
    expect(reader.open).toBe(0);
  });
});
