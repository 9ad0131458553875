// A process that commits large transactions without a pause, so that it can be stopped in the middle of one.
import { open } from "../../src/index.ts";
import { serve, taskOf } from "../harness/process-side.ts";
import { EventLoopRows, type EventLoopTask, STOPPED_ROWS } from "./event-loop-store.ts";

const { path, memoryDir } = taskOf<EventLoopTask>();
const db = await open({ path, memoryDir, tables: [EventLoopRows] });
let round = 0n;

serve<"commit", "committing">({
  async handle(_message, answer) {
    answer("committing");
    for (;;) {
      round++;
      db.transactSync((tx) => {
        for (let id = 0; id < STOPPED_ROWS; id++) tx.put(EventLoopRows, { id, value: round });
      });
      // Otherwise the parent could only kill it, should it be gone.
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
  close: () => db.close(),
});
