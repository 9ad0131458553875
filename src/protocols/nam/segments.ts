/**
 * The segments of a memory server, by number. They are the same at every server, whether it uses them or not:
 *
 *   0        timestamps: the read timestamp and the commit timestamp of the naive oracle, then the vector, one word a slot,
 *            and as many words by which slots show that they are alive (beats.ts)
 *   1        journals: a stretch for each pair (journal.ts)
 *   2        overflow: a ring of old versions (version-mover.ts)
 *   3        catalogue: word 0 counts its changes (catalogue.ts)
 *   4, 5, 6  cells, rings and old versions of table 0 (layout.ts); 7, 8, 9 those of table 1 …
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { NamTable, type NamTableOptions } from "./layout.ts";
import type { Members } from "./members.ts";

export const TIMESTAMPS = 0;
export const JOURNALS = 1;
export const OVERFLOW = 2;
export const CATALOGUE = 3;
export const FIRST_TABLE = 4;

export const ORACLE_READ_AT = 0;
export const ORACLE_COMMIT_AT = 1;
export const VECTOR_AT = 2;

/** The same numbers at every server and every client: they follow from the list. */
export function tablesOf(
  tables: readonly NamTableOptions[],
  servers: readonly NodeId[],
  members?: Members,
): NamTable[] {
  return tables.map((options, id) => tableOf(id, options, servers, members));
}

export function tableOf(
  id: number,
  options: NamTableOptions,
  servers: readonly NodeId[],
  members?: Members,
): NamTable {
  const first = FIRST_TABLE + 3 * id;
  const segments = { cells: first, rings: first + 1, old: first + 2 };
  return new NamTable(id, options, servers, segments, members);
}
