/**
 * Worker threads insert into one linked list and remove from it, all at once; see list.ts for the
 * list itself. The threads count what they did to each key. In the end the list must hold exactly
 * the keys that were inserted once more than removed, in order, and every other node must be free.
 *
 *   node dist/examples/linked-list/main.js
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { type Database, destroy, open, SituError } from "situ";
import { List, SortedList } from "./list.ts";

const THREADS = 4;
const OPERATIONS = 4_000;
const KEYS = 48;

async function work(path: string): Promise<void> {
  // A thread opens the store for itself, as a process would: by its path.
  const db = await open({ path, tables: [List] });
  const list = new SortedList(db, "demo");
  const net = new Int32Array(KEYS);
  for (let i = 0; i < OPERATIONS; i++) {
    const key = Math.floor(Math.random() * KEYS);
    if (Math.random() < 0.5) net[key] += list.insert(key) ? 1 : 0;
    else net[key] -= list.remove(key) ? 1 : 0;
  }
  await db.close();
  parentPort!.postMessage(net);
}

function runThread(path: string): Promise<Int32Array> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: path });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}

async function main(path: string): Promise<boolean> {
  await using db = await open({ path, tables: [List], memoryBytes: 16 * 2 ** 20 });
  const list = new SortedList(db, "demo");
  list.create();
  const before = db.stats().counters;
  const nets = await Promise.all(Array.from({ length: THREADS }, () => runThread(path)));

  const expected: number[] = [];
  for (let key = 0; key < KEYS; key++) {
    const net = nets.reduce((sum, each) => sum + each[key], 0);
    if (net === 1) expected.push(key);
    else if (net !== 0) console.log(`key ${key} was inserted ${net} times more than removed`);
  }
  const keys = list.keys();
  const { counters } = db.stats();
  const allocated = counters.allocations - before.allocations;
  const freed = counters.frees - before.frees;
  console.log(`${THREADS} threads, ${THREADS * OPERATIONS} inserts and removes of ${KEYS} keys`);
  console.log(
    `${allocated} nodes allocated, ${freed} freed, ${counters.conflicts} conflicts retried`,
  );
  console.log(`the list: ${keys.join(" → ") || "empty"}`);

  const same = keys.length === expected.length && keys.every((key, i) => key === expected[i]);
  console.log(
    same ? "as it should be: in order, nothing lost" : `expected: ${expected.join(" → ")}`,
  );

  const leaked = allocated - freed - keys.length;
  if (leaked !== 0) console.log(`${leaked} nodes are neither in the list nor free`);

  const said = followDeadPointer(db);
  console.log(`following a pointer to a freed node: ${said}`);
  return same && leaked === 0 && said === "SITU_FREED";
}

/** A pointer that outlives its object fails, even if another object lies in its place by now. */
function followDeadPointer(db: Database): string {
  const dead = db.transactSync((tx) => tx.alloc(32));
  db.transactSync((tx) => tx.free(dead));
  db.transactSync((tx) => tx.alloc(32));
  try {
    db.readObject(dead);
    return "it was read";
  } catch (error) {
    if (error instanceof SituError) return error.code;
    throw error;
  }
}

if (isMainThread) {
  const path = mkdtempSync(join(tmpdir(), "situ-list-"));
  try {
    process.exitCode = (await main(path)) ? 0 : 1;
  } finally {
    await destroy(path);
    rmSync(path, { recursive: true, force: true });
  }
} else {
  await work(workerData as string);
}
