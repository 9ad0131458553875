/**
 * The recorded changes of a table beside what the table is by now. A change keeps the format that it was
 * recorded in (format.ts); since then fields may have been renamed, dropped, added, and added again under a name that
 * another one had before. So each migration notes, in the formats of before, what became of their fields. By
 * that a row of any format is shown as the declaration of its reader has it (decoder.ts).
 */

import { type KnownSchema, storedField } from "../migrations/declaration.ts";
import type { StoredSuccessor } from "../migrations/stored.ts";
import type { StoredSchema } from "../schema.ts";
import { type ChangeFormat, formatId, type StoredChanges } from "./format.ts";

/** What the catalogue says of a table's changes, with the schema that the fields of formats have become. */
export interface WatchedChanges extends StoredChanges {
  readonly schema: KnownSchema;
}

/** The changes of a table in the catalogue; undefined if none are recorded. */
export function watchedChanges(stored: StoredSchema): WatchedChanges | undefined {
  const { changes, successor } = stored;
  if (changes === undefined) return undefined;
  // From then on rows are written by the schema of the successor, and read by it.
  if (successor?.state !== "switching") return { ...changes, schema: stored };
  return { ...movedChanges(changes, stored, successor), schema: successor.schema };
}

/** The same after a migration: with what becomes of the fields of each format. */
export function movedChanges(
  changes: StoredChanges,
  before: KnownSchema,
  { schema, sources }: Pick<StoredSuccessor, "schema" | "sources">,
): StoredChanges {
  const next = new Map<string, string>();
  for (const [name, source] of Object.entries(sources)) {
    if ("from" in source) next.set(source.from, name);
  }
  const present = formatId(schema);
  const formats = changes.formats.map(({ id, fields, key, now: was }): ChangeFormat => {
    if (id === present) return { id, fields, key };
    const now: Record<string, string | null> = {};
    for (const name of Object.keys(fields)) {
      const stored = nameNow({ id, fields, key, ...(was && { now: was }) }, before, name);
      const moved = (stored === undefined ? undefined : next.get(stored)) ?? null;
      if (moved !== name) now[name] = moved;
    }
    return { id, fields, key, ...(Object.keys(now).length > 0 && { now }) };
  });
  return { ...changes, formats };
}

/** The field of the store that a field of a format has become; undefined if it was dropped. */
export function nameNow(
  { now = {} }: ChangeFormat,
  stored: KnownSchema,
  name: string,
): string | undefined {
  // Formats of earlier versions do not tell what became of their fields.
  if (!Object.hasOwn(now, name)) return storedField(stored, name);
  return now[name] ?? undefined;
}
