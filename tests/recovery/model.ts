/**
 * All that can happen to one transaction: its commit, message by message, deaths of its coordinator
 * and of up to f of the f + 1 copies of each partition at any moment, new configurations, recovery, and
 * further deaths in the middle of it. `explore` visits every state that can be reached.
 *
 * What was sent needs no place in the state: it follows from how far the sender has come. A message that
 * is lost, late or refused is one that is not delivered. Who adopts a new configuration when does not
 * matter either: recovery begins when all have, and whoever was earlier only took fewer messages of the
 * old one. The replicas of different partitions are different nodes here: nodes that share more only
 * die together, which is some order of single deaths, too.
 *
 * Whoever may tell the outcome does so at once: to tell it later, or never, promises less.
 *
 * What must hold at every moment, also for nodes that have died since, as others may have seen it:
 *
 *   - Never both: somebody was told "committed" or a copy has it installed; and somebody was told
 *     "aborted", or a copy has dropped it, or a primary has no lock any more where one was granted.
 *   - When nothing can happen any more, no survivor is in doubt.
 */

import {
  decide,
  SAW_ABORT,
  SAW_COMMIT,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
  type Seen,
  strongest,
  type Vote,
  voteOf,
} from "../../src/protocols/recovery/votes.ts";
import { commitSteps, deathSteps, recoverySteps, type Step } from "./steps.ts";

export interface Shape {
  readonly partitions: number;
  /** Backups of each (f). */
  readonly backups: number;
  /** Whether the coordinator is the primary of the first partition, or of nothing. */
  readonly isPrimary: boolean;
  /** New configurations, at most. */
  readonly configurations: number;
  /** Whether lost copies are replaced. */
  readonly refills: boolean;
  /** Rows were locked as they were read (rpc): LOCK only brings the writes, at the same time as LOG. */
  readonly locksEarly?: boolean;
}

/** What can be got wrong. */
export interface Rules {
  readonly vote: (seen: Seen) => Vote;
  readonly decide: (votes: readonly Vote[]) => "commit" | "abort";
  /** Whether the coordinator says "committed" when all backups have logged, before its own copy is installed. */
  readonly tellsAfterLog: boolean;
  /** What a replica makes of the `low` of its coordinator's next life. */
  readonly laterLife: (seen: Seen) => Seen;
  /** What a replica has when the partition's primary has passed on the strongest. */
  readonly replicate: (own: Seen, theirs: Seen) => Seen;
  readonly votesWhenReplicated: boolean;
  readonly abortsBackupsFirst: boolean;
  /** Whether a primary waits for what all replicas have seen before it serves. */
  readonly asksAll: boolean;
}

export const RULES: Rules = {
  vote: voteOf,
  decide,
  tellsAfterLog: false,
  laterLife: (seen) => seen,
  replicate: strongest,
  votesWhenReplicated: true,
  abortsBackupsFirst: true,
  asksAll: true,
};

/** How far the coordinator has come. What it has sent is delivered even if it has died, up to the next configuration. */
const PHASES = [
  "lock",
  "log",
  "commit",
  "truncate",
  "abort backups",
  "abort",
  "abort all",
  "over",
  "recovery",
] as const;

export type Phase = (typeof PHASES)[number];

export interface Replica {
  seen: Seen;
  isAlive: boolean;
  /** Gets all records, but does not count as a copy yet. */
  isFilling: boolean;
  /** Recovery: has what the primary passed on. */
  hasAll: boolean;
}

/** The first replica is the primary. */
interface Partition {
  replicas: Replica[];
  /** A lock was granted, once. */
  wasLocked: boolean;
  /** Recovery: the strongest that any replica has seen, once all have said. */
  strongest: Seen | undefined;
}

export interface State {
  phase: Phase;
  isCoordinatorAlive: boolean;
  configuration: number;
  /** Recovery: some replica was in doubt when the configuration began; else there is nothing to do. */
  isFound: boolean;
  outcome: "commit" | "abort" | undefined;
  toldCommitted: boolean;
  toldAborted: boolean;
  /** A primary has shown it to others. */
  installed: boolean;
  /** A primary has let others write what it had locked. */
  released: boolean;
  partitions: Partition[];
}

export interface Explored {
  readonly states: number;
  /** How it came to the first state that must not be, step by step. */
  readonly violation: readonly string[] | undefined;
}

/** Visits all states that can be reached, those with the fewest steps first. */
export function explore(shape: Shape, rules: Rules = RULES): Explored {
  const first = encode(begin(shape));
  const cameFrom = new Map<string, { from: string; name: string } | undefined>([
    [first, undefined],
  ]);
  let violation: readonly string[] | undefined;
  for (const key of cameFrom.keys()) {
    const state = decode(key);
    let ways = 0;
    const step: Step = (name, change) => {
      const next = decode(key);
      change(next);
      const reached = encode(next);
      if (reached === key) return;
      ways++;
      if (cameFrom.has(reached)) return;
      cameFrom.set(reached, { from: key, name });
      if (violation === undefined && contradicts(next)) violation = path(cameFrom, reached);
    };
    commitSteps(state, shape, rules, step);
    deathSteps(state, shape, rules, step);
    recoverySteps(state, rules, step);
    if (ways === 0 && isInDoubt(state)) violation ??= [...path(cameFrom, key), "stuck"];
    if (violation !== undefined) break;
  }
  return { states: cameFrom.size, violation };
}

function begin({ partitions, backups, locksEarly = false }: Shape): State {
  const replica = (): Replica => ({
    seen: SAW_NOTHING,
    isAlive: true,
    isFilling: false,
    hasAll: false,
  });
  return {
    phase: locksEarly ? "log" : "lock",
    isCoordinatorAlive: true,
    configuration: 0,
    isFound: false,
    outcome: undefined,
    toldCommitted: false,
    toldAborted: false,
    installed: false,
    released: false,
    partitions: Array.from({ length: partitions }, () => ({
      replicas: Array.from({ length: backups + 1 }, replica),
      wasLocked: locksEarly,
      strongest: undefined,
    })),
  };
}

function contradicts({ partitions, ...state }: State): boolean {
  const has = (seen: Seen): boolean =>
    partitions.some(({ replicas }) => replicas.some((each) => each.isAlive && each.seen === seen));
  const committed = state.toldCommitted || state.installed || has(SAW_COMMIT);
  const aborted = state.toldAborted || state.released || has(SAW_ABORT);
  return committed && aborted;
}

export function isInDoubt({ partitions }: State): boolean {
  const inDoubt = ({ isAlive, seen }: Replica): boolean =>
    isAlive && (seen === SAW_LOCK || seen === SAW_LOG);
  return partitions.some(({ replicas }) => replicas.some(inDoubt));
}

/** The steps that lead to a state, from the first. */
function path(
  cameFrom: ReadonlyMap<string, { from: string; name: string } | undefined>,
  reached: string,
): string[] {
  const names: string[] = [];
  for (let at = cameFrom.get(reached); at !== undefined; at = cameFrom.get(at.from)) {
    names.unshift(at.name);
  }
  return names;
}

/** As a short string. Backups that differ in nothing but their place are the same. */
function encode(state: State): string {
  const { phase, outcome, configuration, partitions } = state;
  const codes = [
    PHASES.indexOf(phase),
    configuration,
    outcome === undefined ? 0 : outcome === "commit" ? 1 : 2,
    bits(state.isCoordinatorAlive, state.toldCommitted, state.toldAborted) +
      8 * bits(state.installed, state.released, state.isFound),
  ];
  return String.fromCharCode(...codes) + partitions.map(encodePartition).join("");
}

function encodePartition({ replicas, wasLocked, strongest: known }: Partition): string {
  const [primary, ...others] = replicas.map(
    ({ seen, isAlive, isFilling, hasAll }) => 8 * seen + bits(isAlive, isFilling, hasAll),
  );
  others.sort((a, b) => a - b);
  const seen = known === undefined ? 0 : known + 1;
  return String.fromCharCode(replicas.length, bits(wasLocked), seen, primary, ...others);
}

function decode(key: string): State {
  let at = 0;
  const code = (): number => key.charCodeAt(at++);
  const has = (flags: number, bit: number): boolean => (flags & (1 << bit)) !== 0;
  const phase = PHASES[code()];
  const configuration = code();
  const outcome = ([undefined, "commit", "abort"] as const)[code()];
  const flags = code();
  const partitions: Partition[] = [];
  while (at < key.length) {
    const count = code();
    const wasLocked = code() === 1;
    const known = code();
    const replicas = Array.from({ length: count }, (): Replica => {
      const packed = code();
      return {
        seen: (packed >> 3) as Seen,
        isAlive: has(packed, 0),
        isFilling: has(packed, 1),
        hasAll: has(packed, 2),
      };
    });
    const seen = known === 0 ? undefined : ((known - 1) as Seen);
    partitions.push({ replicas, wasLocked, strongest: seen });
  }
  return {
    phase,
    configuration,
    outcome,
    isCoordinatorAlive: has(flags, 0),
    toldCommitted: has(flags, 1),
    toldAborted: has(flags, 2),
    installed: has(flags, 3),
    released: has(flags, 4),
    isFound: has(flags, 5),
    partitions,
  };
}

function bits(first: boolean, second = false, third = false): number {
  return (first ? 1 : 0) + (second ? 2 : 0) + (third ? 4 : 0);
}
