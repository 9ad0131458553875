// lmdb's ranges in their fastest form: an encoder of our own that reads the fields where lmdb left
// the bytes. With values as buffers, each is copied first, and a scan takes twice as long.
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { type LmdbModule, type LmdbOptions, lmdbSettings, openLmdbBank } from "../memory/lmdb.ts";
import {
  type AccountRow,
  decodeValue,
  type Keys,
  type ValueView,
  viewValue,
} from "../memory/rows.ts";
import { checkRange, type OrderedBank, rangeRows } from "./ranges.ts";

interface RowEncoder {
  encode(row: AccountRow): never;
  decode(bytes: Uint8Array): AccountRow;
}

export interface RangeLmdbModule extends LmdbModule {
  open: LmdbModule["open"] &
    ((options: LmdbOptions & { readonly encoder: RowEncoder }) => LmdbRanges);
}

interface LmdbRanges {
  getRange(options?: { readonly start: number; readonly limit: number }): Iterable<LmdbEntry>;
  close(): Promise<void>;
}

interface LmdbEntry {
  readonly key: number;
  readonly value: AccountRow;
}

export function openOrderedLmdb(
  lmdb: RangeLmdbModule,
  folder: string,
  rows: number,
  keys: Keys,
  starts: Int32Array,
): OrderedBank {
  const bank = openLmdbBank(lmdb, folder, rows, keys);
  const store = lmdb.open({ ...lmdbSettings, path: folder, encoder: rowEncoder() });
  checkRange("lmdb", rows >> 1, rowsFrom(store, rows >> 1));
  return {
    get: bank.get,
    scan: lmdbScan(store, rows),
    range: lmdbRange(store, starts),
    async close() {
      await store.close();
      await bank.close();
    },
  };
}

function* rowsFrom(store: LmdbRanges, start: number): Iterable<AccountRow> {
  for (const { key, value } of store.getRange({ start, limit: rangeRows })) {
    value.id = key;
    yield value;
  }
}

/** lmdb copies every value to the same place; should that change, the views follow. */
function rowEncoder(): RowEncoder {
  const decodeRow = decodeValue;
  let view: ValueView | undefined;
  let memory: ArrayBufferLike | undefined;
  let place = -1;
  return {
    encode() {
      throw new Error("only ranges are read here");
    },
    decode(bytes) {
      if (view === undefined || bytes.buffer !== memory || bytes.byteOffset !== place) {
        memory = bytes.buffer;
        place = bytes.byteOffset;
        view = viewValue(memory, place);
      }
      // The caller knows the key.
      return decodeRow(view, 0);
    },
  };
}

function lmdbScan(store: LmdbRanges, rows: number): SyncContestant {
  const seen = sink;
  return {
    name: "lmdb scan",
    unit: rows,
    run(passes) {
      let sum = 0;
      for (let pass = 0; pass < passes; pass++) {
        let count = 0;
        for (const { key, value } of store.getRange()) {
          value.id = key;
          seen.value = value;
          sum += key;
          count++;
        }
        if (count !== rows) throw new Error(`lmdb scanned ${count} rows`);
      }
      return sum;
    },
  };
}

function lmdbRange(store: LmdbRanges, starts: Int32Array): SyncContestant {
  const seen = sink;
  const mask = keyMask;
  const limit = rangeRows;
  let kept = 0;
  return {
    name: "lmdb range",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        let count = 0;
        for (const { key, value } of store.getRange({ start: starts[cursor], limit })) {
          value.id = key;
          seen.value = value;
          sum += key;
          count++;
        }
        if (count !== limit) throw new Error(`lmdb found ${count} rows`);
        cursor = (cursor + 1) & mask;
      }
      kept = cursor;
      return sum;
    },
  };
}
