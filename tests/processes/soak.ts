/**
 * The kill storm for as long as one likes:
 *
 *   node dist/tests/processes/soak.js --seed 1 --minutes 10 [--processes 4] [--kills 500]
 */

import { parseArgs } from "node:util";
import { Random } from "../../src/runtime/random.ts";
import { runStorm } from "./storm.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    minutes: { type: "string", default: "5" },
    processes: { type: "string", default: "3" },
    kills: { type: "string", default: "300" },
  },
});
const seed = Number(values.seed ?? 1 + new Random().below(2 ** 30));
const report = await runStorm({
  seed,
  processes: Number(values.processes),
  kills: Number(values.kills),
  minutes: Number(values.minutes),
  progress: (line) => console.error(`seed ${seed}: ${line}`),
});
console.log(JSON.stringify(report, undefined, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;
