/**
 * The messages of copying, as in the table of the commit's phases (protocols/phases/table.ts). All of them come from
 * nodes of the same configuration: the fabric refuses others.
 *
 *   message       from      to        when
 *   FETCH-TABLES  filling   primary   it begins to copy, or has met a table that it does not know
 *   FETCH-ROWS    filling   primary   it has room and time for more
 */

import { FETCH_ROWS, FETCH_TABLES } from "../kinds.ts";
import type { Handler } from "../phases/table.ts";
import { serveFetchRows } from "./fetch-rows.ts";
import { serveFetchTables } from "./fetch-tables.ts";
import type { CopySource } from "./source.ts";

export const COPYING_PHASES: readonly Handler<CopySource>[] = [
  { kind: FETCH_TABLES, sender: "node", begins: false, serve: serveFetchTables },
  { kind: FETCH_ROWS, sender: "node", begins: false, serve: serveFetchRows },
];
