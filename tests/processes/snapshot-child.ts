/**
 * One process of the snapshot storm. A teller moves money, opens accounts and closes them. A
 * rotator changes many accounts at once. An auditor takes snapshots, keeps some for long, and counts the money in them in all ways. Each may
 * be told to kill itself at its n-th atomic step.
 */

import { type Database, SituError, type Snapshot, type Transaction } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  dieAtStep,
  isStopped,
  listenForStop,
  orderOf,
  repeat,
  turn,
} from "../helpers/process-child.ts";
import type { Life } from "../helpers/process-storm.ts";
import {
  type Accounts,
  audit,
  auditAll,
  IDS,
  OWNERS,
  openBank,
  ROUTES,
  TABLES,
  TOTAL,
} from "./snapshot-store.ts";

export interface SnapshotOrder extends Life {
  readonly path: string;
  readonly role: "teller" | "rotator" | "auditor";
}

const MOST_HELD = 10;
/** Accounts that are changed at once. */
const ROTATED = 200;
const { path, role, seed, dieAtStep: lastStep } = orderOf<SnapshotOrder>();
const random = new Random(seed);

dieAtStep(lastStep);
listenForStop();
// Some of their snapshots are released because of their age.
const db: Database = await openBank(path, 100 + random.below(1_500));

function choose<T>(items: readonly T[]): T {
  return items[random.below(items.length)];
}

/** Whoever changes money reads no row that he does not change: either isolation will do. */
function transact(body: (tx: Transaction) => void): void {
  const isolation = random.below(3) === 0 ? "snapshot" : "strict-serializable";
  for (;;) {
    if (unlessReleased(() => db.transactSync(body, { isolation }))) return;
  }
}

function pay(tx: Transaction, accounts: Accounts, id: number, amount: number): boolean {
  const row = tx.get(accounts, id);
  if (row === undefined) return false;
  tx.update(accounts, id, { balance: row.balance + amount });
  return true;
}

function transfer(): void {
  const [from, to] = [choose(TABLES), choose(TABLES)];
  const [fromId, toId] = [random.below(IDS), random.below(IDS)];
  const amount = 1 + random.below(20);
  transact((tx) => {
    if (pay(tx, from, fromId, -amount) && !pay(tx, to, toId, amount)) {
      pay(tx, from, fromId, amount);
    }
  });
}

/** Closes an account and pays out its money, or opens one and pays into it. */
function openOrClose(): void {
  const [accounts, others] = [choose(TABLES), choose(TABLES)];
  const [id, other] = [random.below(IDS), random.below(IDS)];
  const owner = random.below(OWNERS);
  const balance = random.below(100);
  const memo = "m".repeat(random.below(3) === 0 ? random.below(300) : random.below(10));
  transact((tx) => {
    if (accounts === others && id === other) return;
    const row = tx.get(accounts, id);
    if (!pay(tx, others, other, row === undefined ? -balance : row.balance)) return;
    if (row === undefined) tx.insert(accounts, { id, owner, balance, memo });
    else tx.delete(accounts, id);
  });
}

function giveAway(): void {
  const accounts = choose(TABLES);
  const id = random.below(IDS);
  const owner = random.below(OWNERS);
  transact((tx) => {
    if (tx.get(accounts, id) !== undefined) tx.update(accounts, id, { owner });
  });
}

/** Every account of a range gets the balance of the next one, and a new memo. */
function rotate(): void {
  const accounts = choose(TABLES);
  const first = random.below(IDS - ROTATED);
  const ids = Array.from({ length: ROTATED }, (_, i) => first + i);
  const memo = "r".repeat(100 + random.below(300));
  transact((tx) => {
    const rows = tx.getMany(accounts, ids).filter((row) => row !== undefined);
    for (const [i, row] of rows.entries()) {
      tx.put(accounts, { ...row, balance: rows[(i + 1) % rows.length].balance, memo });
    }
  });
}

function serve(): void {
  const dice = random.below(10);
  if (role === "rotator" && dice < 8) rotate();
  else if (dice < 5) transfer();
  else if (dice < 8) openOrClose();
  else giveAway();
}

interface Held {
  readonly snapshot: Snapshot;
  readonly seen: string;
}
const held: Held[] = [];

/** Runs what reads from a snapshot; that it was released is the one thing that may be said. */
function unlessReleased(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof SituError && error.code === "SITU_SNAPSHOT_TOO_OLD") return false;
    throw error;
  }
}

function takeOne(): void {
  const snapshot = db.snapshot();
  unlessReleased(() => {
    const seen = random.below(3) === 0 ? auditAll(snapshot) : audit(snapshot, anyRoute());
    if (held.length < MOST_HELD && random.below(2) === 0) held.push({ snapshot, seen });
  });
  if (held[held.length - 1]?.snapshot !== snapshot) snapshot.close();
}

/** A snapshot that was taken before says what it said then, for ever. */
function lookAgain(): void {
  const index = random.below(held.length);
  const { snapshot, seen } = held[index];
  const isThere = unlessReleased(() => {
    const now = audit(snapshot, anyRoute());
    if (now !== seen) throw new Error(`a snapshot changed: ${seen}, then ${now}`);
  });
  if (isThere && random.below(8) !== 0) return;
  snapshot.close();
  held.splice(index, 1);
}

function anyRoute(): string {
  return choose(Object.keys(ROUTES));
}

/** The same through a transaction that only reads. */
function transactAndRead(): void {
  unlessReleased(() =>
    db.transactSync((tx) => audit(tx, anyRoute()), { isolation: "snapshot", timeoutMs: 5_000 }),
  );
}

/** A scan of both tables that lets the event loop turn, with all else going on meanwhile. */
async function scanSlowly(): Promise<void> {
  const snapshot = db.snapshot();
  try {
    let money = 0;
    for (const accounts of TABLES) {
      for await (const { balance } of snapshot.scan(accounts)) {
        money += balance;
        if (random.below(100) === 0) await turn();
      }
    }
    if (money !== TOTAL) throw new Error(`a slow scan: ${money} instead of ${TOTAL}`);
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_SNAPSHOT_TOO_OLD") throw error;
  } finally {
    snapshot.close();
  }
}

function inspect(): void {
  const dice = random.below(10);
  if (dice < 4) takeOne();
  else if (dice < 9 && held.length > 0) lookAgain();
  else transactAndRead();
}

console.log("ready");
if (role !== "auditor") await repeat(isStopped, serve);
else {
  let slow: Promise<void> | undefined;
  let failure: unknown;
  await repeat(() => {
    slow ??= scanSlowly()
      .catch((error: unknown) => {
        failure ??= error;
      })
      .finally(() => {
        slow = undefined;
      });
    return isStopped() || failure !== undefined;
  }, inspect);
  await slow;
  if (failure !== undefined) throw failure;
}
await db.close();
