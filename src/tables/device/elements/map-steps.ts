/**
 * Walks over the map of a device table in steps, and remembers them. A step is what one read of the map's cursor has
 * found: the places of some rows, in typed arrays, and the versions of all objects that were read on the way
 * (engine/seen-versions.ts). As long as these are the same, the step is: then only the versions are looked at, a few
 * words for a bucket of many entries.
 *
 * Only maps whose cursors have numbers for places (hash tables) are remembered: a step is found by the number where it
 * begins, and knows where the next one does. A shard that was split has another version, so its step is read again,
 * and ends earlier.
 *
 * With a step, rows of a projection (projection.ts) are kept in the order of the map, one after the other, so that an
 * aggregate runs through memory from one end to the other.
 */

import { SeenVersions } from "../../../engine/seen-versions.ts";
import type { Transaction } from "../../../engine/transaction.ts";
import type { Views } from "../../../memory/views.ts";
import {
  DEVICE_REMEMBERED_MAP_SHARE,
  DEVICE_STEP_ENTRIES,
  MAX_DEVICE_REMEMBERED_MAP_BYTES,
} from "../../../runtime/limits.ts";
import type { DeviceTable } from "../device-table.ts";
import { MapWalk, sharesPage } from "./map-walk.ts";
import type { Projection } from "./projection.ts";

/** Rows of a projection, in the order of a step: those of a share of the pages. */
export interface PackedRows {
  readonly projection: Projection;
  readonly part: number;
  readonly parts: number;
  readonly views: Views;
  readonly count: number;
}

export interface MapStep {
  /** By position. */
  readonly pages: Uint32Array;
  readonly generations: Int32Array;
  readonly wheres: Uint32Array;
  readonly count: number;
  /** The keys of rows without a page to share, by position. */
  readonly keys: ReadonlyMap<number, unknown>;
  /** Undefined if it cannot be remembered. */
  readonly seen: SeenVersions | undefined;
  /** Where the next one begins. */
  readonly next: number;
  /** Whether all rows of the share that was looked at last are in a projection, see PageWalk. */
  packed: PackedRows | undefined;
}

/** About what a step takes beside its arrays. */
const STEP_BYTES = 512;
const ENTRY_BYTES = 12;
const KEY_BYTES = 64;

function bytesOf({ count, keys, seen, packed }: MapStep): number {
  const rows = packed === undefined ? 0 : packed.views.u8.byteLength + STEP_BYTES;
  return STEP_BYTES + count * ENTRY_BYTES + keys.size * KEY_BYTES + (seen?.bytes ?? 0) + rows;
}

/** The steps of one table's map. */
export class RememberedMap {
  readonly table: DeviceTable;
  readonly #steps = new Map<number, MapStep>();
  readonly #most: number;
  bytes = 0;
  /** Steps that were read, and those that were found unchanged. */
  read = 0;
  unchanged = 0;

  constructor(table: DeviceTable) {
    this.table = table;
    const share = table.device.memoryBytes * DEVICE_REMEMBERED_MAP_SHARE;
    this.#most = Math.min(MAX_DEVICE_REMEMBERED_MAP_BYTES, share);
  }

  /** What is remembered of the step that begins there, if a transaction's snapshot sees the same. */
  find(tx: Transaction, place: number): MapStep | undefined {
    const step = this.#steps.get(place);
    if (step === undefined) return undefined;
    if (step.seen!.areSeenBy(tx)) {
      this.unchanged++;
      return step;
    }
    return undefined;
  }

  /** The same, whoever has changed it since. */
  peek(place: number): MapStep | undefined {
    return this.#steps.get(place);
  }

  keep(place: number, step: MapStep): void {
    this.read++;
    if (step.seen === undefined) return;
    const before = this.#steps.get(place);
    const bytes = bytesOf(step) - (before === undefined ? 0 : bytesOf(before));
    if (this.bytes + bytes > this.#most) return;
    this.#steps.set(place, step);
    this.bytes += bytes;
  }

  /** Keeps rows with a step, unless there is no room, or the step was replaced. */
  pack(place: number, step: MapStep, packed: PackedRows): void {
    if (this.#steps.get(place) !== step) return;
    const before = bytesOf(step);
    const old = step.packed;
    step.packed = packed;
    const bytes = bytesOf(step) - before;
    if (this.bytes + bytes > this.#most) step.packed = old;
    else this.bytes += bytes;
  }
}

/** The maps that a thread remembers: the ones used last. */
export class RememberedMaps {
  readonly #known = new Map<string, RememberedMap>();

  of(table: DeviceTable): RememberedMap {
    const { name } = table.file;
    let map = this.#known.get(name);
    if (map?.table !== table) map = new RememberedMap(table);
    this.#known.delete(name);
    this.#known.set(name, map);
    let bytes = 0;
    for (const each of this.#known.values()) bytes += each.bytes;
    const most = table.device.memoryBytes * DEVICE_REMEMBERED_MAP_SHARE;
    for (const [old, each] of this.#known) {
      if (bytes <= most || each === map) break;
      this.#known.delete(old);
      bytes -= each.bytes;
    }
    return map;
  }
}

/** One walk. Its place changes only when a call returns: one that throws can be repeated. */
export class MapSteps {
  readonly #walk: MapWalk;
  readonly #map: RememberedMap;
  readonly #isPlaced: boolean;
  /** Where the step that was returned last begins. */
  place = 0;
  #next = 0;

  constructor(map: RememberedMap) {
    this.#map = map;
    this.#walk = new MapWalk(map.table, (_page, _generation, where) => !sharesPage(where));
    this.#isPlaced = this.#walk.place !== undefined;
  }

  /** The next step; undefined at the end. */
  next(tx: Transaction): MapStep | undefined {
    const place = this.#next;
    const walk = this.#walk;
    if (this.#isPlaced) {
      const known = this.#map.find(tx, place);
      if (known !== undefined) return this.#goOn(place, known);
      walk.place = place;
    }
    if (!walk.next(tx, this.#isPlaced ? Number.POSITIVE_INFINITY : DEVICE_STEP_ENTRIES)) {
      return undefined;
    }
    const step = this.#stepOf(tx);
    if (this.#isPlaced) this.#map.keep(place, step);
    return this.#goOn(place, step);
  }

  #goOn(place: number, step: MapStep): MapStep {
    this.place = place;
    this.#next = step.next;
    return step;
  }

  pack(step: MapStep, packed: PackedRows): void {
    if (this.#isPlaced) this.#map.pack(this.place, step, packed);
  }

  #stepOf(tx: Transaction): MapStep {
    const walk = this.#walk;
    const { found } = walk;
    const count = found.length;
    const pages = new Uint32Array(count);
    const generations = new Int32Array(count);
    const wheres = new Uint32Array(count);
    const keys = new Map<number, unknown>();
    for (let i = 0; i < count; i++) {
      const position = found[i];
      pages[i] = walk.pages[position];
      generations[i] = walk.generations[position];
      wheres[i] = walk.wheres[position];
      if (!sharesPage(wheres[i])) keys.set(i, walk.keys[position]);
    }
    const seen = this.#isPlaced ? SeenVersions.of(tx) : undefined;
    const next = walk.place ?? 0;
    return { pages, generations, wheres, count, keys, seen, next, packed: undefined };
  }
}
