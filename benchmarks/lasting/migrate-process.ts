// A process that moves money between accounts, and says how often, and how long the longest one took.
import { nowMs } from "../../src/runtime/clock.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { randomStream } from "../harness/random.ts";
import { Account, type MigrateTask, openAccounts } from "./migrate-store.ts";

export interface Slice {
  readonly commits: number;
  readonly ms: number;
  /** The longest time from one commit to the next. */
  readonly stallMs: number;
}

const task = taskOf<MigrateTask>();
const db = await openAccounts(task);
const random = randomStream(task.seed, task.number);

function transfer(): void {
  const from = Math.floor(random() * task.rows);
  const to = Math.floor(random() * task.rows);
  if (from === to) return;
  db.transactSync((tx) => {
    const a = tx.get(Account, from)!;
    const b = tx.get(Account, to)!;
    tx.update(Account, from, { balance: a.balance - 1n });
    tx.update(Account, to, { balance: b.balance + 1n });
  });
}

serve<{ readonly ms: number }, Slice>({
  handle({ ms }, answer) {
    const startMs = nowMs();
    let lastMs = startMs;
    let stallMs = 0;
    let commits = 0;
    while (lastMs - startMs < ms) {
      transfer();
      commits++;
      const now = nowMs();
      if (now - lastMs > stallMs) stallMs = now - lastMs;
      lastMs = now;
    }
    answer({ commits, ms: lastMs - startMs, stallMs });
  },
  close: () => db.close(),
});
