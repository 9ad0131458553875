// A process that opens a store, commits once, and rests.
import { setTimeout as sleep } from "node:timers/promises";
import { open, table, u32 } from "situ";
import { serve, taskOf } from "../harness/process-side.ts";

export interface IdleTask {
  readonly path: string;
  readonly memoryDir: string;
}
export interface IdleOrder {
  /** How long the process rests before. */
  readonly restMs: number;
  readonly ms: number;
}
export interface IdleOutcome {
  readonly cpuMs: number;
  readonly wallMs: number;
}

const Counter = table("counter", { id: u32(), value: u32() }, { key: "id" });
const db = await open({ ...taskOf<IdleTask>(), tables: [Counter], durability: "lazy" });
db.transactSync((tx) => tx.put(Counter, { id: 1, value: 1 }));

serve<IdleOrder, IdleOutcome>({
  async handle({ restMs, ms }, answer) {
    await sleep(restMs);
    const before = process.cpuUsage();
    const startMs = performance.now();
    await sleep(ms);
    const { user, system } = process.cpuUsage(before);
    answer({ cpuMs: (user + system) / 1_000, wallMs: performance.now() - startMs });
  },
  close: () => db.close(),
});
