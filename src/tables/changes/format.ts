/**
 * What the catalogue says of a table whose changes are recorded. A recorded row is words, as the table's codec
 * writes them, so whoever reads it later must know the fields it was encoded by: each change names its
 * *format*, a hash over these fields. The catalogue keeps the formats of a watched table, the present
 * one and those before the schema changed. A change of a format that is not listed is refused, and so never
 * decoded by the wrong fields.
 *
 * Announced and waited out as an index is (../indexes/build.ts): the catalogue gets `changes`; the schema
 * generation moves, so that whoever writes next takes the table over with it; then the transactions that
 * had begun before are waited for. Every step can be done again, so a death in between leaves a table
 * that some record and some do not yet; the next `watch` repeats what is missing.
 */

import { MAX_CHANGE_FORMATS } from "../../runtime/limits.ts";
import { hashWords } from "../codec/hash.ts";
import type { Schema } from "../schema.ts";

/** The fields that recorded rows were encoded by. */
export interface ChangeFormat {
  readonly id: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly key: readonly string[];
  /** What fields are called by now that have another name; null for those that were dropped. */
  readonly now?: Readonly<Record<string, string | null>>;
}

/** Part of the schema of a table that is watched. */
export interface StoredChanges {
  /** Changes of later epochs are recorded. */
  readonly since: number;
  readonly formats: readonly ChangeFormat[];
}

/** The number of a format: equal for equal fields and keys, in all processes. */
export function formatId({ fields, key }: Pick<Schema, "fields" | "key">): number {
  const sorted = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  const text = Buffer.from(JSON.stringify([sorted, key]));
  const words = new Int32Array(Math.ceil(text.length / 4));
  new Uint8Array(words.buffer).set(text);
  return hashWords(words, 0, words.length, text.length);
}

interface WatchedSchema extends Schema {
  readonly changes?: StoredChanges;
  readonly successor?: { readonly schema: Schema };
}

/**
 * The schema with its own format among those of its changes, if it has any. Rows are recorded in the format of
 * a successor as soon as it is switched to, so that is added, too.
 */
export function withFormat<S extends WatchedSchema>(schema: S): S {
  const { changes, successor } = schema;
  if (changes === undefined) return schema;
  const known = new Set(changes.formats.map(({ id }) => id));
  const added = (successor === undefined ? [schema] : [schema, successor.schema])
    .map(({ fields, key }) => ({ id: formatId({ fields, key }), fields, key }))
    .filter(({ id }) => !known.has(id));
  if (added.length === 0) return schema;
  const formats = [...changes.formats, ...added].slice(-MAX_CHANGE_FORMATS);
  return { ...schema, changes: { ...changes, formats } };
}

/** Whether what the catalogue says of a table's changes makes sense. */
export function isStoredChanges(changes: Partial<StoredChanges> | undefined): boolean {
  if (changes === undefined) return true;
  const { since, formats } = changes;
  return Number.isSafeInteger(since) && Array.isArray(formats);
}
