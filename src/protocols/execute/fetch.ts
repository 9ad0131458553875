/**
 * Fetching rows for a transaction, in the protocol's way: by verb (FaRM §3.6), or with one READ to each
 * node (FaSST §5). What verbs cannot find is asked for by message. Rows that will be written may be
 * locked in the message that reads them, if this end is a coordinator. What was read becomes part of
 * its access set, and must be validated if it was read at more than one moment.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Found } from "../../stores/remote/remote.ts";
import type { Coordinator } from "../coordinator.ts";
import { OK, type Routine } from "../message.ts";
import { type AtSnapshot, type KeyToRead, Read, type Take } from "../phases/read.ts";
import { ReadLock } from "../phases/read-lock.ts";
import { type Lookup, lookupAll } from "./lookup.ts";
import { arrived, type Entry, type RemoteAccessSet } from "./remote-access-set.ts";

/** How an end of the cluster reads. */
export interface ReadWay {
  readonly readsByVerb: boolean;
  /** What locks rows as they are read; only nodes can, where the protocol does. */
  readonly locks: Coordinator | undefined;
  /** A snapshot to read from, by message. */
  readonly snapshot?: AtSnapshot;
}

/** False if somebody has locked one of the rows. */
export function* fetchRows(
  entries: readonly Entry[],
  accesses: RemoteAccessSet,
  { readsByVerb, locks, snapshot }: ReadWay,
): Routine<boolean> {
  if (snapshot !== undefined) return yield* readAt(entries, accesses, snapshot);
  if (!readsByVerb) return yield* askForRows(entries, accesses, locks);
  const rest: Entry[] = [];
  const isFree = yield* lookUpRows(entries, accesses, rest);
  if (!isFree || rest.length === 0) return isFree;
  return yield* askForRows(rest, accesses, locks);
}

/** What cannot be found by verb is left in `rest`. */
function* lookUpRows(
  entries: readonly Entry[],
  accesses: RemoteAccessSet,
  rest: Entry[],
): Routine<boolean> {
  const lookups: (Lookup<Found> & { readonly entry: Entry })[] = [];
  for (const entry of entries) {
    const store = entry.table.storeAt(entry.node);
    if (store === undefined) rest.push(entry);
    else lookups.push({ node: entry.node, reading: store.lookup(entry.key), entry });
  }
  if (lookups.length === 0) return true;
  const results = yield* lookupAll(lookups);
  // Each object was read at a moment of its own: what more than one says must be validated.
  accesses.reads += results.some(({ isProved }) => !isProved) ? 1 : 0;
  for (const [i, found] of results.entries()) {
    const { entry } = lookups[i];
    if (found.outcome === "locked") return false;
    if (found.outcome === "ask") {
      rest.push(entry);
      continue;
    }
    const part = accesses.partAt(entry.node);
    for (const { regionId, word, versionHigh, versionLow } of found.dependencies) {
      part.depend(regionId, word, versionHigh, versionLow);
    }
    arrived(entry, found, found.outcome === "absent" ? 0 : found.words);
  }
  if (lookups.length > 1) accesses.reads += lookups.length;
  return true;
}

function readAt(
  entries: readonly Entry[],
  accesses: RemoteAccessSet,
  snapshot: AtSnapshot,
): Routine<boolean> {
  return readAll(
    byNode(entries).map(
      ({ node, keys, take }) => new Read(node, keys, accesses.partAt(node), take, snapshot),
    ),
  );
}

function* askForRows(
  entries: readonly Entry[],
  accesses: RemoteAccessSet,
  locks: Coordinator | undefined,
): Routine<boolean> {
  const isToLock = ({ wantsLock }: Entry): boolean => wantsLock && locks !== undefined;
  const messages = byNode(entries.filter((entry) => !isToLock(entry))).map(
    ({ node, keys, take }) => new Read(node, keys, accesses.partAt(node), take),
  );
  if (locks === undefined || !entries.some(isToLock)) return yield* readAll(messages);
  const held = accesses.hold(locks);
  const locking = byNode(entries.filter(isToLock));
  const lockers = locking.map(({ node, keys, take }) => {
    const round = (held.rounds.get(node) ?? 0) + 1;
    held.rounds.set(node, round);
    return new ReadLock(node, held.name, round, keys, take);
  });
  const isFree = yield* readAll([...messages, ...lockers]);
  for (const [i, { to, locked, hasReads, epoch }] of lockers.entries()) {
    if (hasReads) held.reads.add(to);
    held.epoch = Math.max(held.epoch, epoch);
    if (epoch > 0) held.leastEpoch = Math.min(held.leastEpoch, epoch);
    locked.forEach((isLocked, k) => {
      locking[i].entries[k].isLocked = isLocked;
    });
  }
  return isFree;
}

/** Rows to fetch from one node. */
interface NodeRows {
  readonly node: NodeId;
  readonly entries: Entry[];
  readonly keys: KeyToRead[];
  readonly take: Take;
}

function byNode(entries: readonly Entry[]): NodeRows[] {
  const all: NodeRows[] = [];
  for (const entry of entries) {
    const { table, partition, node, key } = entry;
    let rows = all.find((each) => each.node === node);
    if (rows === undefined) {
      const own: Entry[] = [];
      rows = {
        node,
        entries: own,
        keys: [],
        take: (i, reply, words) => arrived(own[i], reply, words),
      };
      all.push(rows);
    }
    rows.entries.push(entry);
    rows.keys.push({ table: table.id, partition, key: table.sent(key) });
  }
  return all;
}

function* readAll(messages: readonly (Read | ReadLock)[]): Routine<boolean> {
  yield messages;
  for (const { error } of messages) if (error !== undefined) throw error;
  return messages.every(({ outcome }) => outcome === OK);
}
