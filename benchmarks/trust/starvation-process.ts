// A process that writes single rows without pause from the moment that it is told to, and says how many.
import { serve, taskOf } from "../harness/process-side.ts";
import { keyMask, randomKeys } from "../harness/random.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { Account, openBank, type StorePlace } from "../memory/situ.ts";

export interface WriterTask extends StorePlace {
  readonly rows: number;
  readonly seed: number;
}

export interface Written {
  readonly operations: number;
  readonly atNs: number;
}

/** Between two looks for messages. */
const operationsPerTurn = 1_024;

const task = taskOf<WriterTask>();
const db = await openBank(task);
const keys = randomKeys(task.rows, task.seed);
let operations = 0;
let isOver = false;

async function write(): Promise<void> {
  for (let cursor = 0; !isOver; ) {
    for (let done = 0; done < operationsPerTurn; done++) {
      const id = keys[cursor];
      cursor = (cursor + 1) & keyMask;
      db.transactSync((tx) => {
        const row = tx.get(Account, id);
        if (row === undefined) throw new Error(`situ lost row ${id}`);
        tx.update(Account, id, { balance: row.balance + 1n });
      });
      operations++;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const writing = write();
writing.catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});

serve<"count", Written>({
  handle: (_, answer) => answer({ operations, atNs: monotonicNs() }),
  close: async () => {
    isOver = true;
    await writing;
    await db.close();
  },
});
