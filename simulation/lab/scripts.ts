/**
 * Which messages the transactions of two systems consist of: rounds, one after the other, and in each
 * round what is sent to whom, with the bytes of request and reply. Nothing else of the protocols
 * matters to a network. Keys are at machines of their own, none at the coordinator's (FaSST §6.1:
 * "keys are chosen such that their primaries are on different machines").
 */

import type { Random } from "../../src/runtime/random.ts";

export interface Sent {
  /** A verb reads memory; a message is served by a core. */
  readonly as: "verb" | "message";
  readonly to: number;
  readonly requestBytes: number;
  readonly replyBytes: number;
}

export type Round = readonly Sent[];

/** Keys that a transaction reads only, and those that it reads and writes, in the order of its steps. */
export interface Transaction {
  /** Keys of one step are fetched together. */
  readonly steps: readonly { readonly reads: number; readonly writes: number }[];
}

export interface Protocol {
  readonly name: string;
  /** The rounds of a transaction, run by the coordinator `self` of `machines`. */
  rounds(transaction: Transaction, self: number, machines: number, random: Random): Round[];
}

/** FaSST §6.1: keys of 8 bytes, values of 40. */
const KEY_BYTES = 8;
const VALUE_BYTES = 40;
/** FaSST §5: lock bit and version. */
const HEADER_BYTES = 8;
/** FaSST §5.2: the header of a commit record. */
const RECORD_BYTES = 36;
const ITEM_BYTES = KEY_BYTES + HEADER_BYTES + VALUE_BYTES;
/** Three copies of all data, and of the log. */
const BACKUPS = 2;

interface Placed {
  readonly primary: number;
  readonly backups: readonly number[];
  readonly isWritten: boolean;
}

const message = (to: number, requestBytes: number, replyBytes: number): Sent => ({
  as: "message",
  to,
  requestBytes,
  replyBytes,
});

const verb = (to: number, replyBytes: number): Sent => ({
  as: "verb",
  to,
  requestBytes: 12,
  replyBytes,
});

/** FaSST §5, Figure 6: all by RPC; read and lock in one, backups before primaries. */
export const FASST: Protocol = {
  name: "FaSST",
  rounds(transaction, self, machines, random) {
    const steps = place(transaction, self, machines, random);
    const rounds: Round[] = steps.map((keys) =>
      keys.map(({ primary }) => message(primary, KEY_BYTES, HEADER_BYTES + VALUE_BYTES)),
    );
    const keys = steps.flat();
    const written = keys.filter(({ isWritten }) => isWritten);
    const read = keys.filter(({ isWritten }) => !isWritten);
    // §5: validation is omitted for a single key that is only read.
    if (keys.length > 1 && read.length > 0) {
      rounds.push(read.map(({ primary }) => message(primary, KEY_BYTES, HEADER_BYTES)));
    }
    if (written.length === 0) return rounds;
    const recordBytes = RECORD_BYTES + written.length * ITEM_BYTES;
    const logs = others(self, machines, BACKUPS, random);
    // §5: f + 1 log replicas, and the coordinator's machine is one of them.
    rounds.push(logs.map((log) => message(log, recordBytes, 0)));
    rounds.push(
      written.flatMap(({ backups }) => backups.map((backup) => message(backup, ITEM_BYTES, 0))),
    );
    rounds.push(written.map(({ primary }) => message(primary, ITEM_BYTES, 0)));
    return rounds;
  },
};

/** FaSST §3.3.1: a lookup of FaRM reads about 384 bytes for such keys and values. */
const FARM_READ_BYTES = 384;
/** FaRM §3.6: 1.04 reads a lookup; the further one is of an overflow block, with two pairs. */
const FARM_FURTHER_READS = 0.04;
const FARM_OVERFLOW_BYTES = 2 * ITEM_BYTES;
/** What validation reads again. FaSST §6: read-only transactions "do not involve the remote CPU". */
const FARM_HEADER_BYTES = 16;

/**
 * FaRM §3.4: keys are read one-sided; prepare at primaries and replicas, commit at the replicas and
 * then at the primaries by message; in between the versions of what was only read.
 */
export const FARM: Protocol = {
  name: "FaRM",
  rounds(transaction, self, machines, random) {
    const steps = place(transaction, self, machines, random);
    const rounds: Round[] = [];
    for (const keys of steps) {
      rounds.push(keys.map(({ primary }) => verb(primary, FARM_READ_BYTES)));
      const further = keys.filter(() => random.next() < FARM_FURTHER_READS * 2 ** 32);
      if (further.length > 0) {
        rounds.push(further.map(({ primary }) => verb(primary, FARM_OVERFLOW_BYTES)));
      }
    }
    const keys = steps.flat();
    const written = keys.filter(({ isWritten }) => isWritten);
    const read = keys.filter(({ isWritten }) => !isWritten);
    if (written.length > 0) {
      rounds.push(
        written.flatMap(({ primary, backups }) =>
          [primary, ...backups].map((to) => message(to, RECORD_BYTES + ITEM_BYTES, 0)),
        ),
      );
    }
    // §3.5: one lock-free read needs no validation.
    if (keys.length > 1 && read.length > 0) {
      rounds.push(read.map(({ primary }) => verb(primary, FARM_HEADER_BYTES)));
    }
    if (written.length === 0) return rounds;
    rounds.push(
      written.flatMap(({ backups }) => backups.map((to) => message(to, RECORD_BYTES, 0))),
    );
    rounds.push(written.map(({ primary }) => message(primary, RECORD_BYTES, 0)));
    return rounds;
  },
};

function place({ steps }: Transaction, self: number, machines: number, random: Random): Placed[][] {
  const count = steps.reduce((sum, { reads, writes }) => sum + reads + writes, 0);
  const primaries = others(self, machines, count, random);
  let next = 0;
  return steps.map(({ reads, writes }) => {
    const keys: Placed[] = [];
    for (let i = 0; i < reads + writes; i++) {
      const primary = primaries[next++];
      const backups = [1, 2].map((distance) => (primary + distance) % machines);
      keys.push({ primary, backups, isWritten: i >= reads });
    }
    return keys;
  });
}

/** So many machines, all different as far as there are so many, without `self`. */
function others(self: number, machines: number, count: number, random: Random): number[] {
  const chosen: number[] = [];
  while (chosen.length < count) {
    const machine = random.below(machines);
    if (machine === self) continue;
    if (chosen.includes(machine) && chosen.length < machines - 1) continue;
    chosen.push(machine);
  }
  return chosen;
}
