/**
 * A declaration beside the schema in the store. Of a table that was never migrated they are the same.
 * Later they need not be: a process that still has the declaration from before a migration goes on for
 * as long as that is harmless. That is so if
 *
 *   - every field that it declares is in the store, maybe under a new name, with the same type or one
 *     that takes all of its values;
 *   - for every field that it does not declare the store has a value for its rows: the default that the
 *     field was added with, or null;
 *   - the key is the same.
 */

import { defaultKind } from "../../stores/kinds.ts";
import { knownField } from "../field-text.ts";
import { describeIndex, sameDefinition } from "../indexes/definition.ts";
import type { Schema } from "../schema.ts";
import { isNullable, isSameForm, isWidening } from "./conversion.ts";
import type { SchemaHistory } from "./stored.ts";

/** What of a schema in the store matters to a declaration. */
export type KnownSchema = Schema & SchemaHistory;

/** The field of the store that a declared field is; `undefined` if there is none. */
export function storedField(stored: KnownSchema, name: string): string | undefined {
  if (Object.hasOwn(stored.fields, name)) return name;
  const { formerFields = {} } = stored;
  return Object.hasOwn(formerFields, name) ? formerFields[name] : undefined;
}

/** Whether the store has a value of its own for a field. */
function hasDefault(stored: KnownSchema, name: string): boolean {
  if (!isMigrated(stored)) return false;
  const { defaults = {} } = stored;
  if (Object.hasOwn(defaults, name)) return true;
  const field = knownField(stored.fields[name]);
  return field !== undefined && isNullable(field);
}

function isMigrated({ migrations = 0 }: KnownSchema): boolean {
  return migrations > 0;
}

/** One line for each thing because of which a declaration cannot be used; indexes apart. */
export function harmfulDifferences(stored: KnownSchema, wanted: Schema): string[] {
  const lines: string[] = [];
  const used = new Map<string, string>();
  for (const name of Object.keys(wanted.fields)) {
    const source = storedField(stored, name);
    if (source !== undefined) used.set(source, name);
  }
  for (const [name, kind] of Object.entries(stored.fields)) {
    const declared = used.get(name);
    if (declared === undefined) {
      if (!hasDefault(stored, name)) lines.push(`- ${name}: ${kind} (only in the store)`);
    } else if (!isUsable(stored, wanted, name, declared)) {
      lines.push(`~ ${name}: ${kind} in the store, ${wanted.fields[declared]} here`);
    }
  }
  for (const [name, kind] of Object.entries(wanted.fields)) {
    if (storedField(stored, name) === undefined) lines.push(`+ ${name}: ${kind} (only here)`);
  }
  const key = wanted.key.map((name) => storedField(stored, name) ?? name);
  if (JSON.stringify(stored.key) !== JSON.stringify(key)) {
    lines.push(`~ key: ${stored.key.join(", ")} in the store, ${wanted.key.join(", ")} here`);
  }
  const isLenient = isMigrated(stored);
  if (stored.ordered !== wanted.ordered && !(isLenient && stored.ordered)) {
    lines.push(`~ ordered: ${stored.ordered} in the store, ${wanted.ordered} here`);
  }
  if (stored.ordered === wanted.ordered && stored.layout !== wanted.layout && !isLenient) {
    const layout = defaultKind(stored.ordered);
    lines.push(
      `~ layout: ${stored.layout ?? layout} in the store, ${wanted.layout ?? layout} here`,
    );
  }
  const ends = wanted.expires === undefined ? undefined : storedField(stored, wanted.expires);
  if (stored.expires !== ends && !(isLenient && wanted.expires === undefined)) {
    const shown = ({ expires = "nothing" }: Schema): string => expires;
    lines.push(`~ expires: ${shown(stored)} in the store, ${shown(wanted)} here`);
  }
  return lines;
}

function isUsable(stored: KnownSchema, wanted: Schema, name: string, declared: string): boolean {
  const [from, to] = [wanted.fields[declared], stored.fields[name]];
  if (from === to) return true;
  if (!isMigrated(stored) || !isWidening(from, to)) return false;
  // Rows are translated, but keys and the bounds of scans are the caller's own values.
  const isSought = stored.key.includes(name) || stored.indexes.some(({ on }) => on.includes(name));
  return !isSought || isSameForm(from, to);
}

/** The same for its indexes: those that the store has under the same name, but that are others. */
export function indexDifferences(stored: KnownSchema, wanted: Schema): string[] {
  return wanted.indexes.flatMap((index) => {
    const other = stored.indexes.find(({ name }) => name === index.name);
    const on = index.on.map((name) => storedField(stored, name) ?? name);
    if (other === undefined || sameDefinition(other, { ...index, on })) return [];
    const there = describeIndex(other);
    return [`~ index ${index.name}: ${there} in the store, ${describeIndex(index)} here`];
  });
}

/** Whether rows are the same in the store and as they are declared. */
export function isSameRows(stored: Schema, wanted: Schema): boolean {
  const names = Object.keys(wanted.fields);
  return (
    names.length === Object.keys(stored.fields).length &&
    names.every((name) => stored.fields[name] === wanted.fields[name]) &&
    JSON.stringify(stored.key) === JSON.stringify(wanted.key)
  );
}
