// A process that replaces, deletes and inserts rows of mixed sizes for a while.
import { nowMs } from "../../src/runtime/clock.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { randomStream } from "../harness/random.ts";
import { fill, IDS_PER_PROCESS, Mixed, type MixedTask, mixedValue, openMixed } from "./mixed.ts";

export interface ChurnTask extends MixedTask {
  /** Rows that the process has at a time, about. */
  readonly rows: number;
}

export type ChurnOrder =
  | { readonly order: "churn"; readonly ms: number }
  | { readonly order: "delete" }
  | { readonly order: "fill" };

/** How many rows are changed before the event loop gets a turn, as in a service. */
const turnRows = 64;

const task = taskOf<ChurnTask>();
const db = await openMixed(task);
const random = randomStream(task.seed, task.number);
const first = task.number * IDS_PER_PROCESS;
/** Bytes of the row of each id; -1 if there is none. */
const sizes = new Int32Array(2 * task.rows).fill(-1);

function change(): void {
  const index = Math.floor(random() * sizes.length);
  const id = first + index;
  if (sizes[index] >= 0 && random() < 0.5) {
    db.transactSync((tx) => tx.delete(Mixed, id));
    sizes[index] = -1;
  } else if (sizes[index] >= 0 || random() < 0.5) {
    const value = mixedValue(random);
    db.transactSync((tx) => tx.put(Mixed, { id, value }));
    sizes[index] = value.length;
  }
}

async function churn(ms: number): Promise<void> {
  const endMs = nowMs() + ms;
  while (nowMs() < endMs) {
    for (let row = 0; row < turnRows; row++) change();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

serve<ChurnOrder, number>({
  async handle(message, answer) {
    if (message.order === "fill") {
      answer(fill(db, first, random));
    } else if (message.order === "churn") {
      await churn(message.ms);
      answer(sizes.reduce((sum, size) => sum + Math.max(size, 0), 0));
    } else {
      for (let index = 0; index < sizes.length; index++) {
        db.transactSync((tx) => tx.delete(Mixed, first + index));
      }
      answer(0);
    }
  },
  close: () => db.close(),
});
