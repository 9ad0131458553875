/**
 * A teller: a process of its own that opens the store by its path and moves money until the office
 * closes. It gets no messages: when to start and to end, and what it has done, is in the store.
 */

import { setImmediate, setTimeout } from "node:timers/promises";
import { open } from "situ";
import { FAMILY, Office, Teller, tables, transfer } from "./bank.ts";

const TRANSFERS_PER_TURN = 500;
const POLL_MS = 2;

const [path, id, name, accounts] = process.argv.slice(2);
const teller = Number(id);
const families = Number(accounts) / FAMILY;

// Ctrl-C reaches every process of the terminal. The head office decides when work ends.
process.on("SIGINT", () => {});
// If the head office is gone, nobody is left to close the office; it may be gone already.
process.once("disconnect", () => process.exit(1));
if (!process.connected) process.exit(1);

const below = (limit: number): number => Math.floor(Math.random() * limit);

const db = await open({ path, tables, sharing: "processes" });
db.transactSync((tx) => tx.insert(Teller, { id: teller, name, pid: process.pid, transfers: 0 }));

while (!db.get(Office, 0)?.isOpen) await setTimeout(POLL_MS);
while (!db.get(Office, 0)?.isClosed) {
  for (let i = 0; i < TRANSFERS_PER_TURN; i++) {
    const family = below(families) * FAMILY;
    const from = below(FAMILY);
    const to = (from + 1 + below(FAMILY - 1)) % FAMILY;
    transfer(db, teller, family + from, family + to, BigInt(1 + below(100)));
  }
  // Between turns the event loop runs, and with it the sweep that looks for dead executors.
  await setImmediate();
}

await db.close();
process.exit(0);
