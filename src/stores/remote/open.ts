/** The table of another node, opened by what that node has told of it, and read outside transactions. */

import { SituError } from "../../runtime/errors.ts";
import type { StoreKind } from "../kind.ts";
import { isTableKind, TABLE_KINDS } from "../kinds.ts";
import type { RowCodec } from "../store.ts";
import { confirm, type Found, type Reading, type RemoteStore, type RemoteTable } from "./remote.ts";

export function openRemote<Row, Key>(
  table: RemoteTable,
  codec: RowCodec<Row, Key>,
): RemoteStore<Key> {
  const kind: StoreKind | undefined = isTableKind(table.layout)
    ? TABLE_KINDS[table.layout]
    : undefined;
  if (kind?.remote !== undefined) return kind.remote.open(table, codec);
  throw new SituError("SITU_PROTOCOL", `a node has a table of an unknown kind, ${table.layout}`);
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
