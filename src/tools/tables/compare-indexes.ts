/**
 * Compares what lookups find with what the structures hold, in one snapshot: every row is found by
 * its key; and both ways for every index, that each row has its entries, and each entry its row.
 * The structures were found sound before, so that looking things up comes to an end.
 *
 *   one entry a row (entry-index.ts)      each row leads to an entry with the same values, each
 *                                         entry to a row, and there are as many of both
 *   postings (postings-index.ts)          each row has a place, whose position leads back to the
 *                                         row; each place and entry has its row and the other one;
 *                                         the counts are as many entries as there are
 *
 * An index that is being built has no entries yet for some rows, but none without its row.
 */

import { SituError } from "../../runtime/errors.ts";
import type { Store } from "../../stores/store.ts";
import type { StoredIndex } from "../../tables/indexes/definition.ts";
import { keyIn, project, sameValues, shownValue } from "../../tables/indexes/entries.ts";
import { hasNull, leftOutIfNull } from "../../tables/indexes/entry-index.ts";
import { formOf, type IndexForm } from "../../tables/indexes/forms.ts";
import { positionName, type RowValues } from "../../tables/indexes/structure.ts";
import { Problems } from "../structures/check.ts";
import { SeenCells } from "../structures/seen-cells.ts";
import { checkOf, type IndexParts, type Part, type TableParts } from "./parts.ts";
import type { ToolRun } from "./tool-run.ts";

/** A structure that can be asked for the row of a key, and whose key names are known. */
export class RowLookup {
  readonly part: Part;
  readonly #tool: ToolRun;
  readonly #store: Store<RowValues, unknown>;

  constructor(tool: ToolRun, part: Part) {
    this.part = part;
    this.#tool = tool;
    this.#store = part.structure.open(tool.executor, part.root);
  }

  /** The row with the same key as this one's values. */
  find(row: RowValues): RowValues | undefined {
    const { key, singleKey } = this.part.structure.table;
    return this.#tool.run((tx, each) => this.#store.read(tx, each), keyIn(row, key, singleKey));
  }

  keyOf(row: RowValues): string {
    const { key, singleKey } = this.part.structure.table;
    return shownValue(keyIn(row, key, singleKey));
  }

  get names(): string[] {
    return Object.keys(this.part.structure.table.fields);
  }
}

const PART_NAMES = ["count", "entry", "place"];

/** How one index is compared: with each row of each of the structures. */
interface Comparison {
  /** Something is to be said about a row of the table. */
  row(row: RowValues): void;
  /** The same for what lies in a part of the index. */
  entry(part: number, entry: RowValues): void;
  /** At the end: `counts` by part. */
  end(rows: number, counts: readonly number[]): void;
}

/** An index that is compared, and where its problems go. */
interface Compared {
  readonly index: IndexParts;
  readonly problems: Problems;
  readonly comparison: Comparison;
}

/**
 * Looks up every row of a table whose structure is sound, and compares the indexes whose structures
 * are sound with the rows.
 */
export async function compareRows(
  tool: ToolRun,
  { table, rows, indexes }: TableParts,
  isSound: (index: IndexParts) => boolean,
  problems: Problems,
): Promise<void> {
  const asked = new RowLookup(tool, rows);
  const all = indexes
    .filter(({ index }) => index.state === "building" || index.state === "ready")
    .filter(isSound)
    .map((index: IndexParts): Compared => {
      const own = problems.of(`index ${index.index.name} of ${rows.subject}`);
      return { index, problems: own, comparison: comparisonOf(tool, asked, index, own) };
    });
  const ready = all.filter(({ index }) => index.index.state === "ready");
  const names = [...new Set([...table.key, ...all.flatMap(({ index }) => index.index.on)])];
  const count = await walk(tool, rows, names, (row) => {
    const place = (): string => `row ${asked.keyOf(row)}`;
    carefully(problems, place, () => {
      const found = asked.find(row);
      if (found !== undefined && sameValues(found, row, names)) return;
      problems.add(place(), "a lookup does not find it");
    });
    for (const each of ready) {
      carefully(each.problems, place, () => each.comparison.row(row));
    }
  });
  for (const each of all) await compareEntriesOf(tool, each, count);
}

async function compareEntriesOf(
  tool: ToolRun,
  { index, problems, comparison }: Compared,
  rows: number,
): Promise<void> {
  const counts: number[] = [];
  for (const [part, what] of index.parts.entries()) {
    const { table } = what.structure;
    const count = await walk(tool, what, Object.keys(table.fields), (entry) => {
      const place = (): string => `entry ${shownValue(keyIn(entry, table.key, table.singleKey))}`;
      carefully(problems, place, () => comparison.entry(part, entry));
    });
    counts.push(count);
  }
  comparison.end(rows, counts);
}

/** Walks over the rows of a structure, with some of their fields only: rows may be large. */
export async function walk(
  tool: ToolRun,
  part: Part,
  names: readonly string[],
  each: (row: RowValues) => void,
): Promise<number> {
  const found: RowValues[] = [];
  let count = 0;
  tool.subject = `${part.subject}, compared`;
  tool.rows = 0;
  const seen = new SeenCells(tool.executor.slabs.blocks);
  const check = checkOf(tool, part, seen, new Problems(0, ""), (row) => {
    found.push(project(row, names));
  });
  await tool.complete(check, () => {
    for (let i = 0; i < found.length; i++) each(found[i]);
    count += found.length;
    tool.rows = count;
    found.length = 0;
  });
  return count;
}

/** A structure that was found sound can be read; should that fail all the same, it is told. */
export function carefully(problems: Problems, place: () => string, work: () => void): void {
  try {
    work();
  } catch (error) {
    const code = error instanceof SituError ? error.code : undefined;
    // The snapshot, or somebody who does not move: not what is being checked.
    if (code === "SITU_SNAPSHOT_TOO_OLD" || code === "SITU_TIMEOUT") throw error;
    problems.add(
      place(),
      `it cannot be looked up: ${error instanceof Error ? error.message : error}`,
    );
  }
}

/** What a comparison of one index works with: the rows, its parts in order, and where to tell. */
type CompareForm = (
  rows: RowLookup,
  parts: readonly RowLookup[],
  index: StoredIndex,
  problems: Problems,
) => Comparison;

const COMPARISONS = {
  entries: compareEntries,
  postings: comparePostings,
} satisfies Record<IndexForm, CompareForm>;

function comparisonOf(
  tool: ToolRun,
  rows: RowLookup,
  { index, parts }: IndexParts,
  problems: Problems,
): Comparison {
  const asked = parts.map((part) => new RowLookup(tool, part));
  return COMPARISONS[formOf(index)](rows, asked, index, problems);
}

function compareEntries(
  rows: RowLookup,
  [entries]: readonly RowLookup[],
  index: StoredIndex,
  problems: Problems,
): Comparison {
  const { names } = entries;
  const isReady = index.state === "ready";
  const nullable = leftOutIfNull(rows.part.structure.table, index);
  let leftOut = 0;
  return {
    row(row) {
      if (hasNull(row, nullable)) {
        leftOut++;
        return;
      }
      const entry = entries.find(row);
      if (entry === undefined) problems.add(`row ${rows.keyOf(row)}`, "it has no entry");
      else if (!sameValues(entry, row, names)) {
        const where = `row ${rows.keyOf(row)}`;
        problems.add(where, `the entry for its values leads to row ${rows.keyOf(entry)}`);
      }
    },
    entry(_part, entry) {
      const row = rows.find(entry);
      if (row !== undefined && sameValues(entry, row, names)) return;
      const key = rows.keyOf(entry);
      const what = row === undefined ? `there is no row ${key}` : `row ${key} has other values`;
      problems.add(`entry ${entries.keyOf(entry)}`, what);
    },
    end(count, [found]) {
      if (isReady && count - leftOut !== found) {
        problems.add(undefined, `it has ${found} entries for ${count - leftOut} rows`);
      }
    },
  };
}

function comparePostings(
  rows: RowLookup,
  [counts, entries, places]: readonly RowLookup[],
  { on, state }: StoredIndex,
  problems: Problems,
): Comparison {
  const { table } = rows.part.structure;
  const { key } = table;
  const position = positionName(table);
  const isReady = state === "ready";
  const names = [...new Set([...on, ...key])];
  const all = [...names, position];
  let sum = 0;
  return {
    row(row) {
      const place = places.find(row);
      const entry = place && entries.find(place);
      if (entry !== undefined && sameValues(entry, row, key)) return;
      const what =
        place === undefined
          ? "it has no place among the rows with its values"
          : `its place ${place[position]} is that of another row, or of none`;
      problems.add(`row ${rows.keyOf(row)}`, what);
    },
    entry(part, entry) {
      const [own, other] = part === 1 ? [entries, places] : [places, entries];
      const tell = (what: string): void => {
        problems.add(`${PART_NAMES[part]} ${(part === 0 ? counts : own).keyOf(entry)}`, what);
      };
      if (part === 0) {
        const count = entry[position] as number;
        sum += count;
        if (count < 1) tell(`it is ${count}`);
        return;
      }
      const row = rows.find(entry);
      if (row === undefined) tell(`there is no row ${rows.keyOf(entry)}`);
      else if (!sameValues(entry, row, names)) tell(`row ${rows.keyOf(entry)} has other values`);
      const twin = other.find(entry);
      if (twin === undefined || !sameValues(entry, twin, all)) {
        tell(`there is no ${PART_NAMES[3 - part]} for it`);
      }
      const count = (counts.find(entry)?.[position] as number | undefined) ?? 0;
      if ((entry[position] as number) >= count)
        tell(`it is at ${entry[position]} of ${count} rows`);
    },
    end(count, [, entryCount, placeCount]) {
      if (entryCount !== placeCount || entryCount !== sum) {
        const what = `${entryCount} entries, ${placeCount} places, counts of ${sum}`;
        problems.add(undefined, `its parts do not agree: ${what}`);
      }
      if (isReady && count !== entryCount) {
        problems.add(undefined, `it has ${entryCount} entries for ${count} rows`);
      }
    },
  };
}
