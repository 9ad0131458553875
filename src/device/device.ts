/**
 * The storage device as one executor has it: the files of its tables (page-file.ts), the buffer that they
 * share (page-buffer.ts), and the pages that asynchronous transactions wait for.
 *
 * Such a transaction does not wait for a page within a turn of the event loop: its operation asks for the
 * page here and is cut short with PAGE_MISS; the page is read meanwhile, and the operation is carried out again.
 * That is possible as long as it has changed nothing yet. Whoever has to, or must not be cut short, as
 * `transactSync`, reads the page at once.
 */

import type { Executor } from "../engine/executor.ts";
import type { PageLoads } from "../engine/page-loads.ts";
import { PAGE_MISS } from "../engine/signals.ts";
import type { Transaction } from "../engine/transaction.ts";
import type { StoreFiles } from "../folder/files.ts";
import { NodeFiles } from "../folder/node-files.ts";
import type { Address } from "../memory/address.ts";
import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import {
  DEVICE_BUFFER_SHARE,
  DEVICE_DELTA_BYTES,
  DEVICE_DELTA_SHARE,
  DEVICE_MISSES_AT_ONCE,
  DEVICE_PAGE_BYTES,
  MAX_DEVICE_BUFFER_PAGES,
  MAX_ROW_BYTES,
  MIN_DEVICE_BUFFER_PAGES,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import { mediaLogFolder } from "./media-log.ts";
import { PageBuffer } from "./page-buffer.ts";
import { PageFile } from "./page-file.ts";

const devices = new WeakMap<Executor, Device>();
/** For tests: the disk of executors that are opened from now on, by the folder of their store. */
const replaced = new Map<string, StoreFiles>();

/** Has a test's disk serve the device tables of a store. */
export function replaceDeviceFiles(path: string, files: StoreFiles | undefined): void {
  if (files === undefined) replaced.delete(path);
  else replaced.set(path, files);
}

/** The disk of a store's device tables. */
export function deviceFilesOf(path: string): StoreFiles {
  return replaced.get(path) ?? new NodeFiles(path);
}

/** The device of an executor, which is made when the first device table is opened. */
export function deviceOf(executor: Executor): Device {
  let device = devices.get(executor);
  if (device === undefined) {
    device = new Device(executor);
    devices.set(executor, device);
    executor.pageLoads = device;
  }
  return device;
}

/** The same, if there is any. */
export function knownDevice(executor: Executor): Device | undefined {
  return devices.get(executor);
}

export class Device implements PageLoads {
  readonly buffer: PageBuffer;
  readonly executor: Executor;
  readonly files: StoreFiles;
  /** Where the media log is, if one has been found so far. */
  #media: StoreFiles | undefined;
  /** By the root of the table, what those above keep of it; and what they have to do for it. */
  readonly tables = new Map<number, unknown>();
  readonly work: unknown[] = [];
  /** Called when there is something to do in the background; set by the database. */
  onPressure: () => void = () => {};
  /** Whether the catalogue has a table with this root and file; set by the database. */
  isInUse: (root: Address, file: string) => boolean = () => true;
  /** Where a long row is put together. */
  readonly #run = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));
  readonly #opened = new Map<string, PageFile>();
  /** What the operation that was cut short last has asked for. */
  #wanted: { readonly file: PageFile; readonly page: number }[] = [];
  /** The long row that it has asked for, and the last ones that were read for such. */
  #wantedRun: WantedRun | undefined;
  readonly #runs: (WantedRun & { readonly views: Views })[] = [];
  /** The transaction whose operation may be cut short, and what it had written when that began. */
  #cuttable: Transaction | undefined;
  #writes = 0;
  /** Where the row that `open` has found lies. */
  views: Views = this.#run;
  at = 0;

  constructor(executor: Executor) {
    this.executor = executor;
    const { path } = executor.memory;
    if (path === undefined) {
      throw new SituError(
        "SITU_UNSUPPORTED",
        "this store is shared by the threads of one process only and has no tables on the device",
      );
    }
    this.files = deviceFilesOf(path);
    const share = Math.floor((this.memoryBytes * DEVICE_BUFFER_SHARE) / DEVICE_PAGE_BYTES);
    this.buffer = new PageBuffer(
      Math.min(MAX_DEVICE_BUFFER_PAGES, Math.max(MIN_DEVICE_BUFFER_PAGES, share)),
    );
  }

  /** Bytes of new rows that may stay in memory. */
  get deltaBytes(): number {
    return Math.min(DEVICE_DELTA_BYTES, this.memoryBytes * DEVICE_DELTA_SHARE);
  }

  /** What the store may have. */
  get memoryBytes(): number {
    return this.executor.slabs.blocks.limit * UNIT_BYTES;
  }

  /** Where the media log is, if the store has one by now. */
  findMedia(): StoreFiles | undefined {
    if (this.#media === undefined) {
      const folder = mediaLogFolder(this.files);
      if (folder !== undefined) this.#media = deviceFilesOf(folder);
    }
    return this.#media;
  }

  fileOf(high: number, low: number): PageFile {
    const key = `${high} ${low}`;
    let file = this.#opened.get(key);
    if (file === undefined) {
      file = new PageFile(this.files, this.buffer, high, low, () => this.findMedia());
      this.#opened.set(key, file);
    }
    return file;
  }

  close(): void {
    for (const file of this.#opened.values()) file.close();
    this.#opened.clear();
    this.tables.clear();
  }

  /** Finds a page for `tx`, or cuts its operation short. Returns its frame. */
  frameOf(tx: Transaction | undefined, file: PageFile, page: number, generation: number): number {
    if (tx !== undefined && this.isCuttable(tx) && !file.isHere(page, generation)) {
      this.want(tx, file, page, generation);
      this.cutShort(tx);
    }
    return file.frameOf(page, generation);
  }

  /** Puts a long row together for `tx`, or cuts its operation short. */
  readRun(
    tx: Transaction | undefined,
    file: PageFile,
    page: number,
    generation: number,
    words: number,
  ): void {
    this.at = 0;
    const found = this.#runs.find((each) => isRun(each, file, page, generation, words));
    if (found !== undefined) {
      this.views = found.views;
      return;
    }
    if (tx !== undefined && this.isCuttable(tx)) {
      this.#wantedRun = { file, page, generation, words };
      throw PAGE_MISS;
    }
    file.readRun(page, generation, words, this.#run);
    this.views = this.#run;
  }

  /** Whether an operation of `tx` may be cut short now: then all pages that it needs are asked for first. */
  isCuttable(tx: Transaction): boolean {
    return tx === this.#cuttable && tx.set.writes === this.#writes;
  }

  /** Asks for a page that an operation will need, if it is not there. */
  want(tx: Transaction, file: PageFile, page: number, generation: number): void {
    if (!this.isCuttable(tx) || this.#wanted.length >= DEVICE_MISSES_AT_ONCE) return;
    if (file.isHere(page, generation)) return;
    if (this.#wanted.some((each) => each.page === page && each.file === file)) return;
    this.#wanted.push({ file, page });
  }

  /** Ends the operation, to be repeated, if it has asked for pages that are not there. */
  cutShort(tx: Transaction): void {
    if (this.#wanted.length > 0 && this.isCuttable(tx)) throw PAGE_MISS;
  }

  /** Before an operation of an asynchronous transaction; `writes` of its set tells what it has changed. */
  beginOperation(isCuttable: boolean, tx: Transaction): void {
    this.#cuttable = isCuttable ? tx : undefined;
    this.#writes = tx.set.writes;
    this.#wanted.length = 0;
    this.#wantedRun = undefined;
  }

  endOperation(): void {
    this.#cuttable = undefined;
  }

  /** Reads what was asked for. Whatever fails here, the operation will meet again and tell. */
  async load(): Promise<void> {
    const wanted = this.#wanted;
    const run = this.#wantedRun;
    this.#wanted = [];
    const byFile = new Map<PageFile, number[]>();
    for (const { file, page } of wanted) byFile.set(file, [...(byFile.get(file) ?? []), page]);
    const reading = [...byFile].map(([file, pages]) => file.prefetch(pages).catch(() => {}));
    await Promise.all([...reading, run === undefined ? undefined : this.#loadRun(run)]);
  }

  async #loadRun(run: WantedRun): Promise<void> {
    const { file, page, generation, words } = run;
    const views = new Views(new ArrayBuffer(words * 4));
    const isRead = await file.readRunLater(page, generation, words, views).then(
      () => true,
      () => false,
    );
    if (!isRead) return;
    if (this.#runs.length >= MOST_RUNS) this.#runs.shift();
    this.#runs.push({ ...run, views });
  }
}

/** Long rows that are kept for those who have asked for them. */
const MOST_RUNS = 4;

interface WantedRun {
  readonly file: PageFile;
  readonly page: number;
  readonly generation: number;
  readonly words: number;
}

function isRun(
  run: WantedRun,
  file: PageFile,
  page: number,
  generation: number,
  words: number,
): boolean {
  return (
    run.file === file && run.page === page && run.generation === generation && run.words === words
  );
}
