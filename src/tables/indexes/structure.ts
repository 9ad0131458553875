/** A table's rows, or the entries of an index, as a data structure of some kind (stores/kinds.ts). */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import type { AnyCodec, StoreKind } from "../../stores/kind.ts";
import { defaultKind, TABLE_KINDS } from "../../stores/kinds.ts";
import type { RemoteTable } from "../../stores/remote/remote.ts";
import type { OrderedCodec, RowStore, Store } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { layoutOf } from "../codec/layout.ts";
import { orderedCodecOf } from "../codec/ordered.ts";
import { deviceKindOf } from "../device/kind.ts";
import type { Fields, Table } from "../table.ts";
import type { IndexDefinition } from "./definition.ts";

/** Rows of tables that nobody declared, and parts of rows. */
export type RowValues = Record<string, unknown>;

export class Structure<Row, Key> {
  readonly table: Table<Row, Key>;
  readonly kind: StoreKind;
  readonly codec: AnyCodec<Row, Key>;
  /** The same codec, if the structure has an order. */
  readonly ordered: OrderedCodec<Row, Key> | undefined;
  readonly #parts = new Map<string, AnyCodec<Row, Key>>();

  constructor(table: Table<Row, Key>) {
    this.table = table;
    this.ordered = TABLE_KINDS[table.layout].ordered ? orderedCodecOf(table) : undefined;
    this.codec = this.ordered ?? codecOf(table);
    this.kind =
      table.storage === "device"
        ? deviceKindOf(table as Table, this.codec as AnyCodec<never, never>)
        : TABLE_KINDS[table.layout];
  }

  /** Makes an empty one and returns where it is rooted. */
  create(tx: Transaction): Address {
    return this.kind.create(tx, this.codec);
  }

  open(executor: Executor, root: Address): RowStore<Row, Key> {
    return this.openWith(executor, root, this.codec);
  }

  /** The same for one who wants its rows in another form: with a codec of the same layout. */
  openWith<Form>(
    executor: Executor,
    root: Address,
    codec: AnyCodec<Form, Key>,
  ): RowStore<Form, Key> {
    return this.kind.open(executor, codec, root);
  }

  /** The same for one who reads only some fields. */
  openPart(executor: Executor, root: Address, names: readonly string[]): Store<Row, Key> {
    return this.openWith(executor, root, this.partCodec(names));
  }

  /**
   * The codec, but for rows of which only some fields are decoded. The same one each time: a table is
   * opened anew whenever its catalogue entry changes, and V8 would begin with new code each time.
   */
  partCodec(names: readonly string[]): AnyCodec<Row, Key> {
    const known = JSON.stringify(names);
    const codec = this.#parts.get(known) ?? this.#makePart(names);
    this.#parts.set(known, codec);
    return codec;
  }

  #makePart(names: readonly string[]): AnyCodec<Row, Key> {
    const { table } = this;
    const part = { ...table, fields: pick(table.fields, names) };
    const whole = { ...table, fields: pick(table.fields, Object.keys(table.fields)) };
    const { decode } = codecOf(part, layoutOf(whole));
    return { ...this.codec, decode };
  }

  /** What others need to look keys up by verbs; undefined if that cannot be done. */
  describeRemote(executor: Executor, root: Address): RemoteTable | undefined {
    return this.kind.remote?.describe(executor, this.codec.fixedWords, root);
  }

  /** Fails if the key of a row is longer than the structure can hold. */
  checkKeyOf(row: Row): void {
    if (this.ordered === undefined) this.codec.stageKeyOf(row);
    else this.ordered.stageOrderedOf(row);
  }
}

/** A hidden table of an index, with some fields of the table's and maybe others. */
export function hiddenStructure(
  table: Table,
  { name, kind }: IndexDefinition,
  fields: Fields,
  key: readonly string[],
): Structure<RowValues, unknown> {
  return new Structure({
    // Only for messages: what is wrong with a value is said under the name of the index.
    name: `${table.name}.${name}`,
    fields,
    key,
    singleKey: key.length === 1,
    ordered: kind === "ordered",
    layout: defaultKind(kind === "ordered"),
    indexes: [],
    expires: undefined,
    ordinal: -1,
  });
}

/** The fields of a table's key that an index is not on. */
export function restOfKey(table: Table, { on }: IndexDefinition): string[] {
  return table.key.filter((field) => !on.includes(field));
}

/** A name that is not a field of the table's: in all processes the same, as the fields are. */
export function positionName(table: Table): string {
  let name = "position";
  while (Object.hasOwn(table.fields, name)) name += "'";
  return name;
}

/** Some fields, for what only Situ sees: timestamps are numbers there, which are compared as they are. */
export function pick(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(
    names.map((name) => {
      const field = fields[name];
      return [name, field.kind === "timestamp" ? { ...field, as: "number" } : field];
    }),
  );
}
