/**
 * Chooses how to find the rows of a program: the path with the lowest cost. Costs are rows times what a row costs on
 * that path, relative to a row of a full scan. They are estimates: a choice that is wrong is slower, never wrong.
 *
 * How many rows a path finds is counted, up to a limit: a short range is known exactly, and of a long one it is
 * enough to know that it is long. What is beyond the limit is guessed as a share of the table. Nothing that is counted
 * becomes part of a transaction's read set.
 */

import type { Program } from "../expressions/program.ts";
import { FULL_SCAN, type Path } from "./paths.ts";

/** What finding and reading a row costs, in rows of a full scan. */
const ROW_COST = { scan: 1, range: 1, key: 6, index: 8 };
/** To begin a path at all. */
const START_COST = 10;

export interface RowCount {
  readonly rows: number;
  /** Whether they were counted to the end. */
  readonly isExact: boolean;
}

/** Counts rows for the planner. */
export interface RowCounter {
  table(): RowCount;
  path(path: Path): RowCount;
}

/** One way to find the rows, and what it would cost. */
export interface PlanCandidate {
  /** "scan": all rows of the table; "key": lookups or ranges of the key; "index": entries of an index. */
  readonly access: "scan" | "key" | "index";
  readonly index?: string;
  /** The fields whose values lead to the rows. */
  readonly fields: readonly string[];
  /** Rows that would be looked at. */
  readonly rows: number;
  readonly isExact: boolean;
  /** In rows of a full scan. */
  readonly cost: number;
}

/** What `explain` returns. */
export interface Plan extends PlanCandidate {
  readonly table: string;
  readonly operation: "update" | "delete" | "select" | "aggregate";
  /** Where it runs unless the caller says otherwise. */
  readonly place: "host" | "device";
  /** Of a table on the device: what each place would cost, in milliseconds; undefined for one that cannot do it. */
  readonly places?: { readonly host: number; readonly device: number | undefined };
  /** Whether keys are gathered first, because the changes move rows in the index that they are found by. */
  readonly gathersFirst: boolean;
  /** All that was compared, the cheapest one first. */
  readonly candidates: readonly PlanCandidate[];
  readonly why: string;
}

export interface Choice {
  readonly path: Path;
  readonly gathersFirst: boolean;
  readonly candidates: readonly PlanCandidate[];
  readonly why: string;
}

/** A condition that no row can meet. */
const NOWHERE: Path = { by: "key", keys: [], ranges: [], fields: [], atMost: 0, share: 0 };

/**
 * The cheapest of some paths. Without a counter, as for a table on other machines, rows are guessed; and nothing is
 * counted that cannot change the choice, unless everything is to be told.
 */
export function choose(
  program: Program,
  paths: readonly Path[],
  counter: RowCounter | undefined,
  tellsAll: boolean,
): Choice {
  if (paths.length === 0) {
    const candidate = candidateOf(NOWHERE, { rows: 0, isExact: true });
    return chosen(program, NOWHERE, [candidate], "no row can match the condition");
  }
  const sure = paths.find(({ atMost }) => atMost === 1);
  if (!tellsAll && (paths.length === 1 || sure !== undefined)) {
    const path = sure ?? paths[0];
    return chosen(program, path, [], "");
  }
  const table = counter?.table() ?? { rows: GUESSED_ROWS, isExact: false };
  const counted = paths.map((path) => {
    const count =
      path.by === "scan"
        ? table
        : path.atMost < Number.POSITIVE_INFINITY
          ? { rows: path.atMost, isExact: false }
          : counter?.path(path);
    const isKnown = count !== undefined && (count.isExact || path.by === "scan");
    const guess = Math.max(count?.rows ?? 0, Math.ceil(path.share * table.rows));
    const rows =
      isKnown || path.atMost < Number.POSITIVE_INFINITY ? count! : { rows: guess, isExact: false };
    return { path, candidate: candidateOf(path, rows) };
  });
  counted.sort((a, b) => a.candidate.cost - b.candidate.cost);
  const [best] = counted;
  const candidates = counted.map(({ candidate }) => candidate);
  return chosen(program, best.path, candidates, whyOf(paths, candidates));
}

/** The rows of a table of which nothing is known. */
const GUESSED_ROWS = 100_000;

function candidateOf(path: Path, { rows, isExact }: RowCount): PlanCandidate {
  const { by, index, fields, keys } = path;
  const isLookup =
    by === "key" && (keys?.length ?? 0) > 0 && path.atMost < Number.POSITIVE_INFINITY;
  const perRow = by === "key" ? (isLookup ? ROW_COST.key : ROW_COST.range) : ROW_COST[by];
  const starts = Math.max(1, path.ranges.length) * (by === "scan" ? 0 : START_COST);
  const cost = Math.round(rows * perRow + starts);
  const named = index === undefined ? {} : { index };
  return { access: by, ...named, fields, rows, isExact, cost };
}

function chosen(
  program: Program,
  path: Path,
  candidates: readonly PlanCandidate[],
  why: string,
): Choice {
  return { path, gathersFirst: movesEntries(program, path), candidates, why };
}

/** Whether a program changes the entries of the index that its rows are found by. */
function movesEntries({ task }: Program, path: Path): boolean {
  if (path.by !== "index") return false;
  if (task.kind === "delete") return true;
  // Any index: the fields behind those of the path are not told here, and gathering is cheap.
  return task.kind === "update" && task.set.length > 0;
}

function named({ access, index, fields }: PlanCandidate): string {
  if (access === "scan") return "a full scan";
  const what = access === "index" ? `index ${index}` : "the key";
  return fields.length === 0 ? what : `${what} (${fields.join(", ")})`;
}

function whyOf(paths: readonly Path[], [best, next]: readonly PlanCandidate[]): string {
  if (paths.length === 1 && paths[0] === FULL_SCAN) {
    return "the condition restricts neither the first field of the key nor that of an index";
  }
  const rows = `${best.isExact ? "" : "about "}${best.rows} row${best.rows === 1 ? "" : "s"}`;
  const other =
    next === undefined ? "" : `, against ${next.cost} for ${named(next)} (${next.rows} rows)`;
  return `${named(best)} looks at ${rows} for a cost of ${best.cost}${other}`;
}
