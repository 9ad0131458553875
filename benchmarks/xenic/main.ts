// `npm run bench -- xenic [measure…]`: what the paper Xenic has measured, measured again. `table2`: objects read and round trips of a
// lookup, counted. `figures`: Figures 8 and 9, simulated. `messages`: what commits cost on
// three real nodes, counted. None of these depends on the machine. `sockets`: nodes that commit so against nodes
// that commit by RPC, on this machine. `ablation`: the former with some of their techniques.
import { MAX_DISPLACEMENT, SEGMENT_SLOTS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { createProgress } from "../harness/progress.ts";
import { releaseAll } from "../harness/resources.ts";
import { tellCommits } from "./commits.ts";
import { tellFigures } from "./figures.ts";
import { countHere } from "./here.ts";
import type { LookupCost } from "./lookup-cost.ts";
import { measureAblation, measureSockets, tellAblation, tellSockets } from "./sockets.ts";
import { type LayoutName, storeCost } from "./store-reads.ts";
import { OCCUPANCY, situRobinhood, table2, unlimited } from "./table2.ts";

const MEASURES = ["table2", "figures", "messages", "sockets", "ablation"];

function line(name: string, counted: LookupCost, paper?: LookupCost): string {
  const figures = [counted.objects, counted.roundTrips].map((value) =>
    value.toFixed(2).padStart(6),
  );
  const cells = [name.padEnd(52), ...figures];
  if (paper !== undefined) {
    const off = (mine: number, theirs: number): string =>
      `${theirs.toFixed(2).padStart(6)} ${(100 * (mine / theirs - 1)).toFixed(1).padStart(5)} %`;
    cells.push(off(counted.objects, paper.objects), off(counted.roundTrips, paper.roundTrips));
  }
  return `  ${cells.join("  ")}`;
}

async function tellTable2(keys: number, shards: number, seed: number): Promise<string[]> {
  const lines = [
    `Table 2: a lookup in a table that is ${100 * OCCUPANCY} % full, ${keys.toLocaleString("en")} keys`,
    `  ${"".padEnd(52)}  ${"objects".padStart(6)} ${"trips".padStart(6)}  paper: objects, trips, each with the difference`,
  ];
  const rows = table2(keys, seed);
  for (const { name, counted, paper } of rows) lines.push(line(name, counted, paper));
  const worst = Math.max(
    ...rows.flatMap(({ counted, paper }) => [
      Math.abs(counted.objects / paper.objects - 1),
      Math.abs(counted.roundTrips / paper.roundTrips - 1),
    ]),
  );
  lines.push(`  largest difference ${(100 * worst).toFixed(1)} % (bar 2 %)`);
  const random = new Random(seed);
  for (const slack of [0, 1]) {
    const name = `(no limit, segments of 2, k = ${slack})`;
    lines.push(line(name, unlimited(keys, 2, slack, random), { objects: 6.39, roundTrips: 1 }));
  }
  lines.push("", `Situ's tables, ${shards} shards each, counted in the store`);
  for (const layout of ["hopscotch", "buckets", "robinhood"] satisfies LayoutName[]) {
    lines.push(line(layout, await storeCost(layout, OCCUPANCY, shards, seed)));
  }
  const hinted = `robinhood, by who has hints (segments of ${SEGMENT_SLOTS}, k = 1)`;
  lines.push(line(hinted, situRobinhood(keys, MAX_DISPLACEMENT, seed)));
  return lines;
}

const { names, options } = parseBenchArguments(process.argv.slice(2));
const chosen = names.filter((name) => name !== "xenic");
const unknown = chosen.filter((name) => !MEASURES.includes(name));
if (unknown.length > 0) {
  console.error(`there is no measure ${unknown.join(", ")}; there are ${MEASURES.join(", ")}`);
  process.exit(2);
}
const { quick, seed, json, rounds } = options;
console.log("Situ benchmark: xenic");
const isWanted = (measure: string): boolean => chosen.length === 0 || chosen.includes(measure);
if (isWanted("table2")) {
  console.log((await tellTable2(quick ? 400_000 : 8_000_000, quick ? 32 : 256, seed)).join("\n"));
}
if (isWanted("figures")) for (const told of tellFigures(quick)) console.log(told);
if (isWanted("messages") || isWanted("sockets"))
  console.log(["", ...tellCommits(await countHere())].join("\n"));
if (isWanted("sockets") || isWanted("ablation")) {
  const progress = createProgress();
  try {
    if (isWanted("sockets")) {
      const compared = await measureSockets(options, progress);
      progress.clear();
      console.log(["", ...tellSockets(compared, rounds)].join("\n"));
      if (json) console.log(JSON.stringify({ bench: "xenic", compared }));
    }
    if (isWanted("ablation")) {
      const steps = await measureAblation(options, progress);
      progress.clear();
      console.log(["", ...tellAblation(steps, rounds)].join("\n"));
      if (json) console.log(JSON.stringify({ bench: "xenic", steps }));
    }
  } finally {
    // Also after a failure: no node and no folder in /dev/shm must stay.
    progress.clear();
    releaseAll();
  }
}
