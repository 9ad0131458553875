/**
 * Nodes crash, stop, do not hear each other, and come back, the store of configurations is slow or gone, and
 * operators drain nodes and have them removed: from one seed. What must hold at every event holds (cluster.ts);
 * and when all is healed, a configuration is committed within HEALED_LEASES, all nodes are members of it and
 * serve, all copies are there and balanced, and those that are drained have nothing.
 */

import type { Fault } from "../fabric/faults.ts";
import { between } from "../fabric/streams.ts";
import { AWAY_US, LEASE_US, type MembershipOptions, SimulatedMembership } from "./cluster.ts";
import { LATEST_REQUEST_US } from "./store.ts";

/** So long things go wrong. */
const STORM_US = 24 * LEASE_US;
/** How long it takes at most, after that, until the cluster serves again. */
export const HEALED_LEASES = 80;

const FRAMES: readonly Fault[] = [
  { kind: "loss", probability: 0.01 },
  { kind: "duplicate", probability: 0.02, maxUs: 2 * LEASE_US },
  { kind: "delay", probability: 0.05, maxUs: LEASE_US / 4 },
  { kind: "delay", probability: 0.01, minUs: LEASE_US / 4, maxUs: 3 * LEASE_US },
];
/** How often operators ask for what they want. */
const ASKED = 12;
/** Of the requests to the store. */
const MISHAPS = 0.1;

const EPISODES = [
  ...Array<"crash">(5).fill("crash"),
  ...Array<"stop">(4).fill("stop"),
  "two do not hear each other",
  "two do not hear each other",
  "some do not hear the others",
  "some do not hear the others",
  "some do not hear the others",
  "the store is gone",
  "the store is slow",
  "the power is gone",
  "a node is drained",
  "a node is drained",
  "a node is not drained any more",
] as const;

export interface MembershipReport {
  readonly problems: readonly string[];
  readonly events: number;
  /** Configurations that were in the store, and those that were committed. */
  readonly configurations: number;
  readonly committed: number;
  readonly lostPartitions: number;
}

export function simulateMembership(options: MembershipOptions): MembershipReport {
  // In every other run connections do not last, so that who is late is removed, and comes back.
  const connectionsLast = options.seed % 2 === 0;
  const cluster = new SimulatedMembership({ connectionsLast, ...options });
  recover(cluster);
  for (const rule of FRAMES) cluster.world.faults.add(rule);
  cluster.store.mishaps = MISHAPS;
  const untilUs = cluster.world.nowUs + STORM_US;
  const next = (): void => {
    const inUs = between(cluster.random, 1e3, 3 * LEASE_US);
    if (cluster.world.nowUs + inUs >= untilUs) return;
    cluster.after(inUs, () => {
      episode(cluster);
      next();
    });
  };
  next();
  cluster.runFor(STORM_US);
  cluster.heal();
  recover(cluster);
  // Late requests may reach the store even now; after those, too, it gets well again.
  cluster.runFor(LATEST_REQUEST_US);
  recover(cluster);
  return {
    problems: cluster.problems,
    events: cluster.events,
    configurations: cluster.store.current.configurationId,
    committed: cluster.committed.size,
    lostPartitions: cluster.lost().length,
  };
}

function recover(cluster: SimulatedMembership): void {
  cluster.runFor(HEALED_LEASES * LEASE_US, () => cluster.illness() === undefined);
  const illness = cluster.problems.length === 0 ? cluster.illness() : undefined;
  if (illness !== undefined) cluster.problems.push(`after ${HEALED_LEASES} leases: ${illness}`);
}

function episode(cluster: SimulatedMembership): void {
  const random = cluster.random;
  const ids = cluster.members.map(({ id }) => id);
  const id = random.below(ids.length);
  const lastsUs = between(random, 1e3, random.below(3) === 0 ? 8 * LEASE_US : 1.5 * LEASE_US);
  switch (EPISODES[random.below(EPISODES.length)]) {
    case "crash":
      cluster.crash(id, lastsUs);
      break;
    case "stop":
      cluster.stop(id, lastsUs);
      break;
    case "two do not hear each other":
      cluster.cut([id], [random.below(ids.length)], lastsUs, random.below(2) === 0);
      break;
    case "some do not hear the others": {
      const some = ids.filter(() => random.below(2) === 0);
      const others = ids.filter((each) => !some.includes(each));
      cluster.cut(some, others, lastsUs, random.below(3) === 0);
      break;
    }
    case "the store is gone":
      cluster.store.isGone = true;
      cluster.after(lastsUs, () => {
        cluster.store.isGone = false;
      });
      break;
    case "the store is slow":
      cluster.store.isSlow = true;
      cluster.after(lastsUs, () => {
        cluster.store.isSlow = false;
      });
      break;
    case "a node is drained":
      // Asked for again until it is done, or told otherwise.
      for (let i = 0; i < ASKED; i++) cluster.after(i * LEASE_US, () => cluster.replace(id));
      break;
    case "a node is not drained any more":
      cluster.ask({ what: "undrain", node: id });
      break;
    case "the power is gone":
      for (const each of ids) cluster.crash(each, between(random, 1e3, AWAY_US));
  }
}
