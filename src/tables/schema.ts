/** A schema as it is kept in the store, and the difference between two. */

import { defaultKind, type TableKind } from "../stores/kinds.ts";
import { isStoredChanges, type StoredChanges } from "./changes/format.ts";
import { fieldText } from "./field-text.ts";
import {
  describeIndex,
  type IndexDefinition,
  type IndexState,
  type StoredIndex,
  sameDefinition,
} from "./indexes/definition.ts";
import type { Table } from "./table.ts";

/** Field order does not matter, neither to the layout of rows nor here; the key's order does. */
export interface Schema {
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly key: readonly string[];
  /** Whether rows lie in the order of their keys. */
  readonly ordered: boolean;
  /** Where there is none, it is the default: stores from before there were several have none. */
  readonly layout?: TableKind;
  readonly indexes: readonly IndexDefinition[];
}

/** The same for people: with the state of the indexes. */
export interface TableStats extends Schema {
  readonly indexes: readonly (IndexDefinition & { readonly state: IndexState })[];
}

/** The same in the catalogue: with the places of the indexes. */
export interface StoredSchema extends Schema {
  readonly indexes: readonly StoredIndex[];
  /** Indexes that could not be built; their structures serve the next attempt. */
  readonly leftovers: readonly StoredIndex[];
  /** If changes of rows are recorded, for those who watch the table. */
  readonly changes?: StoredChanges;
}

/** Whether a text from the catalogue was the schema of a table: a damaged one may still be JSON. */
export function isStoredSchema(schema: Partial<StoredSchema> | null): schema is StoredSchema {
  if (typeof schema?.name !== "string" || typeof schema.ordered !== "boolean") return false;
  const { fields, key, indexes, leftovers } = schema;
  if (typeof fields !== "object" || fields === null || !areTexts(Object.values(fields)))
    return false;
  if (!isStoredChanges(schema.changes)) return false;
  if (!areTexts(key) || !Array.isArray(indexes) || !Array.isArray(leftovers)) return false;
  const all: readonly Partial<StoredIndex>[] = [...indexes, ...leftovers];
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
  const { name, key, ordered, layout, indexes } = table;
  return layout === defaultKind(ordered)
    ? { name, fields, key, ordered, indexes }
    : { name, fields, key, ordered, layout, indexes };
}

/** One line for each thing that differs; empty if nothing does, but for indexes not in both. */
export function differences(stored: Schema, wanted: Schema): string[] {
  const lines: string[] = [];
  for (const [name, kind] of Object.entries(stored.fields)) {
    const other = Object.hasOwn(wanted.fields, name) ? wanted.fields[name] : undefined;
    if (other === undefined) lines.push(`- ${name}: ${kind} (only in the store)`);
    else if (other !== kind) lines.push(`~ ${name}: ${kind} in the store, ${other} here`);
  }
  for (const [name, kind] of Object.entries(wanted.fields)) {
    if (!Object.hasOwn(stored.fields, name)) lines.push(`+ ${name}: ${kind} (only here)`);
  }
  if (JSON.stringify(stored.key) !== JSON.stringify(wanted.key)) {
    lines.push(`~ key: ${stored.key.join(", ")} in the store, ${wanted.key.join(", ")} here`);
  }
  if (stored.ordered !== wanted.ordered) {
    lines.push(`~ ordered: ${stored.ordered} in the store, ${wanted.ordered} here`);
  }
  if (stored.ordered === wanted.ordered && stored.layout !== wanted.layout) {
    const layout = defaultKind(stored.ordered);
    lines.push(
      `~ layout: ${stored.layout ?? layout} in the store, ${wanted.layout ?? layout} here`,
    );
  }
  for (const index of wanted.indexes) {
    const other = stored.indexes.find(({ name }) => name === index.name);
    if (other === undefined || sameDefinition(other, index)) continue;
    lines.push(
      `~ index ${index.name}: ${describeIndex(other)} in the store, ${describeIndex(index)} here`,
    );
  }
  return lines;
}
