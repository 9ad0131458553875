/** What an index is: its declaration, checked, and as it stands in the store. */

import type { Address } from "../../memory/address.ts";
import { MAX_INDEXES, MAX_NAME_BYTES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { FieldKind } from "../fields.ts";
import type { Fields } from "../table.ts";

/** "ordered" supports ranges, "hash" only exact values. */
export type IndexKind = "ordered" | "hash";

/** How a caller declares an index. */
export interface IndexOptions<FieldName extends string = string> {
  /** The fields whose values lead to the rows, in this order. */
  readonly on: readonly FieldName[];
  /** At most one row has the same values. Default: false. */
  readonly unique?: boolean;
  /** Ordered indexes have ranges, hash indexes only exact values. Default: "ordered". */
  readonly kind?: IndexKind;
}

/** An index of a table, as declared, with all defaults. */
export interface IndexDefinition {
  readonly name: string;
  readonly on: readonly string[];
  readonly unique: boolean;
  readonly kind: IndexKind;
}

/**
 * An index that is added to a table comes into use step by step, and every step waits until all
 * executors know of it. With one step alone, one executor could add an entry for a row that
 * another one, not knowing better, deletes without its entry.
 *
 *   announced   writers remove entries, but add none
 *   building    writers maintain it; the rows that were there before are being added
 *   ready       every row has its entries
 *
 * One that is dropped goes the other way: nobody reads it before writers stop maintaining it.
 *
 *   retired     every row has its entries, but nobody finds rows by it any more
 */
export type IndexState = "announced" | "building" | "ready" | "retired";

export interface StoredIndex extends IndexDefinition {
  readonly state: IndexState;
  /** Where its structures are rooted. */
  readonly roots: readonly Address[];
  /** Tells one attempt to build it from the next one, which may use the same structures. */
  readonly build: string;
}

export function describeIndex({ on, unique, kind }: IndexDefinition): string {
  return `${unique ? "unique " : ""}${kind} on ${on.join(", ")}`;
}

export function sameDefinition(a: IndexDefinition, b: IndexDefinition): boolean {
  return (
    a.kind === b.kind && a.unique === b.unique && JSON.stringify(a.on) === JSON.stringify(b.on)
  );
}

const KNOWN = ["on", "unique", "kind"];

/** Checks the indexes that a table declares. */
export function definitionsOf(
  fields: Fields,
  indexes: unknown,
  keyKinds: ReadonlySet<FieldKind>,
  refuse: (why: string) => never,
): readonly IndexDefinition[] {
  if (indexes === undefined) return [];
  if (typeof indexes !== "object" || indexes === null || Array.isArray(indexes)) {
    return refuse('indexes is an object, as in { byOwner: { on: ["owner"] } }');
  }
  const names = Object.keys(indexes);
  if (names.length > MAX_INDEXES) refuse(`at most ${MAX_INDEXES} indexes`);
  return names.map((name) => {
    if (name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
      refuse(`the name of an index is a string of 1 to ${MAX_NAME_BYTES} bytes`);
    }
    const options = (indexes as Record<string, unknown>)[name];
    return definitionOf(name, fields, options as IndexOptions, keyKinds, (why) =>
      refuse(`index ${name}: ${why}`),
    );
  });
}

function definitionOf(
  name: string,
  fields: Fields,
  options: IndexOptions,
  keyKinds: ReadonlySet<FieldKind>,
  refuse: (why: string) => never,
): IndexDefinition {
  if (typeof options !== "object" || options === null) refuse('say { on: ["field"] }');
  for (const each of Object.keys(options)) {
    if (!KNOWN.includes(each)) refuse(`unknown option ${each}; there are ${KNOWN.join(", ")}`);
  }
  const { on, unique = false, kind = "ordered" } = options;
  if (!Array.isArray(on) || on.length === 0) refuse('say which fields: { on: ["field"] }');
  for (const each of on) {
    const found = Object.hasOwn(fields, each) ? fields[each] : undefined;
    if (found === undefined) refuse(`the field ${show(each)} does not exist`);
    else if (!keyKinds.has(found.kind)) refuse(`${found.kind} field ${each} cannot be indexed`);
  }
  if (new Set(on).size !== on.length) refuse("it names each field once");
  if (typeof unique !== "boolean") refuse(`unique is true or false, not ${show(unique)}`);
  if (kind !== "ordered" && kind !== "hash") {
    refuse(`kind is "ordered" or "hash", not ${show(kind)}`);
  }
  return Object.freeze({ name, on: Object.freeze([...on]), unique, kind });
}
