/**
 * Verifying what a store holds in memory, while others may work in it: the allocator's tables, the
 * catalogue, the structure of every table and index with all of its objects, and the indexes
 * against the rows. Each table is read in one snapshot. What is found wrong is told in plain
 * sentences; nothing is changed, and nothing is thrown for what is found.
 *
 * In a structure that is not sound nothing is looked up: of such a one, only its own problems are
 * told. If it is that of the rows, the table's indexes are not compared with them.
 */

import type { Executor } from "../../engine/executor.ts";
import type { IndexRow } from "../../stores/graph/objects.ts";
import type { IndexState } from "../../tables/indexes/definition.ts";
import { formOf, INDEX_FORMS } from "../../tables/indexes/forms.ts";
import { isGraphIndex } from "../../tables/own-tables.ts";
import { Problems } from "../structures/check.ts";
import { checkGraph } from "../structures/graph.ts";
import type { Figures } from "../structures/kinds.ts";
import { ObjectReader } from "../structures/reader.ts";
import { SeenCells } from "../structures/seen-cells.ts";
import { compareRows } from "./compare-indexes.ts";
import { compareSuccessor } from "./compare-successor.ts";
import { checkMemory, type MemoryFigures } from "./memory.ts";
import { checkOf, type IndexParts, type Part, type TableParts } from "./parts.ts";
import { readTables } from "./read-tables.ts";
import { type ToolOptions, ToolRun } from "./tool-run.ts";

/** Problems that are kept of each table, and of the whole store; all are counted. */
const MOST_PROBLEMS = 100;

export interface VerifyOptions extends ToolOptions {
  /** How many problems to tell of each table, and of the whole. Default: 100. */
  readonly mostProblems?: number;
}

export interface VerifiedIndex {
  readonly name: string;
  readonly state: IndexState;
  readonly entries: number;
  /** Whether it was compared with the rows: not if its structure, or the table's, is damaged. */
  readonly compared: boolean;
}

export interface VerifiedTable {
  readonly name: string;
  readonly rows: number;
  readonly indexes: readonly VerifiedIndex[];
  readonly problems: readonly string[];
  /** All of them, also those that are not told. */
  readonly problemCount: number;
}

export interface Verification {
  readonly tables: readonly VerifiedTable[];
  readonly memory: MemoryFigures;
  /** The problems of the store and of all of its tables. Empty if all is well. */
  readonly problems: readonly string[];
  readonly problemCount: number;
}

/** Verifies all tables of the store that the executor is in. */
export async function verifyTables(
  executor: Executor,
  options: VerifyOptions = {},
): Promise<Verification> {
  const { mostProblems = MOST_PROBLEMS } = options;
  const problems = new Problems(mostProblems, "the store");
  const tool = new ToolRun(executor, options);
  executor.sweep();
  const memory = await checkMemory(tool, problems.of("memory"));
  const names = await tool.withSnapshot(async () => {
    const found = readTables(tool, newSeen(executor), problems.of("the catalogue"));
    return found.map(({ table }) => table.name);
  });
  const seen = newSeen(executor);
  const tables: VerifiedTable[] = [];
  for (const name of names) {
    const verified = await verifyTable(tool, seen, name, problems, mostProblems);
    if (verified !== undefined) tables.push(verified);
  }
  return { tables, memory, problems: problems.list, problemCount: problems.count };
}

/** One table, in one snapshot: again with another one if that was released. */
async function verifyTable(
  tool: ToolRun,
  seen: SeenCells,
  name: string,
  all: Problems,
  mostProblems: number,
): Promise<VerifiedTable | undefined> {
  const firstOwner = seen.addOwner(name);
  const attempt = await tool.withSnapshot(async () => {
    // What an earlier attempt has reached and found is forgotten.
    seen.forget(firstOwner);
    const nothing = new Problems(0, "");
    const [parts] = readTables(tool, newSeen(tool.executor), nothing, name);
    return parts && verifyParts(tool, seen, parts, mostProblems);
  });
  if (attempt === undefined) return undefined;
  const { problems, ...verified } = attempt;
  all.takeOver(problems);
  return { ...verified, problems: problems.list, problemCount: problems.count };
}

/** A table, and what it is about to become. */
async function verifyParts(
  tool: ToolRun,
  seen: SeenCells,
  parts: TableParts,
  mostProblems: number,
) {
  const table = await new TableVerification(tool, seen, parts, mostProblems).run();
  const { successor } = parts;
  if (successor === undefined) return table;
  const next = await new TableVerification(tool, seen, successor.parts, mostProblems).run();
  if (table.problems.count === 0 && next.problems.count === 0) {
    const problems = next.problems.of(successor.parts.rows.subject);
    await compareSuccessor(tool, parts.rows, successor, next.rows, problems);
  }
  table.problems.takeOver(next.problems);
  return table;
}

/** What was found out about one structure. */
interface Checked {
  readonly figures: Figures;
  readonly isSound: boolean;
}

class TableVerification {
  readonly #tool: ToolRun;
  readonly #seen: SeenCells;
  readonly #parts: TableParts;
  readonly #problems: Problems;
  readonly #checked = new Map<Part, Checked>();
  /** The rows of a graph's index. */
  readonly #objects: IndexRow[] = [];

  constructor(tool: ToolRun, seen: SeenCells, parts: TableParts, mostProblems: number) {
    this.#tool = tool;
    this.#seen = seen;
    this.#parts = parts;
    this.#problems = new Problems(mostProblems, parts.rows.subject);
  }

  async run() {
    const { table, rows, indexes, leftovers } = this.#parts;
    await this.#check(rows);
    if (isGraphIndex(table.name) && this.#checked.get(rows)!.isSound) await this.#checkObjects();
    for (const each of [...indexes, ...leftovers]) {
      for (const part of each.parts) await this.#check(part);
    }
    const isRowsSound = this.#checked.get(rows)!.isSound;
    const isCompared = (each: IndexParts): boolean => isRowsSound && this.#isSound(each);
    if (isRowsSound) {
      const problems = this.#problems.of(rows.subject);
      await compareRows(this.#tool, this.#parts, isCompared, problems);
    }
    return {
      name: table.name,
      rows: this.#checked.get(rows)!.figures.rows,
      indexes: indexes.map((each) => ({
        name: each.index.name,
        state: each.index.state,
        entries: this.#entriesOf(each),
        compared: isComparable(each) && isCompared(each),
      })),
      problems: this.#problems,
    };
  }

  async #check(part: Part): Promise<void> {
    const tool = this.#tool;
    tool.subject = part.subject;
    tool.rows = 0;
    const problems = this.#problems.of(part.subject);
    const leadsToObjects = part === this.#parts.rows && isGraphIndex(this.#parts.table.name);
    const check = checkOf(tool, part, this.#seen, problems, (row) => {
      tool.rows++;
      if (leadsToObjects) this.#objects.push(row as unknown as IndexRow);
    });
    const figures = await tool.complete(check);
    this.#checked.set(part, { figures, isSound: problems.count === 0 });
  }

  /** The objects and lists of a graph. */
  async #checkObjects(): Promise<void> {
    const tool = this.#tool;
    const problems = this.#problems.of(this.#parts.rows.subject);
    const owner = this.#seen.addOwner(`the objects of ${this.#parts.rows.subject}`);
    const reader = new ObjectReader(tool.executor, tool.run, this.#seen, owner, problems);
    await tool.complete(checkGraph(reader, this.#objects));
  }

  #isSound({ parts }: IndexParts): boolean {
    return parts.every((part) => this.#checked.get(part)!.isSound);
  }

  #entriesOf({ index, parts }: IndexParts): number {
    const { entriesPart } = INDEX_FORMS[formOf(index)];
    return this.#checked.get(parts[entriesPart])!.figures.rows;
  }
}

/** Of an index that was just announced, or is being dropped, nothing is promised. */
function isComparable({ index }: IndexParts): boolean {
  return index.state === "building" || index.state === "ready";
}

function newSeen(executor: Executor): SeenCells {
  return new SeenCells(executor.slabs.blocks);
}
