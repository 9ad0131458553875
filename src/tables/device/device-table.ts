/**
 * What all open forms of a device table have in common in an executor: its hidden tables, its file, and
 * what was written to it since rows were last moved to the device. hidden-tables.ts tells how they fit together.
 */

import { type Device, deviceOf } from "../../device/device.ts";
import type { PageFile } from "../../device/page-file.ts";
import type { Executor } from "../../engine/executor.ts";
import type { Address } from "../../memory/address.ts";
import { SCHEMA_GENERATION } from "../../memory/control.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Views } from "../../memory/views.ts";
import type { AnyCodec } from "../../stores/kind.ts";
import type { RowStore } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { layoutOf } from "../codec/layout.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Fields, Table } from "../table.ts";
import {
  type DevicePlace,
  type DeviceRoot,
  deviceRootAt,
  FREE_KIND,
  type HiddenTables,
  placeCodec,
} from "./hidden-tables.ts";

/** The rows of a place in the map, by the names that its words have there. */
export type PlaceRow = Record<string, number>;

export class DeviceTable {
  readonly executor: Executor;
  readonly device: Device;
  readonly table: Table;
  readonly hidden: HiddenTables;
  readonly address: Address;
  readonly root: DeviceRoot;
  readonly file: PageFile;
  /** The codec of whole rows. */
  readonly codec: AnyCodec<RowValues, unknown>;
  /** The map, whose rows are places; for all but scans. */
  readonly map: RowStore<DevicePlace, unknown>;
  /** The map with keys and places. */
  readonly entries: RowStore<RowValues, unknown>;
  readonly free: RowStore<{ page: number }, number>;
  /** Decodes the fields of the key of a row. */
  readonly #keyOf: (views: Views, at: number, words: number) => RowValues;
  /** Bytes that were written here since rows were last moved. */
  writtenBytes = 0;
  /** Pages that were written here since their space was last looked after. */
  writtenPages = 0;
  /** The generation of the catalogue that was looked at last. */
  #generation: number;
  #isGone = false;
  /** Called by a store after a transaction, when much was written: see mover.ts. */
  relieve: () => void = () => {};

  constructor(
    executor: Executor,
    table: Table,
    hidden: HiddenTables,
    codec: AnyCodec<RowValues, unknown>,
    address: Address,
  ) {
    this.executor = executor;
    this.device = deviceOf(executor);
    this.#generation = generationOf(executor);
    this.table = table;
    this.hidden = hidden;
    this.address = address;
    this.root = deviceRootAt(executor, address);
    this.file = this.device.fileOf(this.root.fileHigh, this.root.fileLow);
    this.codec = codec;
    const { mapKind, mapCodec, freeCodec } = hidden;
    this.map = mapKind.open(executor, placeCodec(hidden), this.root.map);
    this.entries = mapKind.open(executor, mapCodec, this.root.map);
    this.free = FREE_KIND.open(executor, freeCodec, this.root.free);
    this.#keyOf = keyDecoder(table);
  }

  /** Whether it was dropped. Its rows can be read in snapshots from before; nothing is done for it any more. */
  isGone(): boolean {
    const generation = generationOf(this.executor);
    if (this.#isGone || generation === this.#generation) return this.#isGone;
    this.#isGone = !this.device.isInUse(this.address, this.file.name);
    this.#generation = generation;
    return this.#isGone;
  }

  /** The key of a row in its stored form. */
  keyAt(views: Views, at: number, words: number): unknown {
    return this.keyIn(this.#keyOf(views, at, words));
  }

  /** The fields of its key. */
  keyFieldsAt(views: Views, at: number, words: number): RowValues {
    return this.#keyOf(views, at, words);
  }

  keyIn(row: RowValues): unknown {
    return keyIn(row, this.table.key, this.table.singleKey);
  }

  /** A place under the names that it has in the map. */
  placeRow(page: number, generation: number, where: number): PlaceRow {
    const [first, second, third] = this.hidden.names;
    return { [first]: page >>> 0, [second]: generation >>> 0, [third]: where >>> 0 };
  }

  placeIn(entry: RowValues): DevicePlace {
    const [page, generation, where] = this.hidden.names;
    return {
      page: entry[page] as number,
      generation: (entry[generation] as number) | 0,
      where: entry[where] as number,
    };
  }
}

function generationOf({ memory }: Executor): number {
  return loadAcquire(memory.control.i32, SCHEMA_GENERATION);
}

function keyDecoder(table: Table): (views: Views, at: number, words: number) => RowValues {
  const pick = (names: readonly string[]): Fields =>
    Object.fromEntries(
      names.map((name) => {
        const field = table.fields[name];
        return [name, field.kind === "timestamp" ? { ...field, as: "number" } : field];
      }),
    );
  const part = { ...table, fields: pick(table.key) };
  const whole = { ...table, fields: pick(Object.keys(table.fields)) };
  return codecOf<RowValues, unknown>(part as never, layoutOf(whole as never)).decode;
}
