/**
 * An execution thread of a compute server (NAM-DB §6.1): runs one transaction at a time, and has its pair at
 * each memory server, its journal and its place in the vector. `perform` is how all coroutines here send verbs:
 * those to memory on the own machine are done at once, except for atomic ones, which every NIC must see
 * (§7.3); the others leave together, or one by one as in the paper.
 *
 * A write whose fate is not known, or a verb that was refused because the pair is another's, *breaks* the thread. It
 * begins nothing more before it has claimed its pair again and settled what it had begun (settle.ts).
 */

import type { NodeId } from "../../fabric/fabric.ts";
import {
  COMPARE_AND_SWAP_WIDE,
  FETCH_AND_ADD,
  isWriting,
  type VerbMemory,
} from "../../fabric/verbs.ts";
import type { SituError } from "../../runtime/errors.ts";
import type { Routine } from "../message.ts";
import type { VectorSlot } from "./header.ts";
import type { NamTable } from "./layout.ts";
import type { Members } from "./members.ts";
import { type GuardedVerb, type PairName, superseded } from "./verbs.ts";

/** What all threads of a database know. */
export interface NamDirectory {
  /** As configured. */
  readonly servers: readonly NodeId[];
  /** Which of them are there, and where copies are. Without it there is one copy of everything, and all are needed. */
  readonly members?: Members;
  readonly tables: readonly NamTable[];
  readonly pairs: number;
  readonly pairsPerSlot: number;
  readonly journalWords: number;
  readonly overflowWords: number;
  /** Each journal is written to so many servers; more than one (§6.2). */
  readonly journalCopies: number;
  /** Names what its servers were put together to (formation.ts). */
  readonly formation?: number;
  /** Servers with the vector: one, or several with a part each. */
  readonly timestampServers: readonly NodeId[];
}

export function aliveOf({ servers, members }: NamDirectory): readonly NodeId[] {
  return members?.alive ?? servers;
}

/** The servers that have the vector, the one that is read first; a vector in parts has no copies. */
export function vectorCopies({ members, timestampServers }: NamDirectory): readonly NodeId[] {
  if (members === undefined || members.copies === 1) return timestampServers.slice(0, 1);
  return members.copiesOf(0).map(({ server }) => server);
}

/** The verbs of a transaction by what they are for, as the paper counts them, and what versions and journals add. */
export interface VerbCounts {
  /** Of the vector, or of the oracle's read timestamp. */
  timestamps: number;
  reads: number;
  locks: number;
  installs: number;
  publishes: number;
  /** Old versions: is there a free entry, its header, its body. */
  oldVersions: number;
  journals: number;
  roundTrips: number;
}

export type VerbPurpose = Exclude<keyof VerbCounts, "roundTrips">;

export class ComputeThread implements PairName {
  readonly pair: number;
  readonly slot: VectorSlot;
  readonly directory: NamDirectory;
  incarnation = 0;
  /** Whose member servers it works with. */
  readonly epoch: number;
  /** Memory servers on the same machine. */
  readonly localMemory: ReadonlyMap<NodeId, VerbMemory>;
  /** Whether verbs that need not wait for each other leave together. The paper sends one after the other. */
  readonly isBatching: boolean;
  isBroken = false;
  /** Somebody else has claimed the pair: this one was taken for dead. */
  isTakenOver = false;
  readonly counts: VerbCounts = {
    timestamps: 0,
    reads: 0,
    locks: 0,
    installs: 0,
    publishes: 0,
    oldVersions: 0,
    journals: 0,
    roundTrips: 0,
  };
  readonly #sequences = new Map<NodeId, number>();

  constructor(
    pair: number,
    directory: NamDirectory,
    options: {
      readonly isBatching?: boolean;
      readonly localMemory?: ReadonlyMap<NodeId, VerbMemory>;
    } = {},
  ) {
    this.pair = pair;
    this.slot = Math.floor(pair / directory.pairsPerSlot);
    this.directory = directory;
    this.epoch = directory.members?.epoch ?? 1;
    this.isBatching = options.isBatching ?? true;
    this.localMemory = options.localMemory ?? NO_MEMORY;
  }

  /** The pair is this thread's, in an incarnation of its own: verbs are numbered from 1 again. */
  claimed(incarnation: number): void {
    this.incarnation = incarnation;
    this.isTakenOver = false;
    this.#sequences.clear();
  }

  nextSequence(server: NodeId): number {
    const sequence = (this.#sequences.get(server) ?? 0) + 1;
    this.#sequences.set(server, sequence);
    return sequence;
  }

  /** Where its journal is: the servers after the one that its number leads to. */
  get journalServers(): NodeId[] {
    const { journalCopies } = this.directory;
    const alive = aliveOf(this.directory);
    const copies = Math.min(journalCopies, alive.length);
    return Array.from({ length: copies }, (_, copy) => alive[(this.pair + copy) % alive.length]);
  }

  /** What waits for a server that is gone does not have to wait any longer. */
  reasonOf(why: SituError): SituError {
    return this.isSuperseded ? superseded() : (this.directory.members?.trouble ?? why);
  }

  /** The members are others by now. */
  get isSuperseded(): boolean {
    return this.epoch !== (this.directory.members?.epoch ?? 1);
  }

  /** Sends verbs and waits for all of them. Throws the first error there was. */
  *perform(purpose: VerbPurpose, verbs: readonly GuardedVerb[]): Routine<void> {
    this.counts[purpose] += verbs.length;
    yield* this.send(verbs);
  }

  /** The same for verbs that were counted. */
  *send(verbs: readonly GuardedVerb[]): Routine<void> {
    const remote: GuardedVerb[] = [];
    for (const verb of verbs) {
      const memory = isAtomic(verb) ? undefined : this.localMemory.get(verb.to);
      if (memory === undefined) remote.push(verb);
      else verb.apply(memory);
    }
    if (!this.isBatching) for (const verb of remote) yield* this.#wait([verb]);
    else if (remote.length > 0) yield* this.#wait(remote);
    for (const verb of verbs) {
      if (verb.error === undefined) continue;
      this.isTakenOver ||= verb.error.code === "SITU_STALE_CONFIGURATION";
      this.isBroken ||= isWriting(verb.verb) || this.isTakenOver;
      throw verb.error;
    }
  }

  /** For verbs that do no harm whenever they are done. */
  *sendHarmless(verbs: readonly GuardedVerb[]): Routine<void> {
    yield verbs;
    for (const { error } of verbs) if (error !== undefined) throw error;
  }

  *#wait(verbs: readonly GuardedVerb[]): Routine<void> {
    this.counts.roundTrips++;
    yield verbs;
  }
}

const NO_MEMORY: ReadonlyMap<NodeId, VerbMemory> = new Map();

function isAtomic({ verb }: GuardedVerb): boolean {
  return verb === COMPARE_AND_SWAP_WIDE || verb === FETCH_AND_ADD;
}
