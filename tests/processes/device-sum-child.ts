/** A process that moves amounts between the rows of a device table, which it keeps moving to pages and compacting. */

import { localDatabase } from "../../src/database/local/local-database.ts";
import { nowMs } from "../../src/runtime/clock.ts";
import { Random } from "../../src/runtime/random.ts";
import { ACCOUNTS, Account, openAccounts, sumOf, workIn } from "./device-store.ts";

const { path, seed, transfers } = JSON.parse(process.argv[2]) as {
  path: string;
  seed: number;
  transfers: number;
};
const random = new Random(seed);
const db = localDatabase(await openAccounts(path));
const { mover, collector, table } = workIn(db);
for (let i = 1; i <= transfers; i++) {
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  const pad = "p".repeat(300 + random.below(500));
  if (i % 3 === 0) {
    await db.transact(async (tx) => {
      const [a, b] = await tx.getMany(Account, [from, to]);
      await tx.update(Account, from, { amount: a!.amount - 1 });
      await tx.put(Account, { id: to, amount: b!.amount + 1, pad });
    });
  } else {
    db.transactSync((tx) => {
      tx.update(Account, from, { amount: tx.get(Account, from)!.amount - 1 });
      tx.update(Account, to, { amount: tx.get(Account, to)!.amount + 1 });
    });
  }
  if (i % 40 === 0) {
    mover.move(Number.POSITIVE_INFINITY);
    if (i % 200 === 0) table.writtenPages = 2 ** 30;
    collector.work(nowMs() + 5);
    const snapshot = db.snapshot();
    const sum = sumOf(snapshot.scan(Account));
    snapshot.close();
    if (sum !== 0) throw new Error(`a snapshot has the sum ${sum}`);
  }
}
console.log(JSON.stringify({ moved: mover.moved, freed: collector.freed }));
await db.close();
