/**
 * The checks of the simulation find bugs: each of these is found within a few seeds. A hunt begins at a seed that showed
 * the bug when the hunt was written, and goes on if that no longer does.
 */

import { expect, test } from "vitest";
import { simulate, type WorkloadName } from "../../simulation/cluster/simulate.ts";
import { PLANTED } from "./planted.ts";

const SEEDS = 24;

interface Hunt {
  readonly workload: WorkloadName;
  readonly faults: "none" | "light" | "heavy";
  readonly firstSeed: number;
  /** What the first problem of a failing run looks like. */
  readonly found: RegExp;
}

const HUNTS: Readonly<Record<string, Hunt>> = {
  "skip validation": { workload: "append", faults: "none", firstSeed: 3, found: /anomalies: / },
  "forget a backup": {
    workload: "bank",
    faults: "none",
    firstSeed: 1,
    found: /node 0, a backup, has/,
  },
  "commit at the primary before the backups have logged": {
    workload: "append",
    faults: "none",
    firstSeed: 1,
    found: /a backup, has|records wait to be applied/,
  },
  "validate before all locks are held": {
    workload: "append",
    faults: "light",
    firstSeed: 12,
    found: /anomalies: /,
  },
  "forget what is over": {
    workload: "append",
    faults: "heavy",
    firstSeed: 3,
    // A late LOCK begins a transaction anew, and a repeated COMMIT does not know it.
    found: /at rest: \d+ (transactions|records|objects)/,
  },
  "apply a transaction as often as it is submitted": {
    workload: "registers",
    faults: "heavy",
    firstSeed: 6,
    found: /register \d/,
  },
};

test.each(Object.entries(HUNTS))("planted bug: %s", async (name, hunt) => {
  const { workload, faults, firstSeed, found } = hunt;
  const Service = PLANTED[name];
  const seen: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + SEEDS; seed++) {
    const { problems } = await simulate({
      seed,
      nodes: 5,
      workload,
      clients: 8,
      transactions: 20,
      faults,
      protocol: "rpc",
      node: { makeService: (options) => new Service(options) },
    });
    seen.push(...problems);
    if (problems.some((each) => found.test(each))) return;
  }
  expect.fail(`none of ${SEEDS} seeds has shown it; what was seen: ${seen.join("\n")}`);
});
