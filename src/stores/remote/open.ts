/** The store of another node, opened by what that node has told of it. */

import { RemoteBuckets } from "../buckets/remote.ts";
import { RemoteHopscotch } from "../hopscotch/remote.ts";
import type { RowCodec } from "../store.ts";
import type { RemoteDirectory } from "./directory.ts";
import { confirm, type Found, type Reading, type RemoteTable } from "./remote.ts";

export interface RemoteStore<Key> {
  readonly directory: RemoteDirectory;
  /** Finds a key, for a transaction: its dependencies are validated when that commits. */
  lookup(key: Key): Reading<Found>;
}

export function openRemote<Row, Key>(
  table: RemoteTable,
  codec: RowCodec<Row, Key>,
): RemoteStore<Key> {
  return table.layout === "buckets"
    ? new RemoteBuckets(table, codec)
    : new RemoteHopscotch(table, codec);
}

/** Finds a key outside of any transaction: linearizable, and nothing is left to be validated. */
export function* readAlone<Key>(store: RemoteStore<Key>, key: Key): Reading<Found> {
  const found = yield* store.lookup(key);
  if (found.isProved || found.dependencies.length === 0) return found;
  const { dependencies, reads, rounds } = found;
  const isConfirmed = yield* confirm(dependencies);
  const counted = { reads: reads + 1, rounds: rounds + 1 };
  if (isConfirmed) return { ...found, ...counted, isProved: true };
  return { ...found, ...counted, outcome: "locked", words: 0, dependencies: [] };
}
