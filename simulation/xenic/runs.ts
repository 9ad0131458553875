/**
 * List-append on simulated Xenic as a command runs it: all that is random follows from a seed, and each seed is run under every
 * table of places and techniques.
 */

import { XENIC_VALIDATED } from "../../src/protocols/kinds.ts";
import { OK, XenicMessage } from "../../src/protocols/xenic/message.ts";
import type { Switches } from "../../src/protocols/xenic/ports.ts";
import { Random } from "../../src/runtime/random.ts";
import type { Fault } from "../fabric/faults.ts";
import { simulateXenicAppend, type XenicAppendOptions, type XenicAppendReport } from "./append.ts";

export const XENIC_TABLES: Readonly<Record<string, Partial<Switches>>> = {
  "everything on": {},
  "rows are read and locked by different messages": { combines: false },
  "procedures run at the host": { runsAtNic: false },
  "without multi-hop": { hops: false },
  "none of these": { combines: false, runsAtNic: false, hops: false },
};

export const XENIC_FAULTS = ["none", "light", "heavy", "failover"] as const;
export type XenicFaultLevel = (typeof XENIC_FAULTS)[number];

const LIGHT: readonly Fault[] = [
  { kind: "loss", probability: 0.002 },
  { kind: "duplicate", probability: 0.01, maxUs: 500 },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
  { kind: "delay", probability: 0.05, maxUs: 300 },
];

export const XENIC_HEAVY: readonly Fault[] = [
  { kind: "delay", probability: 0.05, maxUs: 300 },
  { kind: "duplicate", probability: 0.03, maxUs: 2_000 },
  { kind: "loss", probability: 0.01 },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
];

const RULES: Readonly<Record<XenicFaultLevel, readonly Fault[]>> = {
  none: [],
  light: LIGHT,
  heavy: XENIC_HEAVY,
  failover: LIGHT,
};

/** Mistakes that the checks must find. */
export const XENIC_BUGS: Readonly<Record<string, Pick<XenicAppendOptions, "switches" | "tamper">>> =
  {
    "skip validation": {
      tamper: (message) =>
        message.kind === XENIC_VALIDATED
          ? new XenicMessage(message.kind, message.name, { status: OK })
          : message,
    },
    "count the own memory as a copy": { switches: { provesAll: false } },
  };

export interface XenicRun {
  readonly seed: number;
  readonly nodes: number;
  readonly transactions: number;
  readonly faults: XenicFaultLevel;
}

/** With "failover" as many servers die as there are backups: together, or one after the other. */
export function runXenic(
  { seed, nodes, transactions, faults }: XenicRun,
  more: Partial<XenicAppendOptions> = {},
): XenicAppendReport {
  const random = new Random(seed);
  const first = 20 + random.below(6 * transactions);
  const gap = random.below(2) === 0 ? 1 : 1 + random.below(400);
  const kills = faults === "failover" ? [first, first + gap].slice(0, Math.min(2, nodes - 1)) : [];
  return simulateXenicAppend({
    seed,
    servers: nodes,
    transactions,
    faults: RULES[faults],
    killsAt: kills,
    ...more,
  });
}

export function replayXenic({ seed, nodes, transactions, faults }: XenicRun): string {
  return (
    `npm run simulate -- --protocol xenic --seed ${seed} --nodes ${nodes} ` +
    `--transactions ${transactions} --faults ${faults}`
  );
}
