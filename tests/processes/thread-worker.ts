/** A worker thread that moves money until it is terminated, or dies by itself in mid-commit. */

import "../helpers/engine-all-atomics.ts";

import { parentPort, workerData } from "node:worker_threads";
import { open } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { Account } from "./crash-store.ts";

export interface ThreadOrder {
  readonly path: string;
  readonly sharing: "processes" | "threads";
  readonly seed: number;
  readonly accounts: number;
  /** Ends the thread at this atomic step after opening; 0: goes on until it is terminated. */
  readonly exitAtStep: number;
}

const { path, sharing, seed, accounts, exitAtStep } = workerData as ThreadOrder;
const random = new Random(seed);
const db = await open({ path, sharing, tables: [Account], timeoutMs: 30_000 });
parentPort!.postMessage("ready");

if (exitAtStep > 0) {
  let steps = 0;
  hookAtomics({
    before: () => {
      // In a worker this ends the thread, here and now, as terminate() does.
      if (++steps === exitAtStep) process.exit(0);
    },
  });
}

for (;;) {
  const amount = BigInt(1 + random.below(9));
  const [from, to] = [1 + random.below(accounts), 1 + random.below(accounts)];
  const extra = 10_000 + random.below(400);
  db.transactSync((tx) => {
    tx.update(Account, from, { balance: tx.get(Account, from)!.balance - amount });
    tx.update(Account, to, { balance: tx.get(Account, to)!.balance + amount });
    // Rows without money, so that cells and blocks are in the dead ones' hands too.
    if (!tx.delete(Account, extra)) tx.insert(Account, { id: extra, owner: "extra", balance: 0n });
  });
}
