/** The checks of the simulation find bugs: each of these is found within a few seeds. */

import { expect, test } from "vitest";
import { simulate, type WorkloadName } from "../../simulation/cluster/simulate.ts";
import { PLANTED } from "./planted.ts";

const SEEDS = 24;

interface Hunt {
  readonly workload: WorkloadName;
  readonly faults: "none" | "light" | "heavy";
  /** What the first problem of a failing run looks like. */
  readonly found: RegExp;
}

const HUNTS: Readonly<Record<string, Hunt>> = {
  "skip validation": { workload: "append", faults: "none", found: /anomalies: / },
  "forget a backup": { workload: "bank", faults: "none", found: /node 0, a backup, has/ },
  "commit at the primary before the backups have logged": {
    workload: "append",
    faults: "none",
    found: /a backup, has|records wait to be applied/,
  },
  "validate before all locks are held": {
    workload: "append",
    faults: "light",
    found: /anomalies: /,
  },
  "forget what is over": {
    workload: "append",
    faults: "heavy",
    // A late LOCK begins a transaction anew, and a repeated COMMIT does not know it.
    found: /at rest: \d+ (transactions|records|objects)/,
  },
  "apply a transaction as often as it is submitted": {
    workload: "registers",
    faults: "heavy",
    found: /register \d/,
  },
};

test.each(Object.entries(HUNTS))("planted bug: %s", async (name, { workload, faults, found }) => {
  const Service = PLANTED[name];
  const seen: string[] = [];
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { problems } = await simulate({
      seed,
      nodes: 5,
      workload,
      clients: 16,
      transactions: 50,
      faults,
      protocol: "rpc",
      node: { makeService: (options) => new Service(options) },
    });
    seen.push(...problems);
    if (problems.some((each) => found.test(each))) return;
  }
  expect.fail(`none of ${SEEDS} seeds has shown it; what was seen: ${seen.join("\n")}`);
});
