/**
 * A process of the demo: opens the store by its path and moves money until the office closes. It
 * gets no messages: when to begin and to end, and what it has done, is in the store.
 */

import { open } from "../../database/open.ts";
import { sleep, turn } from "../../runtime/clock.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import type { Run } from "./context.ts";
import { Office, TABLES, Teller, tellerName, transfer } from "./demo-bank.ts";

const TRANSFERS_PER_TURN = 200;
const LOOK_MS = 2;

export const runTeller: Run<"demo-teller"> = async ({ path, teller, accounts }) => {
  // If the demo is gone, nobody is left to close the office.
  const orphaned = (): void => process.exit(EXIT_FAILED);
  process.once("disconnect", orphaned);
  const random = new Random();
  await using db = await open({
    path,
    tables: TABLES,
    sharing: "processes",
    timeoutMs: DEFAULT_TIMEOUT_MS,
  });
  const own = { id: teller, name: tellerName(teller) };
  db.transactSync((tx) => tx.insert(Teller, { ...own, pid: process.pid, transfers: 0 }));
  while (!db.get(Office, 0)?.isOpen) await sleep(LOOK_MS);
  while (!db.get(Office, 0)?.isClosed) {
    for (let i = 0; i < TRANSFERS_PER_TURN; i++) {
      const from = random.below(accounts);
      const to = (from + 1 + random.below(accounts - 1)) % accounts;
      transfer(db, teller, from, to, BigInt(1 + random.below(100)));
    }
    await turn();
  }
  process.off("disconnect", orphaned);
  process.disconnect?.();
  return EXIT_OK;
};
