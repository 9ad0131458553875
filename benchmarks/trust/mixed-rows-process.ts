// A process that puts rows of mixed sizes into a store until the store is full.
import { serve, taskOf } from "../harness/process-side.ts";
import { randomStream } from "../harness/random.ts";
import { fill, IDS_PER_PROCESS, type MixedTask, openMixed } from "./mixed.ts";

const task = taskOf<MixedTask>();
const db = await openMixed(task);

serve<"fill", number>({
  handle: (_, answer) => {
    answer(fill(db, task.number * IDS_PER_PROCESS, randomStream(task.seed, task.number)));
  },
  close: () => db.close(),
});
