/** FaRM's objects: allocate, read, write, free, through pointers that outlive their objects. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { regionIdOf, wordOf } from "../../src/memory/address.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytes, pointer, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failure, failureSync, MIB, seed, temporaryStores } from "../helpers/store.ts";
import { startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Root = table("root", { name: bytes(8), first: pointer(), count: u32() }, { key: "name" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });

const opened = (path = stores.folder(), memoryBytes = 16 * MIB): Promise<Database> =>
  stores.open({ path, tables: [Root, Blob], memoryBytes });

const data = (length: number, from = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (from + index) & 255);

const LARGEST = MIB - 16;

describe("one object", () => {
  it.each([1, 7, 8, 9, 48, 49, 100, 5_000, 70_000, LARGEST])("of %i bytes", async (size) => {
    const db = await opened();
    const p = db.transactSync((tx) => {
      const made = tx.alloc(size);
      expect(tx.read(made)).toEqual(new Uint8Array(size));
      tx.write(made, data(size));
      expect(Buffer.compare(tx.read(made), data(size))).toBe(0);
      return made;
    });
    expect(p.size).toBe(size);
    expect(p.count).toBe(0);
    expect(Buffer.compare(db.readObject(p), data(size))).toBe(0);
    const copy = db.readObject(p);
    copy.fill(0);
    expect(Buffer.compare(db.readObject(p), data(size))).toBe(0);
    // A shorter write changes the first bytes only; none is allowed as well.
    db.transactSync((tx) => {
      tx.write(p, new Uint8Array([99]));
      tx.write(p, new Uint8Array());
    });
    const after = data(size);
    after[0] = 99;
    expect(Buffer.compare(db.readObject(p), after)).toBe(0);
    db.transactSync((tx) => tx.free(p));
    const error = failureSync("SITU_FREED", () => db.readObject(p));
    expect(error.message).toMatch(/was freed/);
    failureSync("SITU_FREED", () => db.transactSync((tx) => tx.read(p)));
    failureSync("SITU_FREED", () => db.transactSync((tx) => tx.write(p, new Uint8Array(1))));
    failureSync("SITU_FREED", () => db.transactSync((tx) => tx.free(p)));
  });

  it("sizes that make no sense", async () => {
    const db = await opened();
    for (const size of [0, -1, 1.5, LARGEST + 1, Number.NaN, "8" as never, undefined as never]) {
      const code = size > LARGEST ? "SITU_TOO_LARGE" : "SITU_TYPE";
      const error = failureSync(code, () => db.transactSync((tx) => tx.alloc(size)));
      expect(error.message).toMatch(/1 to 1048560 bytes/);
    }
    const p = db.transactSync((tx) => tx.alloc(10));
    const long = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => tx.write(p, data(11))),
    );
    expect(long.message).toMatch(/11 bytes do not fit/);
    failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.write(p, "text" as never)));
    failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.write(p, [1] as never)));
    expect(db.readObject(p)).toEqual(new Uint8Array(10));
  });

  it("what is no pointer", async () => {
    const db = await opened();
    for (const wrong of [null, undefined, 7, "p", {}]) {
      failureSync("SITU_TYPE", () => db.readObject(wrong as never));
      failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.read(wrong as never)));
      failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.free(wrong as never)));
    }
    failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.alloc(8, { near: 7 as never })));
  });

  it("pointers that were never handed out lead nowhere", async () => {
    const db = await opened();
    const p = db.transactSync((tx) => tx.alloc(100));
    const { address, size, incarnation } = p;
    const forged = [
      new Pointer((address + 8) as typeof address, size, incarnation),
      new Pointer((address + 2 ** 32) as typeof address, size, incarnation),
      new Pointer((address + 2 ** 45) as typeof address, size, incarnation),
      new Pointer(0 as typeof address, size, incarnation),
      new Pointer(address, 5_000, incarnation),
      new Pointer(address, size, incarnation + 4),
      new Pointer((address + 7 * MIB) as typeof address, size, incarnation),
    ];
    for (const wrong of forged) {
      failureSync("SITU_FREED", () => db.readObject(wrong));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.read(wrong)));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.write(wrong, data(1))));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.free(wrong)));
    }
    expect(db.readObject(p)).toEqual(new Uint8Array(100));
  });

  it("allocated, written and freed in one transaction, and thrown away", async () => {
    const db = await opened();
    const kept: Pointer[] = [];
    db.transactSync((tx) => {
      const p = tx.alloc(100);
      tx.write(p, data(100));
      tx.free(p);
      failureSync("SITU_FREED", () => tx.read(p));
      failureSync("SITU_FREED", () => tx.free(p));
      kept.push(p);
    });
    expect(() =>
      db.transactSync((tx) => {
        kept.push(tx.alloc(100), tx.alloc(200));
        throw new Error("no");
      }),
    ).toThrow("no");
    for (const p of kept) failureSync("SITU_FREED", () => db.readObject(p));
  });

  it("a free that is thrown away frees nothing", async () => {
    const db = await opened();
    const p = db.transactSync((tx) => tx.alloc(100));
    expect(() =>
      db.transactSync((tx) => {
        tx.free(p);
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(db.readObject(p)).toEqual(new Uint8Array(100));
  });

  it("a transaction that met a freed object can go on and allocate", async () => {
    const db = await opened();
    for (const size of [100, 5_000, 300_000]) {
      const p = db.transactSync((tx) => tx.alloc(size));
      db.transactSync((tx) => tx.free(p));
      const q = db.transactSync(
        (tx) => {
          failureSync("SITU_FREED", () => tx.read(p));
          return tx.alloc(size);
        },
        { timeoutMs: 500 },
      );
      expect(db.readObject(q).length).toBe(size);
      failureSync("SITU_FREED", () => db.readObject(p));
    }
  });

  it("in transact, batched like rows", async () => {
    const db = await opened();
    const [a, b] = await db.transact(async (tx) => {
      const made = await Promise.all([tx.alloc(16), tx.allocArray(8, 3)]);
      await Promise.all([tx.write(made[0], data(16)), tx.write(made[1].at(2), data(8))]);
      expect(await tx.read(made[1].at(2))).toEqual(data(8));
      return made;
    });
    expect(db.readObject(a)).toEqual(data(16));
    expect(db.readObject(b.at(2))).toEqual(data(8));
    await db.transact((tx) => tx.free(b));
    await failure("SITU_FREED", () => db.transact((tx) => tx.read(b.at(0))));
  });

  it("two transactions that write one object: one of them runs again", async () => {
    const path = stores.folder();
    const db = await opened(path);
    const other = await opened(path);
    const p = db.transactSync((tx) => tx.alloc(8));
    let runs = 0;
    db.transactSync((tx) => {
      const [before] = tx.read(p);
      if (++runs === 1) other.transactSync((its) => its.write(p, new Uint8Array([5])));
      tx.write(p, new Uint8Array([before + 1]));
    });
    expect([runs, db.readObject(p)[0]]).toEqual([2, 6]);
  });
});

describe("objects against a model", () => {
  interface Step {
    readonly kind: "alloc" | "array" | "write" | "read" | "free";
    readonly which: number;
    readonly size: number;
  }
  const step = fc.record<Step>({
    kind: fc.constantFrom("alloc", "array", "write", "write", "write", "read", "free"),
    which: fc.nat(1_000),
    size: fc.oneof(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 1, max: 9_000 })),
  });
  const transactions = fc.array(
    fc.record({ steps: fc.array(step, { maxLength: 20 }), thrownAway: fc.boolean() }),
    { maxLength: 20 },
  );

  /** What an object, or an element of an array, should hold; and the pointer that frees it. */
  interface Known {
    readonly pointer: Pointer;
    readonly owner: Pointer;
    content: Uint8Array;
  }

  it("any sequence of allocations, partial writes, reads and frees, some thrown away", async () => {
    const db = await opened(stores.folder(), 32 * MIB);
    const other = await opened(db.path);
    class Thrown extends Error {}
    check(
      fc.property(transactions, (all) => {
        let model: Known[] = [];
        const freed: Pointer[] = [];
        for (const [number, { steps, thrownAway }] of all.entries()) {
          const next = model.map((known) => ({ ...known, content: known.content.slice() }));
          const gone: Pointer[] = [];
          try {
            (number % 2 === 0 ? db : other).transactSync((tx) => {
              for (const { kind, which, size } of steps) {
                const known = next[which % Math.max(next.length, 1)];
                if (kind === "alloc") {
                  const pointer = tx.alloc(size);
                  next.push({ pointer, owner: pointer, content: new Uint8Array(size) });
                } else if (kind === "array") {
                  const owner = tx.allocArray(1 + (size % 50), 3);
                  for (const index of [0, 1, 2]) {
                    const pointer = owner.at(index);
                    next.push({ pointer, owner, content: new Uint8Array(pointer.size) });
                  }
                } else if (known !== undefined && kind === "write") {
                  const part = data(which % (known.content.length + 1), size);
                  tx.write(known.pointer, part);
                  known.content.set(part);
                } else if (known !== undefined && kind === "free") {
                  tx.free(known.owner);
                  for (let at = next.length - 1; at >= 0; at--) {
                    if (next[at].owner !== known.owner) continue;
                    gone.push(next[at].pointer);
                    next.splice(at, 1);
                  }
                } else if (known !== undefined) {
                  assert.deepEqual(tx.read(known.pointer), known.content);
                }
              }
              for (const { pointer, content } of next) assert.deepEqual(tx.read(pointer), content);
              if (thrownAway) throw new Thrown();
            });
            model = next;
            freed.push(...gone);
          } catch (error) {
            if (!(error instanceof Thrown)) throw error;
          }
          for (const { pointer, content } of model) {
            assert.deepEqual(db.readObject(pointer), content);
            assert.deepEqual(other.readObject(pointer), content);
          }
          for (const pointer of freed) assert.throws(() => other.readObject(pointer), SituError);
        }
        for (const owner of new Set(model.map((known) => known.owner))) {
          db.transactSync((tx) => tx.free(owner));
        }
      }),
      60,
    );
  });
});

describe("near", () => {
  it("puts objects of one size into one block, and others at least into the region", async () => {
    const db = await stores.open({ memoryBytes: 192 * MIB });
    const anchor = db.transactSync((tx) => tx.alloc(100));
    // Fill most of the first region, so that "anywhere" would be somewhere else.
    for (let n = 0; n < 40; n++) db.transactSync((tx) => tx.alloc(LARGEST));
    const same = db.transactSync((tx) => tx.alloc(100, { near: anchor }));
    expect(regionIdOf(same.address)).toBe(regionIdOf(anchor.address));
    expect(Math.abs(wordOf(same.address) - wordOf(anchor.address)) * 4).toBeLessThan(64 * 1024);
    const larger = db.transactSync((tx) => tx.alloc(3_000, { near: anchor }));
    expect(regionIdOf(larger.address)).toBe(regionIdOf(anchor.address));
    const array = db.transactSync((tx) => tx.allocArray(100, 10, { near: anchor }));
    expect(regionIdOf(array.address)).toBe(regionIdOf(anchor.address));
  });

  it("a hint that cannot be followed is only a hint: freed, of an array's element, full", async () => {
    const db = await opened(stores.folder(), 8 * MIB);
    const gone = db.transactSync((tx) => tx.alloc(100));
    db.transactSync((tx) => tx.free(gone));
    const array = db.transactSync((tx) => tx.allocArray(8, 4));
    for (const near of [gone, array, array.at(1)]) {
      const made = db.transactSync((tx) => tx.alloc(100, { near }));
      expect(db.readObject(made).length).toBe(100);
    }
  });
});

describe("arrays", () => {
  it.each([
    [1, 1],
    [8, 100],
    [100, 7],
    [1_000, 1_000],
    [LARGEST - 32, 1],
  ])("elements of %i bytes, %i of them", async (size, count) => {
    const db = await opened();
    const array = db.transactSync((tx) => {
      const made = tx.allocArray(size, count);
      for (let i = 0; i < count; i++) {
        expect(tx.read(made.at(i))[0]).toBe(0);
        tx.write(made.at(i), data(size, i));
      }
      expect(tx.read(made.at(count - 1))[0]).toBe((count - 1) & 255);
      return made;
    });
    expect([array.size, array.count]).toEqual([size, count]);
    for (let i = 0; i < count; i++) {
      expect(Buffer.compare(db.readObject(array.at(i)), data(size, i))).toBe(0);
    }
    const elements = [array.at(0), array.at(count - 1)];
    db.transactSync((tx) => {
      tx.free(array);
      for (const element of elements) failureSync("SITU_FREED", () => tx.read(element));
    });
    for (const element of elements) {
      failureSync("SITU_FREED", () => db.readObject(element));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.write(element, data(1))));
    }
    failureSync("SITU_FREED", () => db.transactSync((tx) => tx.free(array)));
  });

  it("elements have versions of their own: two transactions on two elements do not meet", async () => {
    const path = stores.folder();
    const db = await opened(path);
    const other = await opened(path);
    const array = db.transactSync((tx) => tx.allocArray(8, 2));
    let runs = 0;
    db.transactSync((tx) => {
      runs++;
      tx.read(array.at(0));
      other.transactSync((its) => its.write(array.at(1), data(8)));
      tx.write(array.at(0), data(8));
    });
    expect(runs).toBe(1);
  });

  it("are read, written and freed as what they are", async () => {
    const db = await opened();
    const array = db.transactSync((tx) => {
      const made = tx.allocArray(16, 4);
      failureSync("SITU_TYPE", () => tx.read(made));
      failureSync("SITU_TYPE", () => tx.write(made, data(16)));
      failureSync("SITU_TYPE", () => tx.free(made.at(1)));
      return made;
    });
    for (const work of [
      () => db.readObject(array),
      () => db.transactSync((tx) => tx.read(array)),
      () => db.transactSync((tx) => tx.write(array, data(16))),
    ]) {
      expect(failureSync("SITU_TYPE", work).message).toMatch(/is an array.*\.at\(i\)/);
    }
    const element = failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.free(array.at(0))));
    expect(element.message).toMatch(/free its array/);
    for (const index of [-1, 4, 1.5, Number.NaN, "0" as never]) {
      failureSync("SITU_TYPE", () => array.at(index));
    }
    const single = db.transactSync((tx) => tx.alloc(16));
    failureSync("SITU_TYPE", () => single.at(0));
    for (let i = 0; i < 4; i++) expect(db.readObject(array.at(i))).toEqual(new Uint8Array(16));
  });

  it("that are too large, or have no elements", async () => {
    const db = await opened();
    failureSync("SITU_TOO_LARGE", () => db.transactSync((tx) => tx.allocArray(1_000, 2_000)));
    failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.allocArray(0, 3)));
    for (const count of [0, -1, 1.5]) {
      failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.allocArray(8, count)));
    }
  });
});

describe("pointers in rows", () => {
  it("lead to their objects in every process, arrays too", async () => {
    const path = stores.folder();
    const db = await opened(path);
    const key = (text: string): Uint8Array => Buffer.from(text);
    db.transactSync((tx) => {
      const single = tx.alloc(5);
      tx.write(single, Buffer.from("hello"));
      const array = tx.allocArray(5, 2);
      tx.write(array.at(1), Buffer.from("there"));
      tx.put(Root, { name: key("single"), first: single, count: 1 });
      tx.put(Root, { name: key("array"), first: array, count: 2 });
      tx.put(Root, { name: key("element"), first: array.at(1), count: 2 });
      tx.put(Root, { name: key("null"), first: null, count: 0 });
    });
    const other = await opened(path);
    const first = (name: string): Pointer => other.get(Root, key(name))!.first!;
    expect(first("single")).toBeInstanceOf(Pointer);
    expect(Buffer.from(other.readObject(first("single"))).toString()).toBe("hello");
    expect(Buffer.from(other.readObject(first("array").at(1))).toString()).toBe("there");
    expect(Buffer.from(other.readObject(first("element"))).toString()).toBe("there");
    expect(other.get(Root, key("null"))!.first).toBeNull();
    expect(String(first("single"))).toMatch(/pointer\(0:\d+, 5 bytes\)/);
    other.transactSync((tx) => {
      tx.free(tx.get(Root, key("single"))!.first!);
      tx.update(Root, key("single"), { first: null });
    });
    expect(db.get(Root, key("single"))!.first).toBeNull();
  });
});

/** Uses all memory for rows of one size, then gives it back: blocks change their class. */
function churn(db: Database, size: number): void {
  let id = 0;
  try {
    for (; ; id++) db.transactSync((tx) => tx.insert(Blob, { id, data: data(size, id) }));
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_FULL") throw error;
  }
  while (id-- > 0) db.transactSync((tx) => tx.delete(Blob, id));
}

describe("memory that was used again", () => {
  it("by an object of the same size", async () => {
    const db = await opened();
    const stale: Pointer[] = [];
    const addresses = new Set<number>();
    for (let round = 0; round < 500; round++) {
      const p = db.transactSync((tx) => {
        const made = tx.alloc(100);
        tx.write(made, data(100, round));
        return made;
      });
      if (round < 499) {
        db.transactSync((tx) => tx.free(p));
        stale.push(p);
      }
      addresses.add(p.address);
    }
    expect(addresses.size).toBeLessThan(500);
    for (const p of stale) {
      failureSync("SITU_FREED", () => db.readObject(p));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.read(p)));
      failureSync("SITU_FREED", () => db.transactSync((tx) => tx.write(p, data(1))));
    }
  });

  it("by objects of other sizes, by arrays, and by rows, in a store that is nearly full", async () => {
    const db = await opened(stores.folder(), 8 * MIB);
    const random = new Random(seed);
    const stale: { pointer: Pointer; elements: Pointer[] }[] = [];
    const used = new Map<number, Set<number>>();
    for (let round = 0; round < 12; round++) {
      const live: Pointer[] = [];
      const size = [40, 900, 12_000, 100_000, 500_000][round % 5] + random.below(50);
      const asArray = round % 3 === 1;
      for (;;) {
        try {
          live.push(
            db.transactSync((tx) =>
              asArray ? tx.allocArray(Math.ceil(size / 10), 9) : tx.alloc(size),
            ),
          );
        } catch (error) {
          if (!(error instanceof SituError) || error.code !== "SITU_FULL") throw error;
          break;
        }
        if (live.length >= 3_000) break;
      }
      for (const p of live) {
        const mebibyte = Math.floor(p.address / MIB);
        used.set(mebibyte, (used.get(mebibyte) ?? new Set()).add(size));
      }
      // Everything that was freed in the rounds before is seen to be freed.
      for (const { pointer: p, elements } of stale) {
        for (const each of p.count > 0 ? elements : [p]) {
          expect(() => db.readObject(each)).toThrow(SituError);
          expect(() => db.transactSync((tx) => tx.read(each))).toThrow(SituError);
        }
        expect(() => db.transactSync((tx) => tx.free(p))).toThrow(SituError);
      }
      for (let n = 0; n < 20; n++) {
        const p = live[random.below(live.length)];
        stale.push({ pointer: p, elements: p.count > 0 ? [p.at(0), p.at(p.count - 1)] : [] });
      }
      for (const p of live) db.transactSync((tx) => tx.free(p));
      if (round % 4 === 3) churn(db, 30_000);
    }
    // The test is worth something only if memory did change its sizes.
    expect(Math.max(...[...used.values()].map(({ size }) => size))).toBeGreaterThan(2);
  });
});

/** Appends to a sorted list of nodes {value u32, next pointer}, by the pointer kept in a row. */
const LIST = `
  const { open, table, bytes, pointer, u32, Pointer } = situ;
  const Root = table("root", { name: bytes(8), first: pointer(), count: u32() }, { key: "name" });
  const Node = table("node", { id: u32(), next: pointer() }, { key: "id" });
  const db = await open({ path: data.path, tables: [Root, Node] });
  const name = new Uint8Array([1]);
  const view = (bytes) => new DataView(bytes.buffer, bytes.byteOffset);
  // A node: value, then the words of the next pointer: region and offset, size, incarnation.
  const next = (bytes) => {
    const v = view(bytes);
    const address = v.getFloat64(8);
    return address === 0 ? null : new Pointer(address, 32, v.getInt32(16));
  };
  const node = (value, after) => {
    const bytes = new Uint8Array(32);
    const v = view(bytes);
    v.setUint32(0, value);
    if (after) { v.setFloat64(8, after.address); v.setInt32(16, after.incarnation); }
    return bytes;
  };
  const insert = (value) => db.transactSync((tx) => {
    const root = tx.get(Root, name);
    let before = null, at = root.first;
    while (at !== null) {
      const bytes = tx.read(at);
      if (view(bytes).getUint32(0) >= value) break;
      before = at;
      at = next(bytes);
    }
    const made = tx.alloc(32, at ? { near: at } : {});
    tx.write(made, node(value, at));
    if (before === null) tx.update(Root, name, { first: made });
    else tx.write(before, node(view(tx.read(before)).getUint32(0), made));
    tx.update(Root, name, { count: tx.get(Root, name).count + 1 });
  }, { timeoutMs: 30_000 });
  const remove = (value) => db.transactSync((tx) => {
    const root = tx.get(Root, name);
    let before = null, at = root.first;
    while (at !== null) {
      const bytes = tx.read(at);
      const found = view(bytes).getUint32(0);
      if (found > value) return false;
      if (found === value) {
        if (before === null) tx.update(Root, name, { first: next(bytes) });
        else tx.write(before, node(view(tx.read(before)).getUint32(0), next(bytes)));
        tx.update(Root, name, { count: tx.get(Root, name).count - 1 });
        tx.free(at);
        return true;
      }
      before = at;
      at = next(bytes);
    }
    return false;
  }, { timeoutMs: 30_000 });
  let left = 0;
  for (let n = 0; n < data.rounds; n++) {
    const value = (n * 7919 + data.number * 104729) % 1000 * 4 + data.number;
    insert(value);
    left++;
    if (n % 2 === 1 && remove(value)) left--;
  }
  const walk = () => db.transactSync((tx) => {
    const values = [];
    for (let at = tx.get(Root, name).first; at !== null; ) {
      const bytes = tx.read(at);
      values.push(view(bytes).getUint32(0));
      at = next(bytes);
    }
    return { values, count: tx.get(Root, name).count };
  }, { timeoutMs: 30_000 });
  const seen = walk();
  await db.close();
  return { left, ...seen };`;

describe("a linked list", () => {
  it("stays whole and sorted while four processes insert into it and remove from it", async () => {
    const path = stores.folder();
    const db = await opened(path);
    const name = new Uint8Array([1]);
    db.transactSync((tx) => tx.put(Root, { name, first: null, count: 0 }));
    const children = [0, 1, 2, 3].map((number) =>
      startChild(stores, LIST, { path, number, rounds: 120 }),
    );
    let left = 0;
    for (const { outcome } of children) {
      const { result, error, stderr } = await outcome;
      expect({ error, stderr }).toEqual({ error: undefined, stderr: "" });
      const seen = result as { left: number; values: number[]; count: number };
      left += seen.left;
      expect(seen.values.length).toBe(seen.count);
      expect(seen.values).toEqual(seen.values.toSorted((a, b) => a - b));
    }
    expect(db.get(Root, name)?.count).toBe(left);
    expect(left).toBe(4 * 60);
  });
});
