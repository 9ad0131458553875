/**
 * FaRM (Dragojević et al., NSDI 2014), §3.2 to §3.6, statement by statement. Quotations are the
 * paper's. "Deviation" names what is different here and why; "absent" what one machine does not
 * need or what comes later: consistent hashing over virtual rings and replicas (§3.3), two-phase
 * commit, replicated logs on SSD and shipped transactions (§3.4, §3.6; a journal in shared memory
 * takes the log's place, tests/processes). Update combining (§3.6) is for calls of procedures on a cluster
 * (docs/decisions/0141, tests/cluster-units/combining.test.ts); on one machine there is no server to combine.
 */

import { describe, expect, it } from "vitest";
import { readsPerLookup } from "../../benchmarks/memory/hopscotch-reads.ts";
import type { Database } from "../../src/database/database.ts";
import { mayLieIn } from "../../src/engine/cells.ts";
import type { Executor } from "../../src/engine/executor.ts";
import {
  allocateArray,
  allocateObject,
  freeInTransaction,
  readInTransaction,
  readObject,
  writeInTransaction,
} from "../../src/engine/objects.ts";
import { runSync } from "../../src/engine/run.ts";
import { FREES } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { regionIdOf, wordOf } from "../../src/memory/address.ts";
import {
  ALLOCATED,
  HEADER_BYTES,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  lockWord,
  PREPARED,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { POINTER_WORDS } from "../../src/memory/pointer.ts";
import { CELL_BYTES, fragmentation, sizeClassOf } from "../../src/memory/size-classes.ts";
import { SituError, TimeoutError } from "../../src/runtime/errors.ts";
import {
  BUCKET_SLOTS,
  MAX_INLINE_ROW_BYTES,
  OVERFLOW_SLOTS,
  REGION_BYTES,
  SHARD_BUCKETS,
  UNIT_BYTES,
} from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { openRemote } from "../../src/stores/remote/open.ts";
import { describeRemote } from "../../src/stores/remote/remote.ts";
import { bytes, pointer, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { serve } from "../helpers/remote.ts";
import { failureSync, Gate, MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";
import {
  blocksIn,
  brokenRules,
  createTable,
  type EngineTable,
  openExecutor,
  pairsIn,
  rehashed,
  run,
  shapeOf,
} from "../helpers/store-engine.ts";
import { startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Pair = table("pair", { key: u32(), value: u32() }, { key: "key" });
const Text = table("text", { key: u32(), text: str() }, { key: "key" });
const Root = table("root", { name: str(16), object: pointer() }, { key: "name" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });

/** Objects of one executor, each operation a transaction of its own. */
class Objects {
  readonly executor: Executor;
  readonly tx: Transaction;

  constructor(executor: Executor) {
    this.executor = executor;
    this.tx = new Transaction(executor);
  }

  do<T>(body: (tx: Transaction) => T, timeoutMs = 5_000): T {
    return runSync(this.executor, this.tx, timeoutMs, body, this.tx);
  }

  alloc(size: number, near?: Pointer): Pointer {
    return this.do((tx) => allocateObject(tx, size, near));
  }

  write(at: Pointer, data: Uint8Array, timeoutMs?: number): void {
    this.do((tx) => writeInTransaction(tx, at, data), timeoutMs);
  }

  free(at: Pointer): void {
    this.do((tx) => freeInTransaction(tx, at));
  }

  read(at: Pointer): Uint8Array {
    return readObject(this.executor, at);
  }

  header(at: Pointer, word: number): number {
    const { i32 } = this.executor.memory.regionOf(at.address);
    return Atomics.load(i32, wordOf(at.address) + word);
  }

  setLock(at: Pointer, lock: number): void {
    const { i32 } = this.executor.memory.regionOf(at.address);
    Atomics.store(i32, wordOf(at.address) + LOCK, lock);
  }
}

async function twoExecutors(): Promise<{ path: string; a: Objects; b: Objects }> {
  const path = stores.folder();
  return {
    path,
    a: new Objects(await openExecutor(stores, path)),
    b: new Objects(await openExecutor(stores, path)),
  };
}

const one = (value: number, size = 8): Uint8Array => new Uint8Array(size).fill(value);

describe("§3.2 Architecture and programming model", () => {
  it('"allocate and free objects using txAlloc and txFree inside transactions"', async () => {
    const { a } = await twoExecutors();
    const kept: Pointer[] = [];
    expect(() =>
      a.do((tx) => {
        kept.push(allocateObject(tx, 8, undefined));
        throw new Error("aborted");
      }),
    ).toThrow("aborted");
    failureSync("SITU_FREED", () => a.read(kept[0]));
    const p = a.alloc(8);
    expect(() =>
      a.do((tx) => {
        freeInTransaction(tx, p);
        throw new Error("aborted");
      }),
    ).toThrow("aborted");
    expect(a.read(p)).toEqual(one(0));
  });

  it('"pointers … can be … stored in object fields to build pointer linked data structures" (deviation: 24 bytes with size, incarnation and count, not opaque 64 bits)', async () => {
    expect(POINTER_WORDS * 4).toBe(24);
    const db = await stores.open({ tables: [Root] });
    db.transactSync((tx) => {
      const object = tx.alloc(4);
      tx.write(object, Buffer.from("text"));
      tx.put(Root, { name: "first", object });
    });
    const found = db.get(Root, "first")!.object!;
    expect(Buffer.from(db.readObject(found)).toString()).toBe("text");
  });

  it('"request that the new object is allocated close to an existing object"', async () => {
    const { a } = await twoExecutors();
    const first = a.alloc(200);
    for (let n = 0; n < 50; n++) a.alloc(9_000);
    const second = a.alloc(200, first);
    const { blocks } = a.executor.slabs;
    expect(blocks.blockOf(second.address)).toBe(blocks.blockOf(first.address));
  });

  it('"to update an object, a transaction must first read the object" (deviation: a write reads what it replaces; it conflicts all the same)', async () => {
    const { a, b } = await twoExecutors();
    const p = a.alloc(8);
    let runs = 0;
    a.do((tx) => {
      writeInTransaction(tx, p, one(1));
      if (++runs === 1) b.write(p, one(2));
    });
    expect([runs, a.read(p)[0]]).toEqual([2, 1]);
  });

  it('"Transactions can abort due to conflicts …; otherwise, the writes are committed" (deviation: a conflict runs the body again, up to its deadline)', async () => {
    const { a, b } = await twoExecutors();
    const p = a.alloc(8);
    let runs = 0;
    a.do((tx) => {
      const [value] = readInTransaction(tx, p);
      if (++runs < 4) b.write(p, one(10 * runs));
      writeInTransaction(tx, p, one(value + 1));
    });
    expect([runs, a.read(p)[0]]).toEqual([4, 31]);
  });

  it('"strictly serializable": no write skew', async () => {
    const { a, b } = await twoExecutors();
    const [x, y] = [a.alloc(8), a.alloc(8)];
    const takeIfOther = (self: Objects, other: () => void, read: Pointer, write: Pointer): void => {
      let runs = 0;
      self.do((tx) => {
        const [taken] = readInTransaction(tx, read);
        if (++runs === 1) other();
        if (taken === 0) writeInTransaction(tx, write, one(1));
      });
    };
    takeIfOther(a, () => takeIfOther(b, () => {}, x, y), y, x);
    expect(a.read(x)[0] + a.read(y)[0]).toBe(1);
  });

  it('"allocate, read, and free arrays of objects": consecutive, each with a version of its own', async () => {
    const { a } = await twoExecutors();
    const array = a.do((tx) => allocateArray(tx, 24, 10, undefined));
    for (let i = 1; i < 10; i++) {
      expect(array.at(i).address - array.at(i - 1).address).toBe(HEADER_BYTES + 24);
    }
    a.write(array.at(3), one(3, 24));
    expect(a.header(array.at(3), VERSION_LOW)).not.toBe(a.header(array.at(4), VERSION_LOW));
    expect(a.read(array.at(3))).toEqual(one(3, 24));
    expect(a.read(array.at(4))).toEqual(one(0, 24));
    a.free(array);
    failureSync("SITU_FREED", () => a.read(array.at(4)));
  });

  it("continuations: promises take their place (deviation); messages to a thread are absent: all memory is local", async () => {
    const db = await stores.open({ tables: [Pair] });
    await db.transact(async (tx) => {
      await tx.put(Pair, { key: 1, value: 1 });
    });
    expect(db.get(Pair, 1)?.value).toBe(1);
  });
});

describe("§3.3 Memory management", () => {
  it('"the address … consists of the 32-bit region identifier and the 32-bit offset" (deviation: in one safe integer; regions of 64 MiB, not 2 GB)', async () => {
    expect(REGION_BYTES).toBe(64 * MIB);
    const executor = await openExecutor(stores, stores.folder(), 192 * MIB);
    const objects = new Objects(executor);
    const seen = new Set<number>();
    for (let n = 0; n < 150; n++) {
      const { address } = objects.alloc(MIB - 16);
      expect(Number.isSafeInteger(address)).toBe(true);
      seen.add(regionIdOf(address));
    }
    expect([...seen]).toEqual([0, 1, 2]);
  });

  it('"256 distinct sizes from 64 bytes to 1 MB"', () => {
    expect(CELL_BYTES.length).toBe(256);
    expect([CELL_BYTES[0], CELL_BYTES.at(-1)]).toEqual([64, MIB]);
    for (let i = 1; i < 256; i++) expect(CELL_BYTES[i]).toBeGreaterThan(CELL_BYTES[i - 1]);
  });

  it('"the average fragmentation is 1.8% and the maximum is 3.6%"', () => {
    const { averagePercent, worstPercent } = fragmentation();
    expect(averagePercent).toBeLessThanOrEqual(1.8);
    expect(worstPercent).toBeLessThanOrEqual(3.6);
  });

  it('"an object is allocated in the smallest size class that can fit it"', () => {
    for (let size = 64; size <= MIB; size += 777) {
      const found = sizeClassOf(size);
      expect(CELL_BYTES[found]).toBeGreaterThanOrEqual(size);
      if (found > 0) expect(CELL_BYTES[found - 1]).toBeLessThan(size);
    }
    expect(sizeClassOf(MIB + 1)).toBe(-1);
  });

  it('"each block is used to allocate objects of the same size" (deviations: blocks of 1 to 16 units of 64 KiB, not multiples of 1 MB; rare sizes use cells of a slightly larger class)', async () => {
    expect(UNIT_BYTES).toBe(64 * 1024);
    const { a } = await twoExecutors();
    const { blocks } = a.executor.slabs;
    const random = new Random(seed);
    const classOfBlock = new Map<number, number>();
    for (let n = 0; n < 2_000; n++) {
      const size = 1 + random.below(3_000);
      const { address } = a.alloc(size);
      const block = blocks.blockOf(address);
      const sizeClass = sizeClassOf(HEADER_BYTES + Math.ceil(size / 8) * 8);
      const cellClass = blocks.classOf(block);
      expect(mayLieIn(sizeClass, cellClass)).toBe(true);
      expect(classOfBlock.get(block) ?? cellClass).toBe(cellClass);
      classOfBlock.set(block, cellClass);
    }
  });

  it('"threads have private slab allocators": no block serves two executors', async () => {
    const { a, b } = await twoExecutors();
    const blocksOf = (objects: Objects): Set<number> =>
      new Set(
        Array.from({ length: 300 }, () =>
          objects.executor.slabs.blocks.blockOf(objects.alloc(500).address),
        ),
      );
    const [ofA, ofB] = [blocksOf(a), blocksOf(b)];
    for (const block of ofA) expect(ofB.has(block)).toBe(false);
  });

  it('"a single bit in the header of each object to mark it allocated"', async () => {
    const { a } = await twoExecutors();
    const p = a.alloc(100);
    expect(a.header(p, INCARNATION) & ALLOCATED).toBe(ALLOCATED);
    a.free(p);
    expect(a.header(p, INCARNATION) & ALLOCATED).toBe(0);
  });

  it('"it is scanned during recovery to reconstruct allocator data structures": an executor that takes over blocks finds what is free, and nothing else', async () => {
    const path = stores.folder();
    const keeper = new Objects(await openExecutor(stores, path));
    const { executor } = new Objects(await openExecutor(stores, path));
    const leaving = new Objects(executor);
    const live = new Map<number, Pointer>();
    const free = new Set<number>();
    for (let n = 0; n < 400; n++) {
      const p = leaving.alloc(300);
      leaving.write(p, one(n & 255, 300));
      if (n % 3 === 0) {
        leaving.free(p);
        free.add(p.address);
      } else {
        live.set(p.address, p);
      }
    }
    for (const address of free) if (live.has(address)) free.delete(address);
    executor.slabs.close();
    let reused = 0;
    for (let n = 0; n < 400; n++) {
      const { address } = keeper.alloc(300);
      expect(live.has(address)).toBe(false);
      if (free.has(address)) reused++;
    }
    expect(reused).toBe(free.size);
    for (const p of live.values()) expect(keeper.read(p).length).toBe(300);
  });

  it('"in the same block as the hint, in the same region, or" anywhere (deviation: no virtual rings on one machine)', async () => {
    const executor = await openExecutor(stores, stores.folder(), 192 * MIB);
    const objects = new Objects(executor);
    const { blocks } = executor.slabs;
    const hint = objects.alloc(1_000);
    const block = blocks.blockOf(hint.address);
    // The block first: as long as it has room.
    let inBlock = 1;
    while (blocks.blockOf(objects.alloc(1_000, hint).address) === block) inBlock++;
    expect(inBlock).toBe(Math.floor(UNIT_BYTES / CELL_BYTES[sizeClassOf(1_000 + HEADER_BYTES)]));
    // Then the region, though there are others by now.
    const spread = new Set<number>();
    for (let n = 0; n < 100; n++) spread.add(regionIdOf(objects.alloc(MIB - 16).address));
    expect(spread.size).toBeGreaterThan(1);
    // Its last free megabytes are taken by large objects; what is left of it serves the hint.
    const placed = regionIdOf(objects.alloc(1_000, hint).address);
    expect(placed).toBe(regionIdOf(hint.address));
    // Then anywhere: a hint never makes an allocation fail.
    for (let n = 0; n < 40; n++) objects.alloc(MIB - 16, hint);
  });
});

describe("§3.4 Transactions", () => {
  it('"it buffers writes": nobody sees them before the commit', async () => {
    const { a, b } = await twoExecutors();
    const p = a.alloc(8);
    a.do((tx) => {
      writeInTransaction(tx, p, one(1));
      expect(readInTransaction(tx, p)).toEqual(one(1));
      expect(b.read(p)).toEqual(one(0));
    });
    expect(b.read(p)).toEqual(one(1));
  });

  it('"validate … if the versions read by the transaction are up to date"', async () => {
    const { a, b } = await twoExecutors();
    const [read, written] = [a.alloc(8), a.alloc(8)];
    let runs = 0;
    a.do((tx) => {
      const [value] = readInTransaction(tx, read);
      if (++runs === 1) b.write(read, one(7));
      writeInTransaction(tx, written, one(value));
    });
    expect([runs, a.read(written)[0]]).toEqual([2, 7]);
  });

  it('"The transaction aborts if any modified object is locked"; at its deadline it names the holder', async () => {
    const { a, b } = await twoExecutors();
    const p = a.alloc(8);
    b.setLock(p, lockWord(b.executor.slot, PREPARED));
    let error: unknown;
    try {
      a.write(p, one(1), 60);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(TimeoutError);
    expect((error as TimeoutError).holder).toMatchObject({
      pid: process.pid,
      slot: b.executor.slot,
    });
    expect((error as TimeoutError).message).toContain(String(process.pid));
    b.setLock(p, 0);
    expect(a.read(p)).toEqual(one(0));
    a.write(p, one(1));
    expect(a.read(p)).toEqual(one(1));
  });

  it("an object that was only read and is locked by another fails the validation, too", async () => {
    const { a, b } = await twoExecutors();
    const [read, written] = [a.alloc(8), a.alloc(8)];
    b.setLock(read, lockWord(b.executor.slot, PREPARED));
    let error: unknown;
    try {
      a.do((tx) => {
        readInTransaction(tx, read);
        writeInTransaction(tx, written, one(1));
      }, 60);
    } catch (thrown) {
      error = thrown;
    }
    expect((error as SituError).code).toBe("SITU_TIMEOUT");
    expect(a.read(written)).toEqual(one(0));
    b.setLock(read, 0);
  });

  it('two lock modes: the first "allows lock-free reads", the exclusive one does not', async () => {
    const { path, a, b } = await twoExecutors();
    const p = a.alloc(8);
    a.write(p, one(1));
    b.setLock(p, lockWord(b.executor.slot, PREPARED));
    expect(lockMode(b.header(p, LOCK))).toBe(PREPARED);
    expect(a.read(p)).toEqual(one(1));
    expect(a.do((tx) => readInTransaction(tx, p))).toEqual(one(1));
    // Exclusive: the reader waits. Somebody else, here another thread, ends the installing.
    b.setLock(p, lockWord(b.executor.slot, INSTALLING));
    const released = new SharedArrayBuffer(4);
    const file = `${memoryOf(path)}/region-${regionIdOf(p.address)}`;
    const worker = startWorker(
      stores,
      `
      const { openSync, writeSync, closeSync } = await import("node:fs");
      const fd = openSync(data.file, "r+");
      port.postMessage("ready");
      await new Promise((resolve) => setTimeout(resolve, 50));
      Atomics.store(new Int32Array(data.released), 0, 1);
      writeSync(fd, new Uint8Array(4), 0, 4, data.offset);
      closeSync(fd);`,
      { file, offset: wordOf(p.address) * 4, released },
    );
    await new Promise((resolve) => worker.worker.once("message", resolve));
    expect(a.read(p)).toEqual(one(1));
    expect(Atomics.load(new Int32Array(released), 0)).toBe(1);
    await worker.result;
  });

  it("deviation: objects turn exclusive before the validation, not after it (docs/decisions/0002); all of them before the first is written", async () => {
    // Two objects are always written together; no reader sees the new one and then the old one.
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Root] });
    const [x, y] = db.transactSync((tx) => [tx.alloc(8), tx.alloc(8)]);
    db.transactSync((tx) => {
      tx.put(Root, { name: "x", object: x });
      tx.put(Root, { name: "y", object: y });
    });
    const stop = new SharedArrayBuffer(4);
    const worker = startWorker(
      stores,
      `
      const { open, table, str, pointer } = situ;
      const Root = table("root", { name: str(16), object: pointer() }, { key: "name" });
      const db = await open({ path: data.path, tables: [Root] });
      const x = db.get(Root, "x").object, y = db.get(Root, "y").object;
      const stop = new Int32Array(data.stop);
      const value = (bytes) => new DataView(bytes.buffer).getFloat64(0);
      port.postMessage("ready");
      let wrong = 0, reads = 0;
      while (Atomics.load(stop, 0) === 0) {
        const first = value(db.readObject(x));
        const second = value(db.readObject(y));
        if (second < first) wrong++;
        reads++;
      }
      await db.close();
      return { wrong, reads };`,
      { path, stop },
    );
    await new Promise((resolve) => worker.worker.once("message", resolve));
    const data = new Uint8Array(8);
    for (let n = 1; n <= 60_000; n++) {
      new DataView(data.buffer).setFloat64(0, n);
      db.transactSync((tx) => {
        tx.write(x, data);
        tx.write(y, data);
      });
    }
    Atomics.store(new Int32Array(stop), 0, 1);
    const { wrong, reads } = (await worker.result) as { wrong: number; reads: number };
    expect(wrong).toBe(0);
    expect(reads).toBeGreaterThan(100);
  });

  it("a read-only transaction of one object needs no validation, one of several does", async () => {
    const { a, b } = await twoExecutors();
    const [x, y] = [a.alloc(8), a.alloc(8)];
    let runs = 0;
    a.do((tx) => {
      readInTransaction(tx, x);
      if (++runs === 1) b.write(x, one(1));
    });
    expect(runs).toBe(1);
    runs = 0;
    a.do((tx) => {
      readInTransaction(tx, x);
      readInTransaction(tx, y);
      if (++runs === 1) b.write(x, one(2));
    });
    expect(runs).toBe(2);
  });
});

describe("§3.5 Lock-free operations", () => {
  it('"guaranteed to observe a consistent object state even if it is concurrent with writes" (deviation: a seqlock, not cache-line versions)', async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Root] });
    const object = db.transactSync((tx) => {
      const made = tx.alloc(3_000);
      tx.put(Root, { name: "object", object: made });
      return made;
    });
    const stop = new SharedArrayBuffer(4);
    const worker = startWorker(
      stores,
      `
      const { open, table, str, pointer } = situ;
      const Root = table("root", { name: str(16), object: pointer() }, { key: "name" });
      const db = await open({ path: data.path, tables: [Root] });
      const object = db.get(Root, "object").object;
      const stop = new Int32Array(data.stop);
      const bytes = new Uint8Array(3000);
      port.postMessage("ready");
      let writes = 0;
      while (Atomics.load(stop, 0) === 0) {
        bytes.fill(writes++ & 255);
        db.transactSync((tx) => tx.write(object, bytes));
      }
      await db.close();
      return writes;`,
      { path, stop },
    );
    await new Promise((resolve) => worker.worker.once("message", resolve));
    const values = new Set<number>();
    let torn = 0;
    for (let n = 0; n < 30_000; n++) {
      const data = db.readObject(object);
      values.add(data[0]);
      if (data.some((byte) => byte !== data[0])) torn++;
    }
    Atomics.store(new Int32Array(stop), 0, 1);
    expect(await worker.result).toBeGreaterThan(100);
    expect(torn).toBe(0);
    expect(values.size).toBeGreaterThan(10);
  });

  it('"64-bit header versions": every commit leaves a later one', async () => {
    const { a, b } = await twoExecutors();
    const p = a.alloc(8);
    const version = (): bigint =>
      (BigInt(a.header(p, VERSION_HIGH) >>> 0) << 32n) | BigInt(a.header(p, VERSION_LOW) >>> 0);
    let last = version();
    for (let n = 0; n < 2_000; n++) {
      (n % 2 === 0 ? a : b).write(p, one(n & 255));
      expect(version() > last).toBe(true);
      last = version();
    }
  });

  it('"the two least significant bits … encode the lock mode" (deviation: of a lock word of its own, above them the owner, so that a dead owner is found)', () => {
    expect([PREPARED, INSTALLING].every((mode) => mode > 0 && mode < 4)).toBe(true);
    for (const slot of [0, 1, 254]) {
      expect(lockMode(lockWord(slot, PREPARED))).toBe(PREPARED);
      expect(lockMode(lockWord(slot, INSTALLING))).toBe(INSTALLING);
      expect(lockWord(slot, PREPARED)).not.toBe(0);
    }
  });

  it('"a 64-bit incarnation that is initially zero and is incremented when the object is freed" (deviation: 30 bits above two flags)', async () => {
    const { a } = await twoExecutors();
    const first = a.alloc(5_000);
    expect(first.incarnation >>> 2).toBe(0);
    let last = first;
    for (let n = 1; n < 20; n++) {
      a.free(last);
      const next = a.alloc(5_000);
      expect(next.address).toBe(first.address);
      expect(next.incarnation >>> 2).toBe(n);
      last = next;
    }
    failureSync("SITU_FREED", () => a.read(first));
  });

  it('"fat pointers that include the object address, size, and expected incarnation"', async () => {
    const { a } = await twoExecutors();
    const { address, size, incarnation } = a.alloc(123);
    expect(address).toBeGreaterThan(0);
    expect(size).toBe(123);
    expect(incarnation & ALLOCATED).toBe(ALLOCATED);
  });

  it('"FaRM can reuse freed memory to allocate another object of the same size" at once, under the eyes of those who hold old pointers', async () => {
    const { a, b } = await twoExecutors();
    const old = a.alloc(5_000);
    b.read(old);
    a.free(old);
    const young = a.alloc(5_000);
    expect(young.address).toBe(old.address);
    failureSync("SITU_FREED", () => b.read(old));
    failureSync("SITU_FREED", () => b.do((tx) => readInTransaction(tx, old)));
    expect(b.read(young)).toEqual(one(0, 5_000));
  });

  it('"Memory can be reused" for other sizes "once all transactions … that started in previous epochs complete", and only when it is short', async () => {
    const path = stores.folder();
    const open = (): Promise<Database> =>
      stores.open({ path, tables: [Blob], memoryBytes: 8 * MIB });
    const [a, b] = [await open(), await open()];
    const rows = (size: number): number => {
      for (let id = 0; ; id++) {
        try {
          a.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(size) }));
        } catch (error) {
          if (error instanceof SituError && error.code === "SITU_FULL") return id;
          throw error;
        }
      }
    };
    const many = rows(20_000);
    const [begun, gate] = [new Gate(), new Gate()];
    const old = b.transact(
      async (tx) => {
        await tx.get(Blob, 1);
        begun.open();
        await gate.opened;
      },
      // Longer than the rest takes, on any machine.
      { timeoutMs: 240_000 },
    );
    await begun.opened;
    for (let id = 0; id < many; id++) a.transactSync((tx) => tx.delete(Blob, id));
    // The old transaction could still look at any of these objects.
    failureSync("SITU_FULL", () =>
      a.transactSync((tx) => tx.insert(Blob, { id: 1, data: new Uint8Array(500_000) })),
    );
    a.transactSync((tx) => tx.insert(Blob, { id: 1, data: new Uint8Array(20_000) }));
    a.transactSync((tx) => tx.delete(Blob, 1));
    gate.open();
    await old.catch(() => {});
    await b.close();
    expect(rows(500_000)).toBeGreaterThan(4);
  });
});

/** A key whose home bucket is key >>> 8, in the first shard as long as nothing splits. */
const homeInKey = (home: number, number: number): number => (home << 8) | number;

async function tableWithChosenHomes(): Promise<
  EngineTable<{ key: number; value: number }, number> & { put(home: number, number: number): void }
> {
  const executor = await openExecutor(stores, stores.folder());
  const codec = rehashed(Pair, (hash) => hash);
  const chosen = {
    ...codec,
    stageKey: (key: number) => {
      codec.stageKey(key);
      return ((key >>> 8) << 26) | (key & 255) | 1024;
    },
    stageKeyOf: (row: { key: number; value: number }) => {
      codec.stageKeyOf(row);
      return ((row.key >>> 8) << 26) | (row.key & 255) | 1024;
    },
    stageEncoded: () => {
      codec.stageEncoded();
      const { key } = codec.decode(codec.scratch, 0, codec.fixedWords);
      return ((key >>> 8) << 26) | (key & 255) | 1024;
    },
  };
  const under = createTable(executor, chosen, Number.POSITIVE_INFINITY);
  return {
    ...under,
    put: (home, number) =>
      run(executor, under.tx, () => {
        under.store.put(under.tx, { key: homeInKey(home, number), value: number });
      }),
  };
}

describe("§3.6 Hashtable", () => {
  it('H = 8: "each bucket is a FaRM object with H/2 slots"; overflow blocks hold "currently two"', () => {
    expect(BUCKET_SLOTS).toBe(8 / 2);
    expect(OVERFLOW_SLOTS).toBe(2);
  });

  it('"on average it requires only 1.04 RDMA reads per lookup with H = 8 at 90% occupancy": at most 1.05 contiguous reads, counted', async () => {
    expect(await readsPerLookup(0.9, seed)).toBeLessThanOrEqual(1.05);
  });

  it("the same by verbs that are served from memory, the bucket and its neighbour in one batch", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const { memory } = executor;
    const codec = rehashed(Pair, (hash) => hash);
    const random = new Random(seed);
    const pairs = Math.round(0.9 * (SHARD_BUCKETS + 1) * BUCKET_SLOTS);
    let reads = 0;
    let inOneRead = 0;
    const shards = 64;
    for (let shard = 0; shard < shards; shard++) {
      const { root, store, tx } = createTable(executor, codec, Number.POSITIVE_INFINITY);
      const keys = new Set<number>();
      while (keys.size < pairs) keys.add(random.next());
      for (const key of keys) run(executor, tx, () => store.put(tx, { key, value: 1 }));
      const place = describeRemote("hopscotch", codec.fixedWords, root, memory);
      const remote = openRemote(place, codec);
      for (const key of keys) {
        const found = serve(memory, remote.lookup(key));
        expect(found.outcome).toBe("found");
        reads += found.reads;
        if (found.isProved) inOneRead++;
      }
      // The directory is read once, and then known.
      expect(remote.heads).toBe(1);
      reads -= remote.heads;
    }
    expect(reads / (shards * pairs)).toBeLessThanOrEqual(1.05);
    expect(inOneRead / (shards * pairs)).toBeGreaterThan(0.95);
  });

  it('"a key-value pair is stored in the key\'s bucket or the next one", or in the chain of its bucket', async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createTable(
      executor,
      rehashed(Pair, (hash) => hash),
    );
    const { tx, store } = under;
    const random = new Random(seed);
    for (let n = 0; n < 6_000; n++) {
      const key = random.below(4_000);
      run(executor, tx, () => {
        if (n % 3 === 2) store.remove(tx, key);
        else store.put(tx, { key, value: n });
      });
      store.maintain();
    }
    expect(brokenRules(shapeOf(under as never))).toEqual([]);
  });

  it('"it moves the empty bucket towards the neighbourhood by repeatedly displacing key-value pairs while preserving the invariant"', async () => {
    const under = await tableWithChosenHomes();
    // Buckets 0 to 5 are full of pairs that are at home there.
    for (let home = 0; home < 6; home++) for (let n = 0; n < 4; n++) under.put(home, n);
    expect(blocksIn(shapeOf(under as never))).toBe(0);
    under.put(0, 4);
    const shards = shapeOf(under as never);
    expect(brokenRules(shards)).toEqual([]);
    expect(blocksIn(shards)).toBe(0);
    expect(pairsIn(shards)).toBe(25);
    const [{ buckets }] = shards;
    // One pair of every bucket on the way went one further; the last one to bucket 6.
    expect(buckets[6].tags.filter((tag) => tag !== 0).length).toBe(1);
    for (let home = 0; home < 6; home++) {
      for (let n = 0; n < 4; n++) expect(under.store.get(homeInKey(home, n))?.value).toBe(n);
    }
    expect(under.store.get(homeInKey(0, 4))?.value).toBe(4);
  });

  it('"if an insert fails to move an empty bucket into the right neighbourhood, it adds the key-value pair to the overflow chain of the key\'s bucket instead of resizing the table"', async () => {
    const under = await tableWithChosenHomes();
    for (let n = 0; n < 8; n++) under.put(9, n);
    expect(blocksIn(shapeOf(under as never))).toBe(0);
    for (let n = 8; n < 13; n++) under.put(9, n);
    const shards = shapeOf(under as never);
    expect(shards.length).toBe(1);
    expect(brokenRules(shards)).toEqual([]);
    expect(shards[0].buckets[9].chain.length).toBe(3);
    for (let n = 0; n < 13; n++) expect(under.store.get(homeInKey(9, n))?.value).toBe(n);
  });

  it('"this also lets us limit the length of linear probing": the chain of the last bucket, without a neighbour to give', async () => {
    const under = await tableWithChosenHomes();
    for (let n = 0; n < 20; n++) under.put(SHARD_BUCKETS - 1, n);
    const shards = shapeOf(under as never);
    expect(brokenRules(shards)).toEqual([]);
    for (let n = 0; n < 20; n++) {
      expect(under.store.get(homeInKey(SHARD_BUCKETS - 1, n))?.value).toBe(n);
    }
  });

  it('removes "always move the last key-value pair in the chain to the newly freed slot and free the last overflow block if it becomes empty" (deviation: the last pair of the first block, for only that one has room)', async () => {
    const under = await tableWithChosenHomes();
    const { executor, tx, store } = under;
    const frees = (): number => executor.counters[executor.counterBase + FREES];
    for (let n = 0; n < 11; n++) under.put(3, n);
    expect(shapeOf(under as never)[0].buckets[3].chain.length).toBe(2);
    const before = frees();
    // From the bucket itself, from the next one, from the chain: the hole is always filled.
    for (const [removed, left] of [
      [0, 1],
      [4, 1],
      [9, 0],
    ]) {
      run(executor, tx, () => store.remove(tx, homeInKey(3, removed)));
      const shards = shapeOf(under as never);
      expect(brokenRules(shards)).toEqual([]);
      const { buckets } = shards[0];
      expect(buckets[3].chain.length).toBe(left);
      expect(buckets[3].tags.filter((tag) => tag !== 0).length).toBe(4);
      expect(buckets[4].tags.filter((tag) => tag !== 0).length).toBe(4);
    }
    expect(frees()).toBe(before + 2);
    for (const n of [1, 2, 3, 5, 6, 7, 8, 10]) {
      expect(store.get(homeInKey(3, n))?.value).toBe(n);
    }
  });

  it('"stores large or variable-sized key-value pairs as separate objects", small ones in the bucket', async () => {
    expect(MAX_INLINE_ROW_BYTES).toBe(128);
    const Fits = table("fits", { key: u32(), value: bytes(120) }, { key: "key" });
    const Exceeds = table("exceeds", { key: u32(), value: bytes(132) }, { key: "key" });
    const db = await stores.open({ tables: [Fits, Exceeds, Text] });
    const allocations = (work: () => void): number => {
      const before = db.stats().counters.allocations;
      work();
      return db.stats().counters.allocations - before;
    };
    const value = new Uint8Array(3);
    expect(allocations(() => db.transactSync((tx) => tx.put(Fits, { key: 1, value })))).toBe(0);
    expect(allocations(() => db.transactSync((tx) => tx.put(Exceeds, { key: 1, value })))).toBe(1);
    expect(allocations(() => db.transactSync((tx) => tx.put(Text, { key: 1, text: "" })))).toBe(1);
  });

  it('"we must also ensure that the two buckets in the neighbourhood are consistent with each other" (deviation: no joint versions; a lookup that finds nothing looks at both versions again)', async () => {
    const path = stores.folder();
    const reader = await openExecutor(stores, path);
    const mover = await openExecutor(stores, path);
    const KEY = 100;
    for (const lockFree of [true, false]) {
      let hook: () => void = () => {};
      const codec = rehashed(Pair, () => 77);
      const watched: typeof codec = {
        ...codec,
        matches: (views, at) => {
          const move = hook;
          hook = () => {};
          move();
          return codec.matches(views, at);
        },
      };
      const under = createTable(reader, watched);
      const { tx, store } = under;
      // One hash for all: four keys fill the home bucket, KEY lies in the next.
      for (const key of [1, 2, 3, 4, KEY]) {
        run(reader, tx, () => store.put(tx, { key, value: key }));
      }
      const otherCodec = rehashed(Pair, () => 77);
      const other = new Hopscotch(mover, otherCodec, under.root);
      const otherTx = new Transaction(mover);
      let moved = false;
      hook = () => {
        // While the home bucket is being searched, KEY moves into it, behind the reader's back.
        moved = true;
        run(mover, otherTx, () => {
          other.remove(otherTx, 1);
          other.remove(otherTx, KEY);
          other.put(otherTx, { key: KEY, value: KEY });
        });
      };
      const found = lockFree ? store.get(KEY) : run(reader, tx, () => store.read(tx, KEY));
      expect(moved).toBe(true);
      expect(found).toEqual({ key: KEY, value: KEY });
      expect(shapeOf(under as never)[0].buckets[homeOfTag(77) + 1].tags).toEqual([0, 0, 0, 0]);
    }
  });

  const homeOfTag = (tag: number): number => tag >>> 26;

  it('"FaRM arrays of buckets" as shards, "to enable elasticity" (deviation: shards split in two by one transaction): growing disturbs nobody in another shard', async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Pair] });
    const other = await stores.open({ path, tables: [Pair] });
    for (let key = 0; key < 1_000; key++) db.transactSync((tx) => tx.put(Pair, { key, value: 0 }));
    const before = db.stats().counters.splits;
    let undisturbed = 0;
    let splits = 0;
    for (let round = 0; round < 30; round++) {
      let runs = 0;
      db.transactSync((tx) => {
        runs++;
        tx.get(Pair, round);
        tx.get(Pair, round + 100);
        if (runs === 1) {
          const from = db.stats().counters.splits;
          for (let n = 0; n < 200 && db.stats().counters.splits === from; n++) {
            const key = 10_000 + round * 1_000 + n;
            other.transactSync((its) => its.put(Pair, { key, value: 0 }));
          }
          splits += db.stats().counters.splits - from;
        }
      });
      if (runs === 1) undisturbed++;
    }
    expect(splits).toBeGreaterThan(5);
    expect(db.stats().counters.splits).toBeGreaterThanOrEqual(before + splits);
    expect(undisturbed).toBeGreaterThan(5);
  });

  it('"as a root to obtain pointers to shared objects given keys"', async () => {
    const db = await stores.open({ tables: [Root] });
    const array = db.transactSync((tx) => {
      const made = tx.allocArray(8, 3);
      tx.write(made.at(1), one(5));
      tx.put(Root, { name: "list", object: made });
      return made;
    });
    const found = db.get(Root, "list")!.object!;
    expect(found).toEqual(array);
    expect(db.readObject(found.at(1))).toEqual(one(5));
  });
});
