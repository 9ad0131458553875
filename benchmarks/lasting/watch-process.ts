// A process that follows the accounts of a bank, and says when it was told of so many changes.
import { setTimeout as sleep } from "node:timers/promises";
import type { BankTask } from "../durable/bank-process.ts";
import { openDurableBank } from "../durable/situ.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { Account } from "../memory/situ.ts";

export interface WatchOrder {
  readonly kind: "catch up";
  readonly changes: number;
}

export interface Followed {
  readonly changes: number;
  /** The longest time between the writing of a change and its telling. */
  readonly lagMs: number;
}

/** Between looks at how many changes there were. */
const lookMs = 5;

const db = await openDurableBank(taskOf<BankTask>());
const feed = db.watch(Account);
await feed.ready();
let changes = 0;
let lagMs = 0;

async function follow(): Promise<void> {
  for await (const { time } of feed) {
    changes++;
    if ((changes & 0xff) === 0) lagMs = Math.max(lagMs, Date.now() - time);
  }
}

const following = follow();
following.catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

serve<WatchOrder, Followed>({
  handle: async (order, answer) => {
    while (changes < order.changes) await sleep(lookMs);
    answer({ changes, lagMs });
  },
  close: async () => {
    await feed.return();
    await following;
    await db.close();
  },
});
