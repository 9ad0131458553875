/**
 * docs/FAULTS.md, "One machine": a snapshot holder that is killed, one that is stopped for too long, and
 * too little memory for what snapshots need. Released; a read says "too old", never wrong data.
 */

import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import type { Database } from "../../src/index.ts";
import { SWEEP_MS } from "../../src/runtime/limits.ts";
import { endAll, StoreFolder, stateOf, until } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import type { HolderOrder, HolderReport } from "./snapshot-holder-child.ts";
import { auditAll, fillBank, openBank, TABLES } from "./snapshot-store.ts";

/** The background of another process looks every SWEEP_MS; the rest is for a busy machine. */
const NOTICED_MS = 4 * SWEEP_MS;

/** Long enough to take snapshots and read them, on a busy machine too. */
const STOPPED_MS = 5_000;

/** For what never happens. */
const LONGEST_MS = 240_000;

let folder: StoreFolder;
let db: Database;

beforeEach(async () => {
  folder = new StoreFolder();
  db = await openBank(folder.path);
  fillBank(db);
});
afterEach(async () => {
  endAll();
  await db.close();
  await folder.remove();
});
afterAll(endAll);

function holder(order: Omit<HolderOrder, "path">): Talker {
  return new Talker("snapshot-holder-child", { ...order, path: folder.path });
}

function rewriteAll(memo: string): void {
  for (const accounts of TABLES) {
    db.transactSync((tx) => {
      for (const row of tx.scan(accounts).toArray()) tx.put(accounts, { ...row, memo });
    });
  }
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Looks now and then, and not all the time: it is others who have to notice. */
async function released(): Promise<void> {
  const deadline = performance.now() + LONGEST_MS;
  for (;;) {
    await sleep(NOTICED_MS);
    const { open, versionBytes } = db.stats().snapshots;
    if (open === 0 && versionBytes === 0) return;
    if (performance.now() > deadline) expect({ open, versionBytes }).toEqual({});
  }
}

test("snapshots of a killed process are released, and what they kept is given up", async () => {
  const child = holder({ role: "hold", snapshots: 5, maxSnapshotMs: 60_000 });
  await child.hear("holds");
  rewriteAll("once");
  rewriteAll("twice");
  const before = db.stats().snapshots;
  expect(before.open).toBe(5);
  expect(before.versionBytes).toBeGreaterThan(0);
  child.running.child.kill("SIGKILL");
  await child.running.ended;
  // Nobody asks meanwhile: what the next look finds, the background has done.
  await released();
  // And nothing is kept for them any more.
  const kept = db.stats().counters.versionsKept;
  rewriteAll("again");
  expect(db.stats().counters.versionsKept).toBe(kept);
});

test("snapshots of a process that is stopped for too long are released by others", async () => {
  const child = holder({ role: "hold", snapshots: 3, maxSnapshotMs: STOPPED_MS });
  await child.hear("holds");
  expect(db.stats().snapshots.open).toBe(3);
  process.kill(child.running.pid, "SIGSTOP");
  await until("stopped", () => stateOf(child.running.pid) === "T");
  rewriteAll("while it sleeps");
  await released();
  process.kill(child.running.pid, "SIGCONT");
  child.go();
  const report = await child.report<HolderReport>();
  expect(report.said).toEqual(Array(3).fill("SITU_SNAPSHOT_TOO_OLD"));
});

test("a snapshot outlives all that is written after it, and makes no writer start again", async () => {
  const child = holder({ role: "hold", snapshots: 4, maxSnapshotMs: 60_000 });
  await child.hear("holds");
  const { conflicts, lockWaits } = db.stats().counters;
  for (let round = 0; round < 12; round++) rewriteAll(`round ${round} `.repeat(30));
  const { counters } = db.stats();
  expect([counters.conflicts - conflicts, counters.lockWaits - lockWaits]).toEqual([0, 0]);
  child.go();
  const report = await child.report<HolderReport>();
  expect(report.said).toEqual(Array(4).fill("same"));
  expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
});

test("where there is no room for old versions, the oldest snapshots give way, with a code", async () => {
  const writer = holder({ role: "rewrite", snapshots: 0, maxSnapshotMs: 60_000 });
  await writer.hear("ready");
  const child = holder({ role: "hoard", snapshots: 6, maxSnapshotMs: 60_000 });
  const report = await child.report<HolderReport>();
  writer.running.child.stdin?.end();
  const { taken: rounds } = await writer.report<HolderReport>();
  expect(rounds, "the writer got on").toBeGreaterThan(10);
  expect(report.said).toEqual(Array(6).fill("SITU_SNAPSHOT_TOO_OLD"));
  expect(report.taken).toBeGreaterThan(6);
  const { counters, snapshots } = db.stats();
  expect(counters.versionsMoved).toBeGreaterThan(0);
  expect(counters.snapshotsReleased).toBeGreaterThanOrEqual(6);
  expect(snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  db.transactSync((tx) => auditAll(tx));
});
