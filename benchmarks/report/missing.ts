// Who and what was not measured, with the reason: nobody is left out in silence.
import { engineTitle } from "./format.ts";
import { isPeer } from "./measures.ts";
import type { Cell, SuiteResult } from "./result.ts";

export interface Missing {
  /** An engine, or an engine in a cell. */
  readonly what: string;
  readonly why: string;
}

/** Engines that could not be had at all come first; their cells are not repeated. */
export function missingOf(result: SuiteResult): Missing[] {
  const absent = new Map(
    result.engines
      .filter(({ version }) => version === undefined)
      .map(({ engine, title, missing }) => [engine, { what: title, why: reason(missing) }]),
  );
  const inCells = result.cells.flatMap((cell) =>
    cell.entries
      .filter(({ engine, throughput }) => throughput === undefined && !absent.has(engine))
      .map(({ engine, missing }) => ({
        what: `${engineTitle(result, engine)} in “${cell.title}”`,
        why: reason(missing),
      })),
  );
  return [...absent.values(), ...inCells];
}

/** Peers of the run that have no entry in a cell: the plan does not compare them there. */
export function notCompared(result: SuiteResult, cell: Cell): string[] {
  return result.engines
    .filter(({ engine }) => isPeer(engine) && !cell.entries.some((own) => own.engine === engine))
    .map(({ title }) => title);
}

export function reason(missing: string | undefined): string {
  return missing === undefined || missing === "" ? "no reason was given" : missing;
}
