/** What can happen next in the model of model.ts: the commit, deaths, recovery. */

import {
  SAW_ABORT,
  SAW_COMMIT,
  SAW_END,
  SAW_LOCK,
  SAW_LOG,
  SAW_NOTHING,
  type Seen,
  strongest,
} from "../../src/protocols/recovery/votes.ts";
import {
  isInDoubt,
  type Phase,
  type Replica,
  type Rules,
  type Shape,
  type State,
} from "./model.ts";

/** Takes one thing that can happen. */
export type Step = (name: string, change: (state: State) => void) => void;

/** The messages of the commit, and what its coordinator does with the answers. */
export function commitSteps(state: State, { isPrimary }: Shape, rules: Rules, step: Step): void {
  const { phase, partitions } = state;
  const primaries = partitions.map(({ replicas }) => replicas[0]);
  const backups = partitions.flatMap(({ replicas }) => replicas.slice(1));
  const all = (replicas: readonly Replica[], seen: Seen): boolean =>
    replicas.every((each) => each.seen === seen);
  const deliver = (
    name: string,
    who: "primaries" | "backups" | "all",
    from: readonly Seen[],
    seen: Seen,
  ): void => {
    for (const [p, { replicas }] of partitions.entries()) {
      for (const [r, replica] of replicas.entries()) {
        if (who === (r === 0 ? "backups" : "primaries")) continue;
        if (!replica.isAlive || !from.includes(replica.seen)) continue;
        step(`${name} at ${p}.${r}`, (next) => see(next, p, r, seen));
      }
    }
  };

  const isLate = phase === "abort" || phase === "abort backups" || phase === "abort all";
  if (phase === "lock" || phase === "log" || isLate) {
    deliver("LOCK", "primaries", [SAW_NOTHING], SAW_LOCK);
  }
  if (phase === "log" || phase === "abort backups" || phase === "abort all") {
    deliver("LOG", "backups", [SAW_NOTHING], SAW_LOG);
  }
  if (phase === "commit") {
    // At its own node first.
    const own = partitions[0].replicas[0];
    const isFirst = isPrimary && own.isAlive && own.seen === SAW_LOCK;
    if (isFirst) step("COMMIT at 0.0", (next) => see(next, 0, 0, SAW_COMMIT));
    else deliver("COMMIT", "primaries", [SAW_LOCK], SAW_COMMIT);
  }
  if (phase === "truncate") deliver("TRUNCATE", "backups", [SAW_LOG], SAW_COMMIT);
  const undecided = [SAW_NOTHING, SAW_LOCK, SAW_LOG] as const;
  if (phase === "abort backups") deliver("ABORT", "backups", undecided, SAW_ABORT);
  if (phase === "abort") deliver("ABORT", "primaries", undecided, SAW_ABORT);
  if (phase === "abort all") deliver("ABORT", "all", undecided, SAW_ABORT);
  if (phase === "over") deliver("low", "all", [SAW_ABORT, SAW_COMMIT], SAW_END);

  if (!state.isCoordinatorAlive) return;
  const enter = (name: string, to: Phase, change?: (next: State) => void): void =>
    step(name, (next) => {
      next.phase = to;
      change?.(next);
    });
  const tellAborted = (next: State): void => {
    next.toldAborted = true;
  };
  if (phase === "lock") {
    enter("a lock is refused: aborted", "abort", tellAborted);
    if (all(primaries, SAW_LOCK)) enter("all are locked", "log");
  } else if (phase === "log") {
    if (rules.abortsBackupsFirst) enter("a LOG is refused", "abort backups");
    else enter("a LOG is refused: aborted", "abort all", tellAborted);
    if (all(backups, SAW_LOG) && all(primaries, SAW_LOCK)) {
      enter("all have logged", "commit", (next) => {
        next.toldCommitted = rules.tellsAfterLog;
      });
    }
  } else if (phase === "abort backups") {
    if (all(backups, SAW_ABORT)) enter("no backup has it: aborted", "abort", tellAborted);
  } else if (phase === "commit") {
    if (all(primaries, SAW_COMMIT)) enter("all have it", "truncate");
  } else if (phase === "truncate") {
    if (all(backups, SAW_COMMIT)) enter("over", "over");
  } else if (phase === "abort" || phase === "abort all") {
    const told = [...primaries, ...(phase === "abort" ? [] : backups)];
    if (all(told, SAW_ABORT)) enter("over", "over");
  }
}

/** Deaths, new configurations, and the next life of a coordinator. */
export function deathSteps(state: State, shape: Shape, rules: Rules, step: Step): void {
  const { laterLife } = rules;
  const { configuration, partitions, isCoordinatorAlive } = state;
  if (!isCoordinatorAlive) {
    for (const [p, { replicas }] of partitions.entries()) {
      for (const [r, { isAlive, seen }] of replicas.entries()) {
        if (!isAlive || laterLife(seen) === seen) continue;
        step(`later life at ${p}.${r}`, (next) => see(next, p, r, laterLife(seen)));
      }
    }
  }
  if (configuration === shape.configurations) return;
  if (isCoordinatorAlive && !shape.isPrimary) {
    step("the coordinator dies", (next) => {
      next.isCoordinatorAlive = false;
    });
  }
  for (const [p, { replicas }] of partitions.entries()) {
    const copies = replicas.filter(({ isAlive, isFilling }) => isAlive && !isFilling).length;
    for (const [r, { isAlive, isFilling }] of replicas.entries()) {
      if (!isAlive || (!isFilling && copies === 1)) continue;
      step(`${p}.${r} dies`, (next) => {
        next.partitions[p].replicas[r].isAlive = false;
        // It stays the coordinator of this transaction in later configurations, if it lives.
        if (shape.isPrimary && p === 0 && r === 0 && configuration === 0) {
          next.isCoordinatorAlive = false;
        }
      });
    }
  }
  // Each choice of a new primary, for one partition after the other.
  const choose = (p: number, chosen: readonly number[]): void => {
    if (p === partitions.length) {
      const name = `configuration ${configuration + 1}, primaries ${chosen.join(" ")}`;
      step(name, (next) => reconfigure(next, shape, chosen));
      return;
    }
    const { replicas } = partitions[p];
    if (replicas[0].isAlive) choose(p + 1, [...chosen, 0]);
    else {
      for (const [r, { isAlive, isFilling }] of replicas.entries()) {
        if (isAlive && !isFilling) choose(p + 1, [...chosen, r]);
      }
    }
  };
  choose(0, []);
}

function reconfigure(state: State, shape: Shape, chosen: readonly number[]): void {
  state.configuration++;
  state.phase = "recovery";
  state.outcome = undefined;
  for (const [p, partition] of state.partitions.entries()) {
    const primary = partition.replicas[chosen[p]];
    const others = partition.replicas.filter((each) => each.isAlive && each !== primary);
    partition.replicas = [primary, ...others];
    partition.strongest = undefined;
    for (const replica of partition.replicas) {
      if (replica.hasAll) replica.isFilling = false;
      replica.hasAll = false;
    }
    if (!shape.refills || partition.replicas.length > shape.backups) continue;
    partition.replicas.push({ seen: SAW_NOTHING, isAlive: true, isFilling: true, hasAll: false });
  }
  state.isFound = isInDoubt(state);
}

export function recoverySteps(state: State, rules: Rules, step: Step): void {
  const { phase, partitions, outcome } = state;
  if (phase !== "recovery") return;
  for (const [p, { replicas, strongest: known }] of partitions.entries()) {
    if (known === undefined) {
      if (!rules.asksAll && replicas[0].isAlive) {
        step(`${p} is served too early`, (next) => serve(next, p, replicas[0].seen));
      }
      if (!replicas.every(({ isAlive }) => isAlive)) continue;
      step(`all replicas of ${p} have said what they saw`, (next) => {
        const seen = replicas.map((each) => each.seen).reduce(strongest);
        next.partitions[p].strongest = seen;
        next.partitions[p].replicas[0].seen = seen;
        next.partitions[p].replicas[0].hasAll = true;
        serve(next, p, seen);
      });
      continue;
    }
    if (!replicas[0].isAlive) continue;
    for (const [r, { isAlive, hasAll }] of replicas.entries()) {
      if (!isAlive || hasAll) continue;
      step(`replicated to ${p}.${r}`, (next) => {
        const replica = next.partitions[p].replicas[r];
        replica.seen = rules.replicate(replica.seen, known);
        replica.hasAll = true;
      });
    }
  }
  const everywhere = (holds: (replica: Replica) => boolean): boolean =>
    partitions.every(({ replicas }) => replicas.every(holds));
  if (outcome === undefined) {
    if (!state.isFound) return;
    const votes = partitions.flatMap(({ strongest: seen }) =>
      seen === undefined ? [] : [rules.vote(seen)],
    );
    if (votes.length < partitions.length) return;
    if (rules.votesWhenReplicated && !everywhere(({ hasAll }) => hasAll)) return;
    const decided = rules.decide(votes);
    step(`votes ${votes.join(" ")}: ${decided}`, (next) => {
      next.outcome = decided;
      if (decided === "commit") next.toldCommitted = true;
      else next.toldAborted = true;
    });
    return;
  }
  const isDecided = ({ seen }: Replica): boolean =>
    seen === SAW_COMMIT || seen === SAW_ABORT || seen === SAW_END;
  const isOver = everywhere(isDecided);
  for (const [p, { replicas }] of partitions.entries()) {
    for (const [r, replica] of replicas.entries()) {
      if (!replica.isAlive) continue;
      const seen = outcome === "commit" ? SAW_COMMIT : SAW_ABORT;
      if (isOver) step(`TRUNCATE-RECOVERY at ${p}.${r}`, (next) => see(next, p, r, SAW_END));
      else if (!isDecided(replica)) {
        step(`${outcome.toUpperCase()}-RECOVERY at ${p}.${r}`, (next) => see(next, p, r, seen));
      }
    }
  }
}

/** A replica learns something; where a primary acts on it, others may have seen the effect. */
function see(state: State, p: number, r: number, seen: Seen): void {
  const partition = state.partitions[p];
  partition.replicas[r].seen = seen;
  if (r > 0) return;
  if (seen === SAW_LOCK) partition.wasLocked = true;
  else if (seen === SAW_COMMIT) {
    state.installed = true;
    // At the latest now: a coordinator that lives has the first answer.
    if (state.phase === "commit" && state.isCoordinatorAlive) state.toldCommitted = true;
  } else if (seen === SAW_ABORT) release(state, p);
}

/** A primary begins to serve, with the locks of what it knows of: until that is decided. */
function serve(state: State, p: number, seen: Seen): void {
  if (seen === SAW_NOTHING) release(state, p);
}

function release(state: State, p: number): void {
  if (state.partitions[p].wasLocked) state.released = true;
}
