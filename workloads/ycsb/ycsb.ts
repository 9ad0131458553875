/** YCSB's core workloads, put together: what to load, what to run, what must hold. */

import { checkPowerOfTwo, DRAWS } from "../random/drawn.ts";
import { YCSB_THETA } from "../random/zipfian.ts";
import type { InitialRow, Workload } from "../workload.ts";
import { checkYcsb } from "./check.ts";
import { keyOf, keysOf } from "./keys.ts";
import {
  coreWorkloads,
  insertPercentOf,
  type Letter,
  mixOf,
  type RequestDistribution,
} from "./parameters.ts";
import { YcsbSession } from "./session.ts";
import {
  FIELD_COUNT,
  FIELD_LENGTH,
  OrderedUserTable,
  UserTable,
  type YcsbStore,
  type YcsbTable,
} from "./store.ts";
import { initialRow, makePool } from "./values.ts";

export type { Letter, RequestDistribution } from "./parameters.ts";

export interface YcsbOptions {
  /** Another one than the workload's own. */
  readonly distribution?: RequestDistribution;
  /** Operations of a session that are drawn before the run, and then repeated; a power of two. */
  readonly draws?: number;
}

/** "user" and up to 19 digits. */
const KEY_LENGTH = 23;
const ROW_BYTES = KEY_LENGTH + FIELD_COUNT * FIELD_LENGTH;

export function ycsb(
  letter: Letter,
  records: number,
  options: YcsbOptions = {},
): Workload<YcsbStore> {
  const core = coreWorkloads[letter];
  const { distribution = core.distribution, draws = DRAWS } = options;
  checkPowerOfTwo(draws);
  const table = ycsbTable(letter);
  const pool = makePool();
  // As many as one pass over what is drawn inserts, and CoreWorkload's factor of 2; not more than
  // there are, so that at most half of the draws are of records that are not there yet.
  const predicted = Math.floor((draws * insertPercentOf(core) * 2) / 100);
  const expectedInserts = Math.min(predicted, records);
  let known: readonly string[] | undefined;
  const keys = (): readonly string[] => {
    known ??= keysOf(records);
    return known;
  };
  const { operations } = core;
  const plan = { records, keys, pool, operations, distribution, expectedInserts, draws };
  return {
    name: `ycsb-${letter}`,
    source: `YCSB (Cooper et al., SoCC 2010), ${core.lines}`,
    mix: mixOf(core),
    tables: [table],
    scale: `${records.toLocaleString("en")} records of 1 KB, ${describe(distribution)}`,
    bytes: records * ROW_BYTES,
    rows: () => initialRows(table, records),
    session: (store, sessionOptions) => new YcsbSession(store, plan, sessionOptions),
    check: (read, tally) => checkYcsb({ table, records, pool }, read, tally),
  };
}

/** The table that a workload runs on: an ordered one where it scans. */
export function ycsbTable(letter: Letter): YcsbTable {
  return letter === "e" ? OrderedUserTable : UserTable;
}

function* initialRows(table: YcsbTable, records: number): Iterable<InitialRow> {
  for (let number = 0; number < records; number++) {
    yield { table, row: initialRow(number, keyOf(number)) };
  }
}

function describe(distribution: RequestDistribution): string {
  return distribution === "uniform" ? distribution : `${distribution} ${YCSB_THETA}`;
}
