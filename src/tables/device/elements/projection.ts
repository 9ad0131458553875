/**
 * The fields of rows on pages that operations compute with, kept in memory by a thread of the device: rows of their
 * own, of these fields only. A condition or an aggregate over short fields then needs no page. What a page holds in one
 * generation never changes, so whoever comes with a place finds what the page would say; a page that was
 * written again is found under its new generation only.
 *
 * A projection has the layout of a table with these fields. A program that names no others is compiled for that
 * table, and cannot tell the difference.
 *
 * Memory: a share of the store's. The projections that were not used for the longest time go first, and one that has
 * no room begins anew.
 */

import { slotRow, slotsIn } from "../../../device/page.ts";
import { Views } from "../../../memory/views.ts";
import {
  DEVICE_PROJECTED_ROW_BYTES,
  DEVICE_PROJECTION_CHUNK_BYTES,
  DEVICE_PROJECTION_SHARE,
  MAX_DEVICE_PROJECTION_BYTES,
} from "../../../runtime/limits.ts";
import { compile } from "../../codec/compile.ts";
import { type FieldLayout, layoutOf, widthOf } from "../../codec/layout.ts";
import { Programs } from "../../expressions/compile.ts";
import type { Program } from "../../expressions/program.ts";
import { fieldsOf } from "../../expressions/task-code.ts";
import { isVariable } from "../../fields.ts";
import type { Table } from "../../table.ts";
import type { DeviceTable } from "../device-table.ts";
import { PageRanges } from "./page-ranges.ts";

type CopyRow = (from: Views, at: number, to: Views, into: number) => void;

export class Projection {
  /** What programs over it are compiled for. */
  readonly programs: Programs;
  /** Where the row that `find` has found lies. */
  views!: Views;
  readonly rowWords: number;
  readonly file: string;
  readonly #most: number;
  readonly #chunkRows: number;
  readonly #chunks: Views[] = [];
  readonly #ranges = new PageRanges();
  readonly #copy: CopyRow;

  constructor(table: Table, file: string, names: ReadonlySet<string>, mostBytes: number) {
    const part = partOf(table, names);
    this.programs = new Programs(part);
    this.file = file;
    this.rowWords = layoutOf(part).fixedBytes / 4;
    this.#copy = copierOf(table, part);
    this.#chunkRows = Math.floor(DEVICE_PROJECTION_CHUNK_BYTES / (this.rowWords * 4));
    this.#most = Math.floor(mostBytes / DEVICE_PROJECTION_CHUNK_BYTES) * this.#chunkRows;
  }

  get bytes(): number {
    return this.#chunks.length * DEVICE_PROJECTION_CHUNK_BYTES;
  }

  /** The word of `views` where a row begins, or -1. */
  find(page: number, generation: number, slot: number): number {
    const first = this.#ranges.find(page, generation);
    if (first < 0 || slot >= this.#ranges.slotsOf(page)) return -1;
    return this.#locate(first + slot);
  }

  slotsOf(page: number): number {
    return this.#ranges.slotsOf(page);
  }

  #locate(row: number): number {
    const chunk = Math.floor(row / this.#chunkRows);
    this.views = this.#chunks[chunk];
    return (row - chunk * this.#chunkRows) * this.rowWords;
  }

  /** Takes the rows of a page that was read and checked, or written. */
  add(views: Views, at: number, page: number, generation: number): void {
    const slots = slotsIn(views, at);
    const ranges = this.#ranges;
    if (slots === 0 || ranges.find(page, generation) >= 0) return;
    // The rows of a page lie in one chunk.
    const left = this.#chunkRows - (ranges.end % this.#chunkRows);
    if (left < slots) ranges.end += left;
    if (ranges.end + slots > this.#most) {
      // Much of it is of pages that were written again since.
      ranges.clear();
    }
    const first = ranges.add(page, generation, slots);
    if (Math.floor(first / this.#chunkRows) >= this.#chunks.length) {
      this.#chunks.push(new Views(new ArrayBuffer(DEVICE_PROJECTION_CHUNK_BYTES)));
    }
    let into = this.#locate(first);
    for (let slot = 0; slot < slots; slot++) {
      this.#copy(views, slotRow(views, at, slot), this.views, into);
      into += this.rowWords;
    }
  }
}

/** The projections of a thread. */
export class Projections {
  readonly #known = new Map<string, Projection>();

  /** The one that a program can be computed with; undefined if it needs whole rows. */
  of(shared: DeviceTable, program: Program): Projection | undefined {
    const { table, file } = shared;
    const names = fieldsOf(program);
    if (table.expires !== undefined) names.add(table.expires);
    if (!isProjectable(table, names)) return undefined;
    const key = `${file.name} ${JSON.stringify([...names].sort())}`;
    let projection = this.#known.get(key);
    const most = mostBytes(shared);
    projection ??= new Projection(table, file.name, names, most);
    // The last one is the one used last.
    this.#known.delete(key);
    this.#known.set(key, projection);
    let bytes = 0;
    for (const each of this.#known.values()) bytes += each.bytes;
    for (const [old, each] of this.#known) {
      if (bytes <= most || each === projection) break;
      this.#known.delete(old);
      bytes -= each.bytes;
    }
    return projection;
  }

  /** Those of one file. */
  ofFile(file: string): Projection[] {
    return [...this.#known.values()].filter((each) => each.file === file);
  }
}

function mostBytes({ device }: DeviceTable): number {
  const share = device.memoryBytes * DEVICE_PROJECTION_SHARE;
  const most = Math.min(MAX_DEVICE_PROJECTION_BYTES, share);
  return Math.max(DEVICE_PROJECTION_CHUNK_BYTES, most);
}

/** Short fields with a place of their own. */
function isProjectable(table: Table, names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false;
  const fields = [...names].map((name) => table.fields[name]);
  if (fields.some((field) => isVariable(field) || field.kind === "pointer")) return false;
  return layoutOf(partOf(table, names)).fixedBytes <= DEVICE_PROJECTED_ROW_BYTES;
}

/** A table of some of the fields. */
function partOf(table: Table, names: ReadonlySet<string>): Table {
  const fields = Object.fromEntries(
    Object.entries(table.fields).filter(([name]) => names.has(name)),
  );
  return { ...table, fields, indexes: [] };
}

/** Code that copies the fields of a part from rows of the whole table. */
function copierOf(whole: Table, part: Table): CopyRow {
  const from = new Map(layoutOf(whole).fields.map((each) => [each.name, each]));
  const { fields, fixedBytes } = layoutOf(part);
  const clear = Array.from({ length: fixedBytes / 4 }, (_, i) => `to.i32[into + ${i}] = 0;`);
  const copies = fields.map((to) => copyCode(from.get(to.name)!, to));
  const source = `"use strict"; return function (from, at, to, into) { ${[...clear, ...copies].join(" ")} };`;
  return compile(source, [])() as CopyRow;
}

function copyCode(from: FieldLayout, to: FieldLayout): string {
  const width = widthOf(to.field);
  const unit = [4, 2, 1].find((each) => width % each === 0 && to.offset % each === 0)!;
  const array = { 4: "i32", 2: "u16", 1: "u8" }[unit];
  const scale = { 4: "", 2: " * 2", 1: " * 4" }[unit];
  const values = Array.from({ length: width / unit }, (_, i) => {
    const source = `from.${array}[at${scale} + ${from.offset / unit + i}]`;
    return `to.${array}[into${scale} + ${to.offset / unit + i}] = ${source};`;
  });
  if (to.field.nullable) {
    values.push(
      `if (from.u8[at * 4 + ${from.nullByte}] & ${from.nullBit}) to.u8[into * 4 + ${to.nullByte}] |= ${to.nullBit};`,
    );
  }
  return values.join(" ");
}
