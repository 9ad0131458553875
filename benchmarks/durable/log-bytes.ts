// How many bytes go to the log for an update of 8 bytes, and what each of them is for.

import { RECORD_ENTRY_WORDS, RECORD_WORDS } from "../../src/engine/journal.ts";
import { BATCH_HEADER_BYTES } from "../../src/log/segments/format.ts";
import type { BenchOptions } from "../harness/bench-options.ts";
import type { StorePlace } from "../memory/situ.ts";
import { inBankProcess } from "./bank-processes.ts";
import type { LogFigures } from "./situ.ts";

/** Of updates in "lazy", where many share a batch, and in "sync" one after another, where none do. */
export type LogBytes = Readonly<Record<"lazy" | "sync", LogFigures>>;

export interface LogPart {
  readonly what: string;
  readonly why: string;
  readonly lazy: number;
  readonly sync: number;
}

const changedBytes = 8;

/** Words of a record and of its entry, as src/engine/journal.ts draws them. */
const recordParts = [
  { what: "record: length, entries", bytes: 8, why: "where the next record and its entries are" },
  { what: "record: TID", bytes: 8, why: "its epoch and its order: replay applies the later one" },
  { what: "entry: region, size class", bytes: 4, why: "which region; which cell, if it is new" },
  { what: "entry: word in the region", bytes: 4, why: "the object; no table, no key, no index" },
  { what: "entry: incarnation", bytes: 4, why: "allocated or freed, and for the how-manieth time" },
  { what: "entry: first word, words", bytes: 8, why: "what part of the object has changed" },
  { what: "data", bytes: changedBytes, why: "the new balance" },
];

export async function measureLogBytes(
  place: StorePlace,
  rows: number,
  { quick, seed }: BenchOptions,
): Promise<LogBytes> {
  const measure = (durability: "lazy" | "sync", updates: number): Promise<LogFigures> =>
    inBankProcess({ ...place, durability, first: 0, rows, seed }, async (process) => {
      const { log } = await process.ask({ kind: "update", updates });
      return log;
    });
  return {
    lazy: await measure("lazy", quick ? 100_000 : 500_000),
    sync: await measure("sync", quick ? 500 : 2_000),
  };
}

export function bytesPerUpdate({ logBytes, records }: LogFigures): number {
  return logBytes / records;
}

/** The parts add up to what was measured: what is left after all of them is what packing saves, and padding. */
export function logParts({ lazy, sync }: LogBytes): LogPart[] {
  const recordBytes = recordParts.reduce((sum, { bytes }) => sum + bytes, 0);
  if (recordBytes !== 4 * (RECORD_WORDS + RECORD_ENTRY_WORDS) + changedBytes) {
    throw new Error("a record has other parts than log-bytes.ts says");
  }
  const shared = ({ batches, records }: LogFigures): number =>
    (batches * BATCH_HEADER_BYTES) / records;
  const packing = (log: LogFigures): number => {
    const left = bytesPerUpdate(log) - recordBytes - shared(log);
    const most = (8 * log.batches) / log.records;
    if (left < -recordBytes || left > most) {
      throw new Error(`${left} bytes of an update cannot be explained`);
    }
    return left;
  };
  return [
    ...recordParts.map(({ what, why, bytes }) => ({ what, why, lazy: bytes, sync: bytes })),
    {
      what: "batch header, shared",
      why: `${BATCH_HEADER_BYTES} bytes: magic, segment, lengths, epochs, time, two checksums`,
      ...{ lazy: shared(lazy), sync: shared(sync) },
    },
    {
      what: "packing, and padding, shared",
      why: "words of few bytes take few; a batch begins at a multiple of 8 bytes",
      ...{ lazy: packing(lazy), sync: packing(sync) },
    },
  ];
}

export function renderLogParts(logBytes: LogBytes): string[] {
  const parts = logParts(logBytes);
  const number = (value: number): string => value.toFixed(2).padStart(8);
  const row = (what: string, lazy: string, sync: string, why: string): string =>
    `  ${what.padEnd(28)}${lazy.padStart(8)}${sync.padStart(8)}   ${why}`.trimEnd();
  const { lazy, sync } = logBytes;
  return [
    "log bytes for an update of 8 bytes in a row of 56, 52 of them fields:",
    row("", "lazy", "sync", ""),
    ...parts.map((part) => row(part.what, number(part.lazy), number(part.sync), part.why)),
    row(
      "all",
      number(bytesPerUpdate(lazy)),
      number(bytesPerUpdate(sync)),
      `with ${(lazy.records / lazy.batches).toFixed(0)} updates in a batch, and with ` +
        `${(sync.records / sync.batches).toFixed(0)}`,
    ),
  ];
}
