/**
 * The check of a table on the device (tables/device/hidden-tables.ts): its root, the structures of its three
 * hidden tables, and its pages. Every place leads to a page of its file with a right checksum, and in it to a
 * row of its length with its key; no two places lead to the same row; no free page is led to; and the delta
 * holds just the rows whose place says so. Where there is a media log, it has the same pages. Pages are read beside the buffer, one after the other.
 */

import { deviceOf } from "../../device/device.ts";
import { MAX_PAGE_ROW_WORDS, PAGE_BYTES, rowIn, runPages } from "../../device/page.ts";
import { classFor } from "../../engine/cells.ts";
import { regionIdOf, wordOf } from "../../memory/address.ts";
import { Views } from "../../memory/views.ts";
import { MAX_ROW_BYTES } from "../../runtime/limits.ts";
import { DeviceTable } from "../../tables/device/device-table.ts";
import {
  type DevicePlace,
  hiddenTablesOf,
  ROOT_WORDS,
  rootIn,
  slotIn,
  wordsIn,
} from "../../tables/device/hidden-tables.ts";
import { keyIn, shownValue } from "../../tables/indexes/entries.ts";
import { type RowValues, Structure } from "../../tables/indexes/structure.ts";
import type { Table } from "../../tables/table.ts";
import type { Check, Problems } from "../structures/check.ts";
import type { Figures } from "../structures/kinds.ts";
import { ObjectReader } from "../structures/reader.ts";
import type { SeenCells } from "../structures/seen-cells.ts";
import type { Part } from "./parts.ts";
import { rowFaultOf } from "./row-faults.ts";
import type { ToolRun } from "./tool-run.ts";

/** Runs the check of a structure in memory. */
type CheckPart = (part: Part, each: (row: RowValues) => void) => Check<Figures>;

const long = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

export function* checkDeviceTable(
  tool: ToolRun,
  part: Part,
  seen: SeenCells,
  problems: Problems,
  each: (row: RowValues) => void,
  checkPart: CheckPart,
): Check<Figures> {
  const { table, codec } = part.structure;
  const hidden = hiddenTablesOf(table as Table);
  const reader = new ObjectReader(
    tool.executor,
    tool.run,
    seen,
    seen.addOwner(`the root of ${part.subject}`),
    problems,
  );
  const views = new Views(new ArrayBuffer(ROOT_WORDS * 4));
  const expected = { sizeClass: classFor(ROOT_WORDS * 4), incarnation: undefined };
  const { root } = part;
  const partOf = (what: string, of: Table, at: Part["root"]): Part => ({
    subject: `${what} of ${part.subject}`,
    structure: new Structure(of as Table<RowValues>),
    root: at,
  });
  const isRead = reader.readCell(
    "its root",
    regionIdOf(root),
    wordOf(root),
    expected,
    ROOT_WORDS,
    views,
  );
  const roots = rootIn(views.i32);
  if (!isRead) return NOTHING;
  const free = new Set<number>();
  yield* checkPart(partOf("the free pages", hidden.freeTable, roots.free), (row) =>
    free.add(row.page as number),
  );
  const delta = new Set<string>();
  const deltaTable = { ...table, storage: undefined, ordered: false, layout: "hopscotch" as const };
  const inDelta = yield* checkPart(partOf("the delta", deltaTable as Table, roots.delta), (row) => {
    delta.add(shownValue(keyIn(row, table.key, table.singleKey)));
    each(row);
  });
  const file = deviceOf(tool.executor).fileOf(roots.fileHigh, roots.fileLow);
  const shared = new DeviceTable(tool.executor, table as Table, hidden, codec as never, root);
  const fault = rowFaultOf(table);
  const places: { readonly key: unknown; readonly place: DevicePlace }[] = [];
  const map = yield* checkPart(partOf("the map", hidden.mapTable, roots.map), (entry) => {
    const key = shared.keyIn(entry);
    const place = shared.placeIn(entry);
    if (place.where !== 0) places.push({ key, place });
    else if (!delta.delete(shownValue(key))) {
      problems.add(
        `row ${shownValue(key)}`,
        "its place says that it is in the delta, and it is not",
      );
    }
  });
  for (const key of delta)
    problems.add(`row ${key}`, "it is in the delta, and its place says otherwise");
  places.sort((a, b) => a.place.page - b.place.page);
  const { mended } = file;
  let before = -1;
  let page: Views | undefined;
  // Its own: a page is used for all of its rows, and others read pages in between.
  const own = new Views(new ArrayBuffer(PAGE_BYTES));
  const used = new Set<number>();
  for (const { key, place } of places) {
    const words = wordsIn(place.where);
    const where = `row ${shownValue(key)}`;
    if (place.page !== before) used.clear();
    if (used.has(slotIn(place.where)))
      problems.add(where, `another row is in the same slot of page ${place.page}`);
    used.add(slotIn(place.where));
    const last = words > MAX_PAGE_ROW_WORDS ? place.page + runPages(words) - 1 : place.page;
    for (let page = place.page; page <= last; page++) {
      if (free.has(page)) problems.add(where, `it lies on page ${page}, which is free`);
    }
    try {
      let at = 0;
      let row = long;
      if (words > MAX_PAGE_ROW_WORDS) file.readRun(place.page, place.generation, words, long);
      else {
        if (place.page !== before) page = file.readAlone(place.page, place.generation, own);
        row = page!;
        at = rowIn(row, 0, slotIn(place.where), words);
      }
      const what = at < 0 ? `slot ${slotIn(place.where)} has no such row` : fault(row, at, words);
      if (what !== undefined) problems.add(where, `${file.path}, page ${place.page}: ${what}`);
      else if (shownValue(shared.keyAt(row, at, words)) !== shownValue(key)) {
        problems.add(where, `${file.path}, page ${place.page}: the row there has another key`);
      } else each(codec.decode(row, at, words) as RowValues);
      if (place.page !== before) {
        const copyFault = file.mediaFault(place.page, place.generation);
        if (copyFault !== undefined)
          problems.add(where, `in the media log, page ${place.page}: ${copyFault}`);
      }
      before = place.page;
    } catch (error) {
      before = -1;
      problems.add(where, (error as Error).message);
    }
    yield;
  }
  if (file.mended > mended) {
    problems.add(
      part.subject,
      `${file.path}: ${file.mended - mended} pages are damaged or missing, and were read from the media log; to rebuild ` +
        "the file from there, close the store, remove the file, and open the store again",
    );
  }
  return { ...map, memoryBytes: map.memoryBytes + inDelta.memoryBytes + reader.memoryBytes };
}

const NOTHING = {
  rows: 0,
  rowObjects: 0,
  cutRows: 0,
  memoryBytes: 0,
} as unknown as Figures;
