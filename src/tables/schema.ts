/** A schema as it is kept in the store, and the difference between two. */

import { defaultKind, isTableKind, type TableKind } from "../stores/kinds.ts";
import { isStoredChanges, type StoredChanges } from "./changes/format.ts";
import { fieldText } from "./field-text.ts";
import type { IndexDefinition, IndexState, StoredIndex } from "./indexes/definition.ts";
import type {
  Remains,
  SchemaHistory,
  StoredSuccessor,
  SuccessorState,
  TableState,
} from "./migrations/stored.ts";
import type { Table } from "./table.ts";

/**
 * A layout as the catalogue has it. Of a table on the device it is that of its map, with this in front: a
 * version of Situ that knows no such tables finds a layout that it does not know, and refuses the table.
 */
export type StoredLayout = TableKind | `device-${TableKind}`;
const ON_DEVICE = "device-";

/** The parts of a stored layout; undefined if it is none. */
export function partsOfLayout(
  layout: unknown,
): { readonly kind: TableKind; readonly storage: "memory" | "device" } | undefined {
  if (isTableKind(layout)) return { kind: layout, storage: "memory" };
  if (typeof layout !== "string" || !layout.startsWith(ON_DEVICE)) return undefined;
  const kind = layout.slice(ON_DEVICE.length);
  return isTableKind(kind) ? { kind, storage: "device" } : undefined;
}

/** Whether the rows of a schema are on the device. */
export function isOnDevice({ layout }: Pick<Schema, "layout">): boolean {
  return partsOfLayout(layout)?.storage === "device";
}

/** Field order does not matter, neither to the layout of rows nor here; the key's order does. */
export interface Schema {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly key: readonly string[];
  /** Whether rows lie in the order of their keys. */
  readonly ordered: boolean;
  /** Where there is none, it is the default: stores from before there were several have none. */
  readonly layout?: StoredLayout;
  readonly indexes: readonly IndexDefinition[];
  /** The field with the time at which a row ends, if rows do. */
  readonly expires?: string;
}

/** The same for people: with the state of the indexes. */
export interface TableStats extends Schema {
  readonly indexes: readonly (IndexDefinition & { readonly state: IndexState })[];
  /** The migration of the table, if one is under way. */
  readonly migration?: MigrationStats;
}

/** How far the migration of a table is. */
export interface MigrationStats {
  readonly state: SuccessorState;
  /** The process that does it. */
  readonly pid: number;
  /** Rows that were copied, of about so many. */
  readonly rows: number;
  readonly total: number;
}

/** The same in the catalogue: with the places of the indexes. */
export interface StoredSchema extends Schema, SchemaHistory {
  readonly indexes: readonly StoredIndex[];
  /** Indexes that could not be built; their structures serve the next attempt. */
  readonly leftovers: readonly StoredIndex[];
  /** If changes of rows are recorded, for those who watch the table. */
  readonly changes?: StoredChanges;
  readonly successor?: StoredSuccessor;
  readonly remains?: readonly Remains[];
  readonly state?: TableState;
  /** Tells a table from an earlier one that had the same number, and was dropped. */
  readonly id?: string;
}

/** The tables of a catalogue that can be used, as people see them. */
export function statsOfTables(schemas: readonly StoredSchema[]): TableStats[] {
  return schemas
    .filter(({ state }) => state === undefined)
    .map(({ name, fields, key, ordered, layout, indexes, expires, successor }) => ({
      name,
      fields,
      key,
      ordered,
      ...(layout === undefined ? {} : { layout }),
      indexes: indexes.map(({ roots: _roots, build: _build, ...index }) => index),
      ...(expires === undefined ? {} : { expires }),
      ...(successor === undefined ? {} : { migration: statsOfMigration(successor) }),
    }));
}

export function statsOfMigration({ state, owner, progress }: StoredSuccessor): MigrationStats {
  return { state, pid: owner.pid, rows: progress.rows, total: progress.total };
}

/** Whether a text from the catalogue was the schema of a table: a damaged one may still be JSON. */
export function isStoredSchema(schema: Partial<StoredSchema> | null): schema is StoredSchema {
  if (typeof schema?.name !== "string" || typeof schema.ordered !== "boolean") return false;
  const { fields, key, indexes, leftovers } = schema;
  if (typeof fields !== "object" || fields === null || !areTexts(Object.values(fields)))
    return false;
  if (!isStoredChanges(schema.changes)) return false;
  if (!areTexts(key) || !Array.isArray(indexes) || !Array.isArray(leftovers)) return false;
  if (!isStoredMigration(schema)) return false;
  return areStoredIndexes([...indexes, ...leftovers]);
}

function isStoredMigration({ successor, remains }: Partial<StoredSchema>): boolean {
  if (remains !== undefined && !Array.isArray(remains)) return false;
  if (remains?.some((each) => !areStoredIndexes(each?.schema?.indexes))) return false;
  if (successor === undefined) return true;
  return (
    Number.isSafeInteger(successor?.root) &&
    typeof successor.range?.end === "number" &&
    typeof successor.sources === "object" &&
    areStoredIndexes(successor.schema?.indexes)
  );
}

function areStoredIndexes(all: readonly Partial<StoredIndex>[] | undefined): boolean {
  if (!Array.isArray(all)) return false;
  return all.every(
    (each) =>
      typeof each?.name === "string" &&
      areTexts(each.on) &&
      Array.isArray(each.roots) &&
      each.roots.every(Number.isSafeInteger),
  );
}

function areTexts(given: unknown): boolean {
  return Array.isArray(given) && given.every((each) => typeof each === "string");
}

export function schemaOf(table: Table): Schema {
  const fields: Record<string, string> = {};
  for (const name of Object.keys(table.fields).sort()) {
    fields[name] = fieldText(table.fields[name]);
  }
  const { name, key, ordered, indexes, expires } = table;
  const layout: StoredLayout =
    table.storage === "device" ? `${ON_DEVICE}${table.layout}` : table.layout;
  const schema =
    layout === defaultKind(ordered)
      ? { name, fields, key, ordered, indexes }
      : { name, fields, key, ordered, layout, indexes };
  return expires === undefined ? schema : { ...schema, expires };
}
