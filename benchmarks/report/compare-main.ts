// npm run bench -- --compare A B: what changed between two results of the suite.
import { parseArgs } from "node:util";
import { firstLine } from "../harness/peers.ts";
import { compareData, compareResults } from "./compare.ts";
import { readResult } from "./read.ts";

const usage = `npm run bench -- --compare A B [--json]
A and B are folders with a results.json, such files, or names below benchmarks/results.`;

try {
  const { values, positionals } = parseArgs({
    options: { compare: { type: "boolean" }, json: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const [before, after, ...surplus] = positionals;
  if (before === undefined || after === undefined || surplus.length > 0) {
    throw new TypeError(`two results to compare, not ${positionals.length}\n\n${usage}`);
  }
  console.log(await compareResults(before, after));
  if (values.json) {
    const [left, right] = await Promise.all([readResult(before), readResult(after)]);
    console.log(JSON.stringify(compareData(left, right)));
  }
} catch (error) {
  console.error(error instanceof TypeError ? error.message : firstLine(error));
  process.exitCode = 2;
}
