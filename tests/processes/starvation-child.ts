/** Writes single rows without pause; or is starved, and ends or stops itself while it has priority. */

import type { Database } from "../../src/index.ts";
import {
  Account,
  openStore,
  type StarvationOrder,
  type StarvationReport,
} from "./starvation-store.ts";

async function write(db: Database, rows: number): Promise<number> {
  let isOver = false;
  process.stdin.resume().on("end", () => {
    isOver = true;
  });
  let committed = 0;
  let id = 0;
  process.stdout.write("writing\n");
  while (!isOver) {
    for (let i = 0; i < 500; i++) {
      id = (id + 7_919) % rows;
      db.transactSync(
        (tx) => tx.update(Account, id, { balance: tx.get(Account, id)!.balance + 1n }),
        { timeoutMs: 60_000 },
      );
      committed++;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  return committed;
}

/** The parent writes row 0 all the time, which this reads before it writes row 1. */
function hold(db: Database, signal: "SIGKILL" | "SIGSTOP"): number {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  let committed = 0;
  // The parent may not come to its writes for a while: then there is no conflict, and nobody starves.
  for (let isDone = false; !isDone; committed++) {
    db.transactSync(
      (tx) => {
        tx.get(Account, 0);
        Atomics.wait(sleeper, 0, 0, 20);
        if (!isDone && db.stats().counters.starved > 0) {
          isDone = true;
          process.kill(process.pid, signal);
          // A signal is on its way for a moment.
          Atomics.wait(sleeper, 0, 0, 50);
        }
        tx.update(Account, 1, { balance: tx.get(Account, 1)!.balance + 1n });
      },
      { timeoutMs: 60_000 },
    );
  }
  return committed;
}

const { path, role, rows, signal } = JSON.parse(process.argv[2]) as StarvationOrder;
const db = await openStore(path);
const committed = role === "writer" ? await write(db, rows) : hold(db, signal);
await db.close();
process.stdout.write(`${JSON.stringify({ committed } satisfies StarvationReport)}\n`);
