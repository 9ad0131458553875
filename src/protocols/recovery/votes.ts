/**
 * What the outcome of a transaction is when its coordinator, or a copy of what it writes, was lost
 * halfway (FaRM SOSP'15 §5.3, steps 5 to 7). Every replica of a written partition says what it has
 * seen; the partition votes by the strongest of these; the votes of all written partitions decide.
 *
 * The rules rest on what a commit does (coordinator.ts) and on how a recovery asks:
 *
 *   1. LOG is sent when all locks are held and all reads are validated: one LOG anywhere proves both.
 *      Where rows were locked as they were read, LOCK brings the writes at the same time.
 *   2. COMMIT is sent when all primaries have LOCK and all backups have LOG. So a partition none of
 *      whose surviving replicas has a LOG has lost all its backups, or it had not come so far.
 *   3. "Committed" is told when some replica is bound to survive that proves it: after COMMIT, of which
 *      one is enough. The first is the coordinator's own, if it is itself the primary of a written
 *      partition: should it die, not all backups of that partition can die with it; and if it lives, its
 *      own store knows all that it knows.
 *   4. Once LOG has begun, an abort goes to the backups first. A primary lets go of its locks when no
 *      backup can prove any more that the transaction was to be committed.
 *   5. Nothing of an earlier configuration is taken any more when replicas are asked.
 *   6. A partition votes when all its replicas have taken over what any of them has seen, as strong
 *      as it was seen: whichever of them survive, a second recovery comes to the same vote.
 *   7. A partition is served again when its primary holds the locks of all that any replica has seen,
 *      and it keeps them until the outcome is decided: also where one of its replicas has seen ABORT,
 *      as others that have not may be all that survive.
 *   8. What was decided is remembered until all replicas of all written partitions know it, and the
 *      `low` of a coordinator speaks of its own life only: a later life does not make anyone forget,
 *      or apply, what an earlier one has left. A node that fills a partition learns with the rows what is
 *      remembered there (copying/fetch-ends.ts): it may be all that is left when somebody asks.
 *   9. Where all copies of a written partition are lost, nothing is decided until one of them is back: it may
 *      have installed the transaction as its coordinator, or never have heard of it.
 *
 * From these follows, for any f deaths among the f + 1 copies of each partition, at any moment: what
 * was told "committed", or was visible, is committed at all copies; what was told "aborted", or whose
 * locks were released, at none. tests/recovery/model.ts explores all interleavings, and finds what goes
 * wrong without each of the rules.
 */

/** What a replica has seen of a transaction; of two, the greater outweighs the other. */
export const SAW_NOTHING = 0;
/** It was ended, everywhere, so long ago that only this is known. */
export const SAW_END = 1;
export const SAW_LOCK = 2;
export const SAW_LOG = 3;
/** ABORT, or that a recovery aborted it. */
export const SAW_ABORT = 4;
/** COMMIT, TRUNCATE, or that a recovery committed it. */
export const SAW_COMMIT = 5;

export type Seen = 0 | 1 | 2 | 3 | 4 | 5;

export type Vote =
  | "commit-primary"
  | "commit-backup"
  | "lock"
  | "abort"
  /** It was ended, and is forgotten. */
  | "truncated"
  /** No replica has ever heard of it, and by now none will. */
  | "unknown";

const VOTES: readonly Vote[] = [
  "unknown",
  "truncated",
  "lock",
  "commit-backup",
  "abort",
  "commit-primary",
];

/** What two replicas of a partition have seen, taken together. */
export function strongest(a: Seen, b: Seen): Seen {
  return a > b ? a : b;
}

/** The vote of a partition, by the strongest that any of its replicas has seen. */
export function voteOf(seen: Seen): Vote {
  return VOTES[seen];
}

/** The outcome, by the votes of all partitions that the transaction writes. */
export function decide(votes: Iterable<Vote>): "commit" | "abort" {
  let isLogged = false;
  let isInDoubt = false;
  for (const vote of votes) {
    if (vote === "commit-primary") return "commit";
    if (vote === "commit-backup") isLogged = true;
    else if (vote === "abort" || vote === "unknown") isInDoubt = true;
  }
  return isLogged && !isInDoubt ? "commit" : "abort";
}
