/**
 * The everyday use: what every thread or process of a service must agree on. Here each session may
 * make ten requests, whichever thread serves them; a counter in each thread would allow forty.
 *
 *   node dist/examples/sessions/main.js
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { type Database, destroy, open, SituError, str, table, u16 } from "situ";

const Session = table(
  "session",
  { token: str(16), user: str(32), requests: u16(), refused: u16() },
  { key: "token" },
);
const TOKENS = ["ada-7f3a", "grace-91c0", "alan-04be"];
const LIMIT = 10;
const THREADS = 4;
const REQUESTS = 60;

/** Counts a request and says whether it is allowed. Between get and update nobody can slip in. */
async function admit(db: Database, token: string, signal: AbortSignal): Promise<boolean> {
  return db.transact(
    async (tx) => {
      const session = await tx.get(Session, token);
      if (session === undefined) return false;
      const allowed = session.requests < LIMIT;
      const { requests, refused } = session;
      if (allowed) await tx.update(Session, token, { requests: requests + 1 });
      else await tx.update(Session, token, { refused: refused + 1 });
      return allowed;
    },
    // A client that hangs up aborts its transaction; nothing of it is left.
    { signal, timeoutMs: 2_000 },
  );
}

/** A thread of the service: requests come in at once, not one after the other. */
async function serve(path: string): Promise<void> {
  const db = await open({ path, tables: [Session] });
  const requests = Array.from({ length: REQUESTS }, (_, i) =>
    admit(db, TOKENS[i % TOKENS.length], AbortSignal.timeout(10_000)),
  );
  const admitted = (await Promise.all(requests)).filter(Boolean).length;
  await db.close();
  parentPort!.postMessage(admitted);
}

async function main(path: string): Promise<boolean> {
  await using db = await open({ path, tables: [Session], memoryBytes: 16 * 2 ** 20 });
  db.transactSync((tx) => {
    for (const token of TOKENS) {
      tx.insert(Session, { token, user: token.split("-")[0], requests: 0, refused: 0 });
    }
  });
  const threads = Array.from({ length: THREADS }, () => {
    const worker = new Worker(fileURLToPath(import.meta.url), { workerData: path });
    return new Promise<number>((resolve, reject) => {
      worker.once("message", resolve).once("error", reject);
    });
  });
  const admitted = (await Promise.all(threads)).reduce((sum, each) => sum + each, 0);

  // Outside a transaction, `get` reads one row: lock-free, and never in anybody's way.
  const rows = TOKENS.map((token) => db.get(Session, token)!);
  for (const { user, requests, refused } of rows) {
    console.log(`${user.padEnd(6)} ${requests} requests served, ${refused} refused`);
  }
  const hungUp = await admit(db, TOKENS[0], AbortSignal.abort()).catch((error) =>
    error instanceof SituError ? error.code : String(error),
  );
  console.log(`a client that hung up: ${hungUp}`);
  const perSession = (THREADS * REQUESTS) / TOKENS.length;
  const exact = rows.every((row) => row.requests === LIMIT && row.refused === perSession - LIMIT);
  console.log(
    exact ? `every session got its ${LIMIT} requests, no more` : "the limit did not hold",
  );
  return exact && admitted === LIMIT * TOKENS.length && hungUp === "SITU_ABORTED";
}

if (isMainThread) {
  const path = mkdtempSync(join(tmpdir(), "situ-sessions-"));
  try {
    process.exitCode = (await main(path)) ? 0 : 1;
  } finally {
    await destroy(path);
    rmSync(path, { recursive: true, force: true });
  }
} else {
  await serve(workerData as string);
}
