/**
 * What compute servers may write at a memory server, and who they are. A pair is one execution thread. It is
 * claimed (claim.ts) with an incarnation that is larger than the one before; from then on verbs of
 * earlier ones are refused. Who settles what a dead thread has left claims its pair first: so whatever the
 * dead one has sent, and whoever has only been slow, changes nothing any more.
 *
 * A write is refused with SITU_PERMISSION unless the layout allows it:
 *
 *   timestamps  the own slot, and never backward; the own beat; the oracle's commit timestamp by fetch-and-add
 *   journals    the stretch of the own pair
 *   cells       the header: from unlocked to locked by the own slot, and back. The cell: whole, while the own slot has
 *               it locked, and what is written there must be of the locked timestamp, and unlocked
 *               A copy that is not the primary is locked by nobody: it follows its record version by version
 *   rings, old  the entries of a cell, while the own slot has that cell locked
 *   overflow    nothing
 */

import type { Guard, GuardedWrite } from "../../fabric/guarded-verbs.ts";
import { COMPARE_AND_SWAP_WIDE, FETCH_AND_ADD, WRITE } from "../../fabric/verbs.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  highOf,
  isLockedHigh,
  isSameSlot,
  slotOfHigh,
  timestampOf,
  type VectorSlot,
} from "./header.ts";
import {
  isWhole,
  KEPT_AT,
  type NamTable,
  RING_AT,
  VERSION_HIGH_AT,
  VERSION_LOW_AT,
} from "./layout.ts";
import type { MemoryServer } from "./memory-server.ts";
import { JOURNALS, ORACLE_COMMIT_AT, TIMESTAMPS, VECTOR_AT } from "./segments.ts";

/** A thread has at most so many writing verbs under way at one server. */
export const MOST_UNANSWERED = 1_024;

interface PairState {
  incarnation: number;
  /** Names the claimant, so that a claim that arrives twice is one claim. */
  claimant: number;
  /** Shut out: the pair has to be claimed again by whoever wants to use it. */
  isOut: boolean;
  /** Replies by sequence; undefined while a verb is being served. */
  readonly replies: Map<number, Int32Array | undefined>;
  latest: number;
}

export interface Claim {
  readonly isGranted: boolean;
  /** The incarnation that holds now. */
  readonly incarnation: number;
}

export class PairGuard implements Guard {
  readonly #server: MemoryServer;
  readonly #pairs = new Map<number, PairState>();
  /** Verbs and messages that were turned away, for those who watch. */
  refused = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  /** Makes the pair the claimant's, unless somebody has claimed it with this or a larger incarnation. */
  claim(pair: number, incarnation: number, claimant: number): Claim {
    if (pair < 0 || pair >= this.#server.options.pairs) {
      throw new SituError("SITU_PERMISSION", `there is no execution thread ${pair}`);
    }
    const state = this.#pairs.get(pair);
    if (state !== undefined && incarnation <= state.incarnation) {
      const isAgain =
        !state.isOut && incarnation === state.incarnation && claimant === state.claimant;
      return { isGranted: isAgain, incarnation: state.incarnation };
    }
    this.#pairs.set(pair, {
      incarnation,
      claimant,
      isOut: false,
      replies: new Map(),
      latest: 0,
    });
    return { isGranted: true, incarnation };
  }

  /** Whether anybody has claimed a pair since all were shut out. */
  get isClaimed(): boolean {
    return [...this.#pairs.values()].some(({ isOut }) => !isOut);
  }

  /** Refuses everybody until they have claimed their pairs again. */
  shutOut(): void {
    for (const state of this.#pairs.values()) state.isOut = true;
  }

  check(pair: number, incarnation: number): void {
    const state = this.#pairs.get(pair);
    const held = state?.incarnation;
    if (held === incarnation && state?.isOut === false) return;
    this.refused++;
    throw new SituError(
      "SITU_STALE_CONFIGURATION",
      held === undefined
        ? `execution thread ${pair} has not been claimed`
        : held === incarnation
          ? `execution thread ${pair} has to be claimed again, for the members of the memory have changed`
          : `a verb of incarnation ${incarnation} of execution thread ${pair}, which is ${held} now`,
    );
  }

  replyTo(pair: number, sequence: number): Int32Array | undefined {
    const { replies, latest } = this.#stateOf(pair);
    const reply = replies.get(sequence);
    if (reply !== undefined) return reply;
    if (replies.has(sequence)) throw new SituError("SITU_OVERLOADED", "the verb is being served");
    // Whoever sent it has gone on since: it knows the outcome.
    if (sequence <= latest - MOST_UNANSWERED) throw refusal("a verb that was done long ago");
    return undefined;
  }

  begin(pair: number, sequence: number, write: GuardedWrite): void {
    try {
      this.#judge(pair, write);
    } catch (error) {
      this.refused++;
      throw error;
    }
    const state = this.#stateOf(pair);
    state.replies.set(sequence, undefined);
    if (sequence <= state.latest) return;
    for (let old = state.latest; old < sequence; old++) state.replies.delete(old - MOST_UNANSWERED);
    state.latest = sequence;
  }

  end(pair: number, sequence: number, reply: Int32Array | undefined): void {
    const { replies } = this.#stateOf(pair);
    if (reply === undefined) replies.delete(sequence);
    else replies.set(sequence, reply);
  }

  #stateOf(pair: number): PairState {
    const state = this.#pairs.get(pair);
    if (state === undefined) throw refusal(`a verb of execution thread ${pair}, which is unknown`);
    return state;
  }

  #slotOf(pair: number): VectorSlot {
    return Math.floor(pair / this.#server.options.pairsPerSlot);
  }

  #judge(pair: number, write: GuardedWrite): void {
    const server = this.#server;
    if (!server.hasRegion(write.regionId)) throw refusal(`no segment ${write.regionId} is there`);
    if (write.regionId === TIMESTAMPS) this.#judgeTimestamp(pair, write);
    else if (write.regionId === JOURNALS) this.#judgeJournal(pair, write);
    else {
      const place = server.tableOf(write.regionId);
      if (place === undefined) throw refusal("only its server writes there");
      if (place.part === 0) this.#judgeCell(this.#slotOf(pair), place.table, write);
      else this.#judgeOld(this.#slotOf(pair), place.table, place.part, write);
    }
  }

  #judgeTimestamp(pair: number, { kind, word, words, from, count }: GuardedWrite): void {
    if (kind === FETCH_AND_ADD && word === ORACLE_COMMIT_AT && words[from] === 1) return;
    const { pairs, pairsPerSlot } = this.#server.options;
    const own = VECTOR_AT + this.#slotOf(pair);
    const isBeat = word === own + Math.ceil(pairs / pairsPerSlot);
    if (kind === WRITE && count === 1 && isBeat) return;
    if (kind !== WRITE || count !== 1 || word !== own) {
      throw refusal("a thread publishes in its own slot, and nothing else");
    }
    const before = this.#server.region(TIMESTAMPS).i32[word] >>> 0;
    if (words[from] >>> 0 < before) throw refusal(`a slot does not go back, from ${before}`);
  }

  #judgeJournal(pair: number, { kind, word, count }: GuardedWrite): void {
    const { journalWords } = this.#server.options;
    const first = pair * journalWords;
    const isOwn = kind === WRITE && word >= first && word + count <= first + journalWords;
    if (!isOwn) throw refusal("a thread writes its own journal, and nothing else");
  }

  #judgeCell(slot: VectorSlot, table: NamTable, write: GuardedWrite): void {
    const { kind, word, words, from, count } = write;
    const cell = Math.floor(word / table.cellWords);
    if (cell < 0 || cell >= table.cellsHeld) throw refusal("there is no such cell");
    if (kind === COMPARE_AND_SWAP_WIDE) {
      if (word !== table.headerAt(cell)) throw refusal("only headers are compared and swapped");
      const [, expectedHigh, , wantedHigh] = words.subarray(from, from + 4);
      const isLocking = !isLockedHigh(expectedHigh) && isOwnLock(wantedHigh, slot);
      const isUnlocking = isOwnLock(expectedHigh, slot) && !isLockedHigh(wantedHigh);
      if (!isLocking && !isUnlocking) throw refusal("a lock is taken and released by its owner");
      return;
    }
    if (kind !== WRITE || word !== table.cellAt(cell) || count !== table.cellWords) {
      throw refusal("a cell is written as a whole");
    }
    const low = this.#allowedAt(slot, table, cell, write);
    const header = from + table.bodyWords;
    const isOwn =
      words[header] === low &&
      isSameSlot(words[header + 1], highOf(slot)) &&
      !isLockedHigh(words[header + 1]) &&
      words[from + VERSION_LOW_AT] === words[header] &&
      words[from + VERSION_HIGH_AT] === words[header + 1] &&
      isWhole(words, from, table.bodyWords);
    if (!isOwn) throw refusal("a version is of the timestamp that its record was locked with");
  }

  /**
   * The timestamp that a new version must have: the one that the slot has locked the record with. Copies are not locked, nor is
   * a new primary while others are being settled: there any version of the slot's is right that comes next, or is there already.
   */
  #allowedAt(slot: VectorSlot, table: NamTable, cell: number, write: GuardedWrite): number {
    const { id, isReady } = this.#server;
    if (isReady && table.isPrimary({ server: id, cell })) {
      return this.#lockOf(slot, table, cell).low;
    }
    const { i32 } = this.#server.region(table.segments.cells);
    const at = table.cellAt(cell);
    const low = write.words[write.from + VERSION_LOW_AT];
    const kept = write.words[write.from + KEPT_AT] >>> 0;
    const isNew = i32[at + VERSION_LOW_AT] === 0 && i32[at + VERSION_HIGH_AT] === 0;
    const isThere =
      i32[at + VERSION_LOW_AT] === low &&
      i32[at + VERSION_HIGH_AT] === write.words[write.from + VERSION_HIGH_AT];
    const isNext = isNew ? kept === 0 : kept === table.keptAfter(i32[at + KEPT_AT]);
    if (!isThere && !isNext) throw refusal("a copy takes the version that comes next");
    return low;
  }

  #judgeOld(slot: VectorSlot, table: NamTable, part: number, write: GuardedWrite): void {
    const { kind, word, count } = write;
    const perCell = part === 1 ? table.blockWords : table.ring * table.bodyWords;
    const cell = Math.floor(word / perCell);
    if (kind !== WRITE || cell < 0 || cell >= table.cellsHeld) {
      throw refusal("old versions are written, and into their ring");
    }
    const within = word - cell * perCell;
    const isEntry =
      part === 1
        ? within >= RING_AT && within % 2 === 0 && count === 2
        : within % table.bodyWords === 0 && count === table.bodyWords;
    if (!isEntry) throw refusal("an entry of a ring is written as a whole");
    this.#lockOf(slot, table, cell);
    // The write comes at once; the mover comes later.
    if (part === 1) this.#server.mover.note(table, cell);
  }

  /** The timestamp that the slot has locked a cell with. */
  #lockOf(slot: VectorSlot, table: NamTable, cell: number): { readonly low: number } {
    const { i32 } = this.#server.region(table.segments.cells);
    const at = table.headerAt(cell);
    const high = i32[at + 1];
    if (isOwnLock(high, slot)) return { low: i32[at] };
    throw refusal(
      isLockedHigh(high)
        ? `the record is locked by slot ${slotOfHigh(high)}, at ${timestampOf(i32[at])}`
        : "a record is locked before it is written",
    );
  }
}

function isOwnLock(high: number, slot: VectorSlot): boolean {
  return isLockedHigh(high) && slotOfHigh(high) === slot;
}

function refusal(why: string): SituError {
  return new SituError("SITU_PERMISSION", `a memory server refuses a write: ${why}`);
}
