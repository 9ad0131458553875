/**
 * The tables of a node's store, for the protocols. One that another thread of the node has opened,
 * or that an earlier life of the node had, is found in the catalogue when it is first asked for.
 */

import type { Executor } from "../../engine/executor.ts";
import { SituError } from "../../runtime/errors.ts";
import { openTable, readCatalogue } from "../catalogue.ts";
import type { Placement } from "../partitions.ts";
import { tableId } from "../partitions.ts";
import { type Schema, schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import type { CopiedTables } from "./contract.ts";
import { NodeTable } from "./served-table.ts";

export class StoreTables implements CopiedTables {
  readonly #executor: Executor;
  readonly #placement: Placement;
  readonly #tables = new Map<number, NodeTable>();
  /** What `open` has answered, by the schema that was sent: every client sends the same ones. */
  readonly #places = new Map<string, string>();
  /** Told of a table that is not open here; true if others are asked for it. */
  learn: ((id: number) => boolean) | undefined;

  constructor(executor: Executor, placement: Placement) {
    this.#executor = executor;
    this.#placement = placement;
  }

  byId(id: number): NodeTable {
    return this.#tables.get(id) ?? this.#find(id);
  }

  open(text: string): string {
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    const made = tableIn(text);
    refuseUnserved(made);
    const { structure, root } = this.#open(made).table;
    const place = JSON.stringify(structure.describeRemote(this.#executor, root) ?? null);
    if (this.#places.size < MAX_PLACES) this.#places.set(text, place);
    return place;
  }

  schemas(): string[] {
    return this.#served().map((each) => JSON.stringify(schemaOf(tableFromSchema(each))));
  }

  all(): NodeTable[] {
    return this.#served().map(({ name }) => this.byId(tableId(name)));
  }

  #served(): Schema[] {
    const all: Schema[] = readCatalogue(this.#executor);
    return all.filter(({ name, expires }) => !isOwn(name) && expires === undefined);
  }

  #open(made: Table): NodeTable {
    const id = tableId(made.name);
    const found = this.#tables.get(id);
    if (found !== undefined && found.name !== made.name) {
      throw new SituError(
        "SITU_SCHEMA",
        `the names of the tables ${found.name} and ${made.name} have the same hash: choose another`,
      );
    }
    if (made.expires !== undefined) {
      throw new SituError(
        "SITU_UNSUPPORTED",
        `table ${made.name} has rows that expire, which tables of a cluster cannot have yet`,
      );
    }
    const store = openTable(this.#executor, made);
    if (!store.isComplete) {
      throw new SituError(
        "SITU_SCHEMA",
        `table ${made.name} is in the cluster without some of these indexes: a cluster's tables ` +
          `get their indexes when they are made`,
      );
    }
    const table = found ?? new NodeTable(this.#executor, store, this.#placement);
    this.#tables.set(id, table);
    return table;
  }

  #find(id: number): NodeTable {
    const schema = readCatalogue(this.#executor).find(({ name }) => tableId(name) === id);
    if (schema === undefined || isOwn(schema.name)) {
      if (this.learn?.(id) === true) {
        const why = `a table with number ${id} is not open at this node yet`;
        throw new SituError("SITU_OVERLOADED", why);
      }
      throw new SituError("SITU_UNKNOWN_TABLE", `no table with number ${id} is open at this node`);
    }
    return this.#open(tableFromSchema(schema));
  }
}

/** Clients that send many schemas of one table, such as older ones, must not fill the memory. */
const MAX_PLACES = 1_024;

/** Names of what nodes keep for themselves, such as the records of a backup. */
const OWN = "situ ";

function isOwn(name: string): boolean {
  return name.startsWith(OWN);
}

/** The table of a schema that was sent, which may be anything. */
function tableIn(text: string): Table {
  try {
    return tableFromSchema(JSON.parse(text) as Schema);
  } catch (cause) {
    throw new SituError("SITU_PROTOCOL", `a schema makes no sense: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** What a cluster's tables cannot have, for it would have to hold across nodes. */
function refuseUnserved({ name, fields, indexes, storage }: Table): void {
  if (storage === "device") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `table ${name} is on the device, which tables of a cluster cannot be yet`,
    );
  }
  if (isOwn(name)) {
    throw new SituError("SITU_PERMISSION", `names that begin with "${OWN}" are the nodes' own`);
  }
  const unique = indexes.find((index) => index.unique);
  if (unique !== undefined) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `index ${unique.name} of table ${name} is unique: across machines only keys are; make a ` +
        `table with these fields as its key`,
    );
  }
  const pointer = Object.keys(fields).find((field) => fields[field].kind === "pointer");
  if (pointer === undefined) return;
  throw new SituError(
    "SITU_UNSUPPORTED",
    `field ${pointer} of table ${name} is a pointer, which leads to memory of one machine only`,
  );
}
