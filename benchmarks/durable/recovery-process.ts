// A process that opens a store, and with it recovers it if its memory is gone, and looks at a row.
import { serve, taskOf } from "../harness/process-side.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { totalOf } from "../memory/rows.ts";
import { Account } from "../memory/situ.ts";
import { type DurablePlace, openDurableBank } from "./situ.ts";

export interface RecoveryTask extends DurablePlace {
  readonly rows: number;
  /** How many times one was added to some row's balance. */
  readonly updates: number;
}

export interface Reopened {
  /** From the call of `open` until a row was read. */
  readonly ms: number;
  /** Of that, until the log was begun, and after it; 0 if memory was there. */
  readonly checkpointMs: number;
  readonly logMs: number;
  readonly checkpointBytes: number;
  readonly logBytes: number;
  readonly transactions: number;
  readonly threads: number;
}

const { rows, updates, ...place } = taskOf<RecoveryTask>();

const startNs = monotonicNs();
let logNs = startNs;
const db = await openDurableBank(place, ({ phase }) => {
  if (phase === "log" && logNs === startNs) logNs = monotonicNs();
});
const row = db.get(Account, rows >> 1);
const endNs = monotonicNs();
if (row === undefined) throw new Error(`situ lost row ${rows >> 1}`);

function check(): void {
  let total = 0n;
  for (let id = 0; id < rows; id++) total += db.get(Account, id)?.balance ?? 0n;
  const wanted = totalOf(rows) + BigInt(updates);
  if (total !== wanted) throw new Error(`situ: balances add up to ${total}, not ${wanted}`);
}

serve<"tell", Reopened>({
  handle(_, answer) {
    check();
    const { checkpointBytes = 0, logBytes = 0, transactions = 0, threads = 0 } = db.recovered ?? {};
    answer({
      ms: (endNs - startNs) / 1e6,
      checkpointMs: (logNs - startNs) / 1e6,
      logMs: logNs === startNs ? 0 : (endNs - logNs) / 1e6,
      ...{ checkpointBytes, logBytes, transactions, threads },
    });
  },
  close: () => db.close(),
});
