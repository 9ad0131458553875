// `npm run bench -- trust`: whether the promises at the edges hold: a second memory refused, memory that can
// really be used, large transactions that get through, an event loop that turns, a store that idles.
import { churn } from "./churn.ts";
import { eventLoop } from "./event-loop.ts";
import { idle } from "./idle.ts";
import { joining } from "./joining.ts";
import { mixedRows } from "./mixed-rows.ts";
import { runMeasures } from "./run.ts";
import { secondMemory } from "./second-memory.ts";
import { starvation } from "./starvation.ts";

await runMeasures("trust", [secondMemory, mixedRows, churn, starvation, eventLoop, idle, joining]);
