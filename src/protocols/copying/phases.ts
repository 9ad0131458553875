/**
 * The messages of copying, and what serves them (protocols/phases/phases.ts). All of them come from
 * nodes of the same configuration: the fabric refuses others.
 *
 *   message       from      to        when
 *   FETCH-TABLES  filling   primary   it begins to copy, or has met a table that it does not know
 *   FETCH-ENDS    filling   primary   it has its tables
 *   FETCH-ROWS    filling   primary   it has room and time for more
 */

import { FETCH_ENDS, FETCH_ROWS, FETCH_TABLES } from "../kinds.ts";
import type { Handler } from "../phases/registry.ts";
import { serveFetchEnds } from "./fetch-ends.ts";
import { serveFetchRows } from "./fetch-rows.ts";
import { serveFetchTables } from "./fetch-tables.ts";
import type { CopySource } from "./source.ts";

export const COPYING_HANDLERS: readonly Handler<CopySource>[] = [
  { kind: FETCH_TABLES, serve: serveFetchTables },
  { kind: FETCH_ENDS, serve: serveFetchEnds },
  { kind: FETCH_ROWS, serve: serveFetchRows },
];
