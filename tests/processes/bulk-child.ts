/** Moves money between single accounts, or in all of them at once, until its input ends or it is killed. */

import { count, type InferRow, type RowExpressions } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  ACCOUNTS,
  Account,
  BRANCHES,
  type BulkOrder,
  openStore,
  TIMEOUT_MS,
} from "./bulk-store.ts";

type Rows = RowExpressions<InferRow<typeof Account>>;

const { path, role, seed } = JSON.parse(process.argv[2]) as BulkOrder;
const random = new Random(seed);
const db = await openStore(path);
let isOver = false;
process.stdin.resume().on("end", () => {
  isOver = true;
});
process.stdout.write("working\n");

const options = { timeoutMs: TIMEOUT_MS };

function transfer(): void {
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  db.transactSync((tx) => {
    const { balance } = tx.get(Account, from)!;
    tx.update(Account, from, { balance: balance - 1n });
    tx.update(Account, to, { balance: tx.get(Account, to)!.balance + 1n });
  }, options);
}

async function bulk(): Promise<void> {
  switch (random.below(3)) {
    case 0:
      // All rows are in one round, always.
      await db.updateWhere(Account, { set: (a) => ({ round: a.round.plus(1) }) }, options);
      return;
    case 1: {
      // What one half of a branch loses, the other half gets; found by the index, which rows also leave.
      const branch = random.below(BRANCHES);
      await db.transact(async (tx) => {
        const { n } = await tx.aggregate(Account, {
          where: (a) => a.branch.eq(branch).and(a.id.lt(ACCOUNTS / 2)),
          values: () => ({ n: count() }),
        });
        const lost = await tx.updateWhere(Account, {
          where: (a) => a.branch.eq(branch).and(a.id.lt(ACCOUNTS / 2)),
          set: (a) => ({ balance: a.balance.minus(1n), branch: (branch + 1) % BRANCHES }),
        });
        if (lost.changed !== n) throw new Error(`${n} rows, and ${lost.changed} were changed`);
        const [{ id }] = await tx.select(Account, { limit: 1, columns: ["id"] }).toArray();
        await tx.updateWhere(Account, {
          where: (a) => a.id.eq(id),
          set: (a) => ({ balance: a.balance.plus(BigInt(n)) }),
        });
      }, options);
      return;
    }
    default: {
      // Deleted and put back, in one transaction.
      const first = random.below(ACCOUNTS - 10);
      await db.transact(async (tx) => {
        const where = (a: Rows) => a.id.gte(first).and(a.id.lt(first + 10));
        const rows = await tx.select(Account, { where }).toArray();
        const gone = await tx.deleteWhere(Account, { where });
        if (gone.matched !== rows.length) throw new Error("other rows were deleted than selected");
        for (const row of rows) await tx.insert(Account, row);
      }, options);
    }
  }
}

while (!isOver) {
  if (role === "bulk") await bulk();
  else for (let i = 0; i < 50; i++) transfer();
  await new Promise((resolve) => setImmediate(resolve));
}
await db.close();
