/** Tables as the caller declares them: a name, fields, a key. The types of rows are inferred from that. */

import { SituError } from "../runtime/errors.ts";
import { MAX_FIELDS, MAX_INDEXES, MAX_NAME_BYTES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { defaultKind, kindsThatAre, type TableKind } from "../stores/kinds.ts";
import { EXPIRY_INDEX, expiryIndexOf } from "./expiry/expiry.ts";
import type { Field, FieldKind } from "./fields.ts";
import { definitionsOf, type IndexDefinition, type IndexOptions } from "./indexes/definition.ts";
import { isForChange } from "./indexes/replaced-names.ts";
import type { Invalid } from "./invalid.ts";

export type Fields = Readonly<Record<string, Field>>;

/** Shows a type by its fields, and not by the types that it was made of. */
export type Simplify<T> = { [Name in keyof T]: T[Name] } & {};

export type ValueOf<F> = F extends Field<infer T, infer _Kind, infer _Input> ? T : never;
/** What may be written to a field. */
type InputOf<F> = F extends Field<infer _T, infer _Kind, infer Input> ? Input : never;
type IsOptional<F> =
  unknown extends InputOf<F> ? false : undefined extends InputOf<F> ? true : false;

export type RowOf<F extends Fields> = Simplify<{
  -readonly [Name in keyof F]: ValueOf<F[Name]>;
}>;
/** A row as it is written: what may be null can be left out. */
export type InputRowOf<F extends Fields> = Simplify<
  {
    -readonly [Name in keyof F as IsOptional<F[Name]> extends true ? never : Name]: InputOf<
      F[Name]
    >;
  } & {
    -readonly [Name in keyof F as IsOptional<F[Name]> extends true ? Name : never]?: InputOf<
      F[Name]
    >;
  }
>;

export type KeyNames<F extends Fields> = (keyof F & string) | readonly (keyof F & string)[];
/** A field of a key as it is written; of an index it may be null. */
type KeyPartOf<F> = Exclude<InputOf<F>, undefined>;
export type KeyOf<F extends Fields, K> = K extends keyof F
  ? KeyPartOf<F[K]>
  : K extends readonly string[]
    ? { [I in keyof K]: K[I] extends keyof F ? KeyPartOf<F[K[I]]> : never }
    : never;
/** What `update` may change: every field but the key's. Undefined leaves a field as it is. */
export type ChangesOf<F extends Fields, K> = Simplify<{
  -readonly [Name in Exclude<keyof F, K extends readonly (infer N)[] ? N : K>]?:
    | InputOf<F[Name]>
    | undefined;
}>;

/** The names of the fields that are given, or why one of them cannot be part of a key. */
type CheckedKey<F extends Fields, K> = K extends readonly string[]
  ? { [I in keyof K]: KeyPart<F, K[I], true> }
  : KeyPart<F, K, true>;
type KeyPart<F extends Fields, Name, IsKey> = Name extends keyof F & string
  ? F[Name]["kind"] extends "f64" | "json" | "pointer"
    ? Invalid<`${Name} is a field of type ${F[Name]["kind"]}, which cannot be part of a key or an index`>
    : IsKey extends true
      ? IsNullable<F[Name]> extends true
        ? Invalid<`${Name} is nullable, and a key cannot be null`>
        : Name
      : Name
  : Name;
type IsNullable<F> = unknown extends ValueOf<F> ? false : null extends ValueOf<F> ? true : false;
type CheckedIndexes<F extends Fields, I> = {
  readonly [Name in keyof I]: I[Name] extends { readonly on: infer On }
    ? { readonly on: { [J in keyof On]: KeyPart<F, On[J], false> } }
    : unknown;
};

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

type OnOf<Index> = Index extends { readonly on: infer On } ? On : never;
/** Of a unique index no value is null: it leaves such rows out. */
type WithoutNull<Key> = Key extends readonly unknown[]
  ? { [I in keyof Key]: Exclude<Key[I], null> }
  : Exclude<Key, null>;

/** All ways to find rows: the indexes by their names, and the key as "", which no index is called. */
export type WaysOf<F extends Fields, K, Ordered, I> = {
  [Name in (keyof I & string) | ""]: Name extends ""
    ? { key: KeyOf<F, K>; kind: Ordered extends true ? "ordered" : "hash"; unique: true }
    : Name extends keyof I
      ? {
          key: I[Name] extends { readonly unique: true }
            ? WithoutNull<IndexKeyOf<F, OnOf<I[Name]>>>
            : IndexKeyOf<F, OnOf<I[Name]>>;
          kind: I[Name] extends { readonly kind: "hash" } ? "hash" : "ordered";
          unique: I[Name] extends { readonly unique: true } ? true : false;
        }
      : never;
};

/** The rows of a table, for functions of your own: `InferRow<typeof Account>`. */
export type InferRow<T> = T extends Table<infer Row, infer _Key> ? Row : never;
/** What `insert` takes: as a row, but what may be null or is filled in can be left out. */
export type InferInsert<T> =
  T extends Table<infer Row, infer _Key, infer _Changes, infer _Ways, infer Writes>
    ? InsertOf<Row, Writes>
    : never;

/** What is written to a table, and what `insert` returns: the key, if it can fill it in. */
export type WritesOf<F extends Fields, K> = {
  put: InputRowOf<F>;
  insert: AutoName<F, K> extends infer Name extends keyof F
    ? Simplify<Omit<InputRowOf<F>, Name> & { [N in Name]?: InputOf<F[N]> | undefined }>
    : InputRowOf<F>;
  inserted: AutoName<F, K> extends never ? undefined : KeyOf<F, K>;
};
type AutoName<F extends Fields, K> = K extends keyof F & string
  ? F[K] extends { readonly autoIncrement: true }
    ? K
    : never
  : never;

/** A row as `put` takes it. Of tables of which nothing is known at compile time, a row. */
export type PutOf<Row, Writes> = Writes extends { put: infer Put } ? Put : Row;
/** The same for `insert`. */
export type InsertOf<Row, Writes> = Writes extends { insert: infer Insert } ? Insert : Row;
/** What `insert` returns. */
export type InsertedKey<Writes> = Writes extends { inserted: infer Key } ? Key : undefined;

declare const rowType: unique symbol;

/** A table: what `table` returns. Pass it to `open`, and to the operations on its rows. */
export interface Table<
  Row = unknown,
  Key = unknown,
  Changes = unknown,
  Ways = unknown,
  Writes = unknown,
  Name extends string = string,
> {
  readonly name: string;
  /** The fields of a row, by their names. */
  readonly fields: Fields;
  /** The names of the key's fields, in order. */
  readonly key: readonly string[];
  /** Whether keys are passed as a value, and not as a list of values. */
  readonly singleKey: boolean;
  /** Whether rows lie in the order of their keys. */
  readonly ordered: boolean;
  /** The structure that keeps the rows. */
  readonly layout: TableKind;
  readonly indexes: readonly IndexDefinition[];
  /** The name of the key, if `insert` fills it in when it is left out. */
  readonly autoKey?: string | undefined;
  /** The field with the time at which a row ends; undefined if rows stay. */
  readonly expires: string | undefined;
  /** Where rows are kept, if not in memory only. */
  readonly storage?: "device" | undefined;
  /** Numbers the tables of this thread: databases find their part of a table by it. */
  readonly ordinal: number;
  /** Only for the type checker. */
  readonly [rowType]?: {
    row: Row;
    key: Key;
    ways: Ways;
    // Methods, so that it does not matter which of two tables takes more, and that a table of which
    // the name is not known can be passed for each.
    name(name: Name): void;
    changes(changes: Changes): void;
    writes(row: Writes): void;
  };
}

/** A table that is open in a database with tables of these names; the last of them is for messages. */
export type Opened<
  Names extends string,
  Row,
  Key = unknown,
  Changes = unknown,
  Ways = unknown,
  Writes = unknown,
> = Table<
  Row,
  Key,
  Changes,
  Ways,
  Writes,
  Names | "this table is not open: pass it to open({ tables: [ … ] })"
>;

/** The name of a table, or of several, as types. */
export type NameOf<T> =
  T extends Table<infer _Row, infer _Key, infer _Changes, infer _Ways, infer _Writes, infer Name>
    ? Name & string
    : never;

export interface TableOptions<F extends Fields, K, Ordered, I> {
  /** The name of the key's field, or a list of names for a composite key. */
  readonly key: K & CheckedKey<F, K>;
  /** Keeps rows in the order of their keys, for range scans. Default: false; rows are hashed. */
  readonly ordered?: Ordered;
  /**
   * How rows are hashed: "hopscotch" (FaRM), the default; "buckets" (FaSST): one version for all keys of a
   * bucket, so fewer objects are read and validated, and more keys conflict; or "robinhood" (Xenic): rows of
   * a neighbourhood lie in the order of their hashes. Ordered tables have one layout only, "btree".
   */
  readonly layout?: TableKind;
  /** Other fields to find rows by. */
  readonly indexes?: I & IndexesOf<F> & CheckedIndexes<F, I>;
  /**
   * A field with the time at which a row expires: from then on the row is not there. Expired rows are removed in
   * the background. The field is a `timestamp()`, or a whole number of milliseconds since 1970.
   */
  readonly expires?: TimeName<F>;
  /**
   * Where rows are kept: in memory, the default, or on the device: in a file of the store's folder, with only
   * their keys and what was written lately in memory. Such a table may be larger than the store's memory.
   */
  readonly storage?: "memory" | "device";
}

/** The fields that hold a time. Of fields of which nothing is known at compile time, any. */
type TimeName<F extends Fields> = string extends keyof F
  ? string
  : {
      [Name in keyof F & string]: F[Name]["kind"] extends TimeKind ? Name : never;
    }[keyof F & string];

type TimeKind = "timestamp" | "u53" | "i53" | "u64" | "i64";

const KEY_KINDS: ReadonlySet<FieldKind> = new Set([
  "u8",
  "u16",
  "u32",
  "i32",
  "u53",
  "i53",
  "u64",
  "i64",
  "bool",
  "str",
  "bytes",
  "timestamp",
  "uuid",
  "enum",
]);

const KNOWN = ["key", "ordered", "layout", "indexes", "expires", "storage"];

let tables = 0;

/**
 * Declares a table. The types of its rows and keys are inferred from the fields:
 *
 *     const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
 */
export function table<
  F extends Fields,
  const K extends KeyNames<F>,
  const Ordered extends boolean = false,
  // biome-ignore lint/complexity/noBannedTypes: no index is declared, and keyof must be never
  const I extends IndexesOf<F> = {},
  const Name extends string = string,
>(
  name: Name,
  fields: F,
  options: TableOptions<F, K, Ordered, I>,
): Table<RowOf<F>, KeyOf<F, K>, ChangesOf<F, K>, WaysOf<F, K, Ordered, I>, WritesOf<F, K>, Name> {
  const refuse = (why: string): never => {
    throw new SituError("SITU_SCHEMA", `table ${show(name)}: ${why}`);
  };
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    refuse(`the name must be a string of 1 to ${MAX_NAME_BYTES} bytes`);
  }
  const names = Object.keys(fields);
  if (names.length === 0 || names.length > MAX_FIELDS)
    refuse(`a table has 1 to ${MAX_FIELDS} fields`);
  for (const each of names) {
    if (typeof fields[each]?.kind !== "string") refuse(`field ${each} has no type, as in u32()`);
    if (each === "__proto__") refuse("a field cannot be named __proto__");
  }
  const given = options?.key as KeyNames<F> | undefined;
  const key = typeof given === "string" ? [given] : [...(given ?? [])];
  if (key.length === 0) refuse('say which field is the key: { key: "id" }');
  if (new Set(key).size !== key.length) refuse("the key names a field twice");
  for (const each of key) {
    const found = fields[each] ?? refuse(`the key field ${show(each)} does not exist`);
    if (!KEY_KINDS.has(found.kind)) refuse(`${found.kind} field ${each} cannot be part of a key`);
    if (found.nullable) refuse(`field ${each} is nullable, and a key cannot be null`);
  }
  const counted = names.find((each) => fields[each].autoIncrement);
  if (counted !== undefined && (key.length > 1 || key[0] !== counted)) {
    refuse(`field ${counted} is an autoIncrement(), which can only be the whole key`);
  }
  for (const each of Object.keys(options)) {
    if (!KNOWN.includes(each))
      refuse(`unknown option ${each}; the options are ${KNOWN.join(", ")}`);
  }
  const { ordered = false } = options;
  if (typeof ordered !== "boolean") refuse(`ordered is true or false, not ${show(ordered)}`);
  const { layout = defaultKind(ordered) } = options;
  const layouts = kindsThatAre(ordered);
  if (!layouts.includes(layout)) {
    const whose = ordered ? "an ordered table's layout" : "layout";
    refuse(`${whose} is ${layouts.map(show).join(" or ")}, not ${show(layout)}`);
  }
  const { storage = "memory" } = options;
  if (storage !== "memory" && storage !== "device") {
    refuse(`storage is "memory" or "device", not ${show(storage)}`);
  }
  const indexes = definitionsOf(fields, options.indexes, KEY_KINDS, refuse);
  const forExpiry = expiryIndexOf(fields, options.expires, refuse);
  for (const { name: each } of indexes) {
    if (each === EXPIRY_INDEX) refuse(`${each} is the name of the index of tables that expire`);
    if (isForChange(each)) refuse(`index ${each}: its name is one that migrations use`);
  }
  if (indexes.length + forExpiry.length > MAX_INDEXES) {
    refuse(`at most ${MAX_INDEXES} indexes, with the one for expires`);
  }
  return Object.freeze({
    name,
    fields: Object.freeze({ ...fields }),
    key: Object.freeze(key),
    singleKey: typeof given === "string",
    ordered,
    layout,
    indexes: Object.freeze([...indexes, ...forExpiry]),
    autoKey: counted,
    expires: options.expires,
    ...(storage === "device" ? { storage } : {}),
    ordinal: tables++,
  });
}
