/**
 * What the catalogue knows about a migration. A table's *successor* is a complete second table, rows
 * and indexes, of the new schema. It comes into use step by step, as an index does
 * (indexes/definition.ts), and each step waits until all executors know of the one before:
 *
 *   announced   writers remove rows from the successor, but add none
 *   building    writers keep it in step: what they change in the table they change there too; the
 *               rows that were there before are copied, some at a time (and see `CopyRange`)
 *   switching   it has every row. Rows are read from the successor, and written to both: the
 *               successor decides what is refused, the table follows for those who still read it
 *   (then)      it becomes the table, in one transaction; the old structures become *remains*
 *
 * At any time some know one state and some the next, never the one after that: so only neighbours in
 * this list must get on with each other. A process that dies leaves one of these states behind, and
 * another one goes on from there. If the rows do not allow the new schema, the successor is taken out.
 *
 * Remains are structures that nobody uses any more. They are freed part by part, once every snapshot
 * that may see them is gone.
 */

import type { Address } from "../../memory/address.ts";
import type { StoredIndex } from "../indexes/definition.ts";
import type { Schema } from "../schema.ts";
import type { StoredValue } from "./stored-value.ts";

export type SuccessorState = "announced" | "building" | "switching";

/** Where the value of a field comes from: a field of the old row, or one value for all rows. */
export type FieldSource = { readonly from: string } | { readonly value: StoredValue };

/** Who does the work. A slot alone is claimed by one process after the other. */
export interface Owner {
  readonly slot: number;
  readonly pid: number;
  readonly threadId: number;
  /** When the slot was claimed. */
  readonly since: number;
}

/** What a schema tells about its past, for processes with an older declaration. */
export interface SchemaHistory {
  /** How often the table was migrated. */
  readonly migrations?: number;
  /** Values of fields that a process with an older declaration does not know. */
  readonly defaults?: Readonly<Record<string, StoredValue>>;
  /** Earlier names of fields, each with the present one. */
  readonly formerFields?: Readonly<Record<string, string>>;
  /** Earlier names of the table. */
  readonly formerNames?: readonly string[];
}

/** A schema whose structures exist. */
export interface BuiltSchema extends Schema, SchemaHistory {
  readonly indexes: readonly StoredIndex[];
}

export interface StoredSuccessor {
  readonly state: SuccessorState;
  /** Tells one attempt from the next. */
  readonly build: string;
  readonly owner: Owner;
  readonly schema: BuiltSchema;
  readonly root: Address;
  /** By the fields of the new schema. */
  readonly sources: Readonly<Record<string, FieldSource>>;
  readonly progress: StoredProgress;
  readonly range: CopyRange;
}

/**
 * A table is copied range by range, in the order of a walk over its rows, so that on the average half of
 * all changes need not be made twice. Rows before `upTo` are treated as in `building`; those from there up
 * to `announcedTo` as in `announced`; and of those behind the successor knows nothing yet. Each move of
 * the two waits for everyone, as every change of state does. Tables without places have one range.
 */
export interface CopyRange {
  readonly upTo: number;
  readonly announcedTo: number;
  /** Where the last range ends. */
  readonly end: number;
  /** From one move to the next. */
  readonly step: number;
}

export interface StoredProgress {
  /** Rows that were copied, of about so many. */
  readonly rows: number;
  readonly total: number;
  /** Where the copying goes on: a place of a hashed walk, or a key in its ordered form. */
  readonly place?: number | readonly number[];
}

export interface Remains {
  readonly build: string;
  readonly owner: Owner;
  readonly schema: BuiltSchema;
  /** Where the rows are rooted; `undefined` if only the indexes of the schema are to be freed. */
  readonly root?: Address;
}

/** Whether a table can be used: not one that is being dropped, or that was. */
export type TableState = "retired" | "dropped";
