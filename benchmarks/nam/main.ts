// `npm run bench -- nam`: NAM-DB's Figures 4, 6 and 7, from the project's own NAM coroutines on a simulated network with a model of the
// paper's machines, and the verbs of a commit. All of it is virtual time: the load of this machine does not matter. With `loopback`, real
// sockets instead (loopback.ts).
import {
  FIGURE_4,
  FIGURE_4_MACHINES,
  FIGURE_6,
  figure4,
  figure6,
  type Series,
} from "../../simulation/nam/new-order-figure.ts";
import { FIGURE_7, timestampRate } from "../../simulation/nam/timestamps-figure.ts";
import { verbsOfCommit } from "../../simulation/nam/verbs-of-commit.ts";
import type { TimestampLayout } from "../../src/protocols/nam/timestamps.ts";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { releaseAll } from "../harness/resources.ts";
import { tellLoopback } from "./loopback.ts";

const { names: given, options } = parseBenchArguments(process.argv.slice(2));
const names = given.filter((name) => name !== "nam");
if (names.length > 1 || (names.length === 1 && names[0] !== "loopback")) {
  throw new TypeError(`nam has one measure on sockets, loopback: not "${names.join(" ")}"`);
}
if (names.length === 0) tellFigures();
else {
  try {
    console.log((await tellLoopback(options)).join("\n"));
  } finally {
    // Also after a failure: the folders in /dev/shm must not stay.
    releaseAll();
  }
}

function tellFigures(): void {
  const lines = ["Situ benchmark: nam (simulated)", ""];

  lines.push(
    "Figure 7: millions of timestamp transactions a second, 7 compute servers of 20 threads",
    "",
    "| timestamps | simulated | paper | factor | |",
    "|---|---|---|---|---|",
  );
  for (const layout of Object.keys(FIGURE_7) as TimestampLayout[]) {
    const { mtps, paper, isFitted } = timestampRate(layout);
    const how = isFitted ? "fitted" : "follows";
    lines.push(`| ${layout} | ${mtps.toFixed(1)} | ${paper} | ${factor(mtps, paper)} | ${how} |`);
  }

  lines.push("");

  const { paper, versions, journals, roundTrips, bytes } = verbsOfCommit(4, 2);
  lines.push(
    `O(4,2): ${paper} verbs as the paper counts, ${versions} for old versions, ${journals} for journals; ` +
      `${roundTrips} round trips, ${bytes} bytes in frames of 100-byte records`,
  );
  console.log(lines.join("\n"));

  const SERIES: readonly Series[] = ["without locality", "with locality", "classic SI"];
  console.log(
    [
      "",
      `Figure 4: millions of New-Orders a second; the paper has ${FIGURE_4.without} and ${FIGURE_4.with} on 56 machines`,
      "",
      `| machines | ${SERIES.join(" | ")} |`,
      "|---|---|---|---|",
    ].join("\n"),
  );
  for (const machines of options.quick ? FIGURE_4_MACHINES.slice(0, 2) : FIGURE_4_MACHINES) {
    const rates = SERIES.map((series) => figure4(machines, series).mtps);
    const [without, local] = rates;
    const factors =
      machines === 56
        ? ` factors ${factor(without, FIGURE_4.without)} (fitted), ${factor(local, FIGURE_4.with)} (follows)`
        : "";
    console.log(`| ${machines} | ${rates.map((rate) => rate.toFixed(2)).join(" | ")} |${factors}`);
  }

  console.log(
    [
      "",
      `Figure 6: seven machines, New-Order alone; the paper has a gain of ${FIGURE_6.gain} (follows) and more than ${FIGURE_6.mtps} M/s (fitted)`,
      "",
      "| distributed | without locality | with locality | gain |",
      "|---|---|---|---|",
    ].join("\n"),
  );
  for (const percent of options.quick ? [10] : [0, 10, 50, 100]) {
    const without = figure6(percent, false).mtps;
    const local = figure6(percent, true).mtps;
    const cells = [
      `${percent} %`,
      without.toFixed(2),
      local.toFixed(2),
      (local / without).toFixed(2),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

function factor(simulated: number, paper: number): string {
  return Math.max(simulated / paper, paper / simulated).toFixed(2);
}
