/** Tables as the caller declares them: a name, fields, a key. The types of rows follow from it. */

import { SituError } from "../runtime/errors.ts";
import { MAX_FIELDS, MAX_NAME_BYTES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Field, FieldKind } from "./fields.ts";
import { definitionsOf, type IndexDefinition, type IndexOptions } from "./indexes/definition.ts";

export type Fields = Readonly<Record<string, Field<unknown>>>;

export type ValueOf<F> = F extends Field<infer T> ? T : never;
export type RowOf<F extends Fields> = { -readonly [Name in keyof F]: ValueOf<F[Name]> };

export type KeyNames<F extends Fields> = (keyof F & string) | readonly (keyof F & string)[];
export type KeyOf<F extends Fields, K> = K extends keyof F
  ? ValueOf<F[K]>
  : K extends readonly string[]
    ? { [I in keyof K]: K[I] extends keyof F ? ValueOf<F[K[I]]> : never }
    : never;
/** What `update` may change: every field but the key's. */
export type ChangesOf<F extends Fields, K> = Partial<
  Omit<RowOf<F>, K extends readonly (infer N)[] ? N & string : K & string>
>;

/** How rows can be found in one way: by the key, or by an index. */
export interface Way {
  readonly key: unknown;
  readonly kind: "ordered" | "hash";
  readonly unique: boolean;
}

type IndexesOf<F extends Fields> = Readonly<Record<string, IndexOptions<keyof F & string>>>;
/** One field is written as a value, several as a list. */
type IndexKeyOf<F extends Fields, On> = On extends readonly [infer Only]
  ? KeyOf<F, Only>
  : KeyOf<F, On>;

/** All ways to find rows: the indexes by their names, and the key as "", which no index is called. */
export type WaysOf<F extends Fields, K, Ordered, I> = {
  [Name in (keyof I & string) | ""]: Name extends ""
    ? { key: KeyOf<F, K>; kind: Ordered extends true ? "ordered" : "hash"; unique: true }
    : Name extends keyof I
      ? {
          key: IndexKeyOf<F, I[Name] extends { readonly on: infer On } ? On : never>;
          kind: I[Name] extends { readonly kind: "hash" } ? "hash" : "ordered";
          unique: I[Name] extends { readonly unique: true } ? true : false;
        }
      : never;
};

/** The rows of a table, for functions of your own: `InferRow<typeof Account>`. */
export type InferRow<T> = T extends Table<infer Row, infer _Key, infer _Changes> ? Row : never;

/** How a table that is not ordered keeps its rows. */
export type HashLayout = "hopscotch" | "buckets";

declare const rowType: unique symbol;

export interface Table<Row = unknown, Key = unknown, Changes = unknown, Ways = unknown> {
  readonly name: string;
  readonly fields: Fields;
  /** The names of the key's fields, in order. */
  readonly key: readonly string[];
  /** Keys are written as a value, not as a list of values. */
  readonly singleKey: boolean;
  /** Whether rows lie in the order of their keys. */
  readonly ordered: boolean;
  /** How rows are hashed, if they have no order. */
  readonly layout: HashLayout;
  readonly indexes: readonly IndexDefinition[];
  /** Numbers the tables of this thread: databases find their part of a table by it. */
  readonly ordinal: number;
  /** Only for the type checker. */
  readonly [rowType]?: { row: Row; key: Key; changes: Changes; ways: Ways };
}

export interface TableOptions<F extends Fields, K, Ordered, I> {
  /** The field that rows are found by, or a list of them. */
  readonly key: K;
  /** Keeps rows in the order of their keys, for ranges. Default: false, they are hashed. */
  readonly ordered?: Ordered;
  /**
   * How rows are hashed: "hopscotch" (FaRM), the default, or "buckets" (FaSST): one version for all
   * keys of a bucket, so fewer objects are read and validated, and more keys conflict.
   */
  readonly layout?: HashLayout;
  /** Other fields to find rows by. */
  readonly indexes?: I & IndexesOf<F>;
}

const KEY_KINDS: ReadonlySet<FieldKind> = new Set([
  "u8",
  "u16",
  "u32",
  "i32",
  "u64",
  "i64",
  "bool",
  "str",
  "bytes",
]);

const LAYOUTS: readonly unknown[] = ["hopscotch", "buckets"] satisfies HashLayout[];

const KNOWN = ["key", "ordered", "layout", "indexes"];

let tables = 0;

export function table<
  F extends Fields,
  const K extends KeyNames<F>,
  const Ordered extends boolean = false,
  // biome-ignore lint/complexity/noBannedTypes: no index is declared, and keyof must be never
  const I extends IndexesOf<F> = {},
>(
  name: string,
  fields: F,
  options: TableOptions<F, K, Ordered, I>,
): Table<RowOf<F>, KeyOf<F, K>, ChangesOf<F, K>, WaysOf<F, K, Ordered, I>> {
  const refuse = (why: string): never => {
    throw new SituError("SITU_SCHEMA", `table ${show(name)}: ${why}`);
  };
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    refuse(`the name is a text of 1 to ${MAX_NAME_BYTES} bytes`);
  }
  const names = Object.keys(fields);
  if (names.length === 0 || names.length > MAX_FIELDS) refuse(`1 to ${MAX_FIELDS} fields`);
  for (const each of names) {
    if (typeof fields[each]?.kind !== "string") refuse(`field ${each} has no type, as in u32()`);
    if (each === "__proto__") refuse("a field cannot be called __proto__");
  }
  const key = typeof options?.key === "string" ? [options.key] : [...(options?.key ?? [])];
  if (key.length === 0) refuse('say which field is the key: { key: "id" }');
  if (new Set(key).size !== key.length) refuse("a key names each field once");
  for (const each of key) {
    const found = fields[each] ?? refuse(`the key field ${show(each)} does not exist`);
    if (!KEY_KINDS.has(found.kind)) refuse(`${found.kind} field ${each} cannot be part of a key`);
  }
  for (const each of Object.keys(options)) {
    if (!KNOWN.includes(each)) refuse(`unknown option ${each}; there are ${KNOWN.join(", ")}`);
  }
  const { ordered = false } = options;
  if (typeof ordered !== "boolean") refuse(`ordered is true or false, not ${show(ordered)}`);
  const { layout = "hopscotch" } = options;
  if (!LAYOUTS.includes(layout)) {
    refuse(`layout is ${LAYOUTS.map(show).join(" or ")}, not ${show(layout)}`);
  }
  if (ordered && options.layout !== undefined)
    refuse("rows that are ordered have no layout of hashes");
  return Object.freeze({
    name,
    fields: Object.freeze({ ...fields }),
    key: Object.freeze(key),
    singleKey: typeof options.key === "string",
    ordered,
    layout,
    indexes: Object.freeze(definitionsOf(fields, options.indexes, KEY_KINDS, refuse)),
    ordinal: tables++,
  });
}
