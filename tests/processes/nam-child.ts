/** A compute server of tests/nam/sockets.test.ts: moves money between accounts until it is told to stop, or killed. */

import { open, SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { isStopped, listenForStop, orderOf, report } from "../helpers/process-child.ts";
import { ACCOUNTS, Account } from "../nam/accounts.ts";

export interface TransferOrder {
  readonly connect: readonly string[];
  readonly seed: number;
}

const order = orderOf<TransferOrder>();
listenForStop();
const db = await open({ connect: order.connect, tables: [Account], timeoutMs: 60_000 });
process.stdout.write("ready\n");
const codes: Record<string, number> = {};
let transfers = 0;

async function transfer(random: Random): Promise<void> {
  const from = random.below(ACCOUNTS);
  const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
  try {
    await db.transact(
      async (tx) => {
        const [a, b] = await tx.getMany(Account, [from, to]);
        await tx.put(Account, { ...a!, balance: a!.balance - 1 });
        await tx.put(Account, { ...b!, balance: b!.balance + 1 });
      },
      { isolation: "snapshot" },
    );
    transfers++;
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    codes[error.code] = (codes[error.code] ?? 0) + 1;
  }
}

const randoms = [1, 2, 3].map((each) => new Random(order.seed * 10 + each));
await Promise.all(
  randoms.map(async (random) => {
    while (!isStopped()) await transfer(random);
  }),
);
await db.close();
report({ transfers, codes });
