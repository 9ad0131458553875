/**
 * The file of one table on the device: pages by number, through `StoreFiles`. What a place of the table's
 * map leads to was written and synced before the place was. So whatever is found here that does not fit a
 * place is damage, and is told with file and offset, unless the place was read too long ago to be true.
 */

import { type StoreFile, type StoreFiles, writeFully } from "../folder/files.ts";
import { explainedOnDisk } from "../folder/store-files.ts";
import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import {
  epochOfPage,
  GENERATION,
  HEADER_WORDS,
  isPart,
  PAGE_BYTES,
  PAGE_WORDS,
  pageFault,
  RUN_WORDS,
  runPages,
} from "./page.ts";
import type { BufferedFile, PageBuffer } from "./page-buffer.ts";

export const DEVICE_FOLDER = "device";
const SUFFIX = ".pages";

let ordinals = 0;

/** The name of a file, by its id of 64 bits in two words. */
export function fileName(high: number, low: number): string {
  const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0");
  return `${DEVICE_FOLDER}/${hex(high)}${hex(low)}${SUFFIX}`;
}

/** Of the names of a folder, those of device files. */
export function isDeviceFile(name: string): boolean {
  return /^[0-9a-f]{16}\.pages$/.test(name);
}

export class PageFile implements BufferedFile {
  readonly ordinal = ordinals++;
  readonly frames = new Map<number, number>();
  readonly name: string;
  /** The lower word of its id, which its pages have, too. */
  readonly id: number;
  readonly #files: StoreFiles;
  readonly #buffer: PageBuffer;
  #file: StoreFile | undefined;
  /** For what is read beside the buffer. */
  readonly #alone = new Views(new ArrayBuffer(PAGE_BYTES));

  constructor(files: StoreFiles, buffer: PageBuffer, high: number, low: number) {
    this.#files = files;
    this.#buffer = buffer;
    this.name = fileName(high, low);
    this.id = low | 0;
  }

  get path(): string {
    return `${this.#files.place}/${this.name}`;
  }

  /** Whether it is there; it is made before its first page. */
  get exists(): boolean {
    return this.#file !== undefined || this.#files.has(this.name);
  }

  /** Makes an empty file, which is there for certain when this returns. */
  create(): void {
    explainedOnDisk(this.path, () => {
      this.#files.makeFolder(DEVICE_FOLDER);
      // One who has died, or met an error, may have made it before.
      const { name } = this;
      this.#file ??= this.#files.has(name) ? this.#files.open(name) : this.#files.create(name, 0);
      this.#files.syncFolder(DEVICE_FOLDER);
      this.#files.syncFolder("");
    });
  }

  /** Pages that it has room for; the last one may not be whole. */
  pages(): number {
    return Math.ceil(this.#open().size() / PAGE_BYTES);
  }

  write(bytes: Uint8Array, page: number): void {
    explainedOnDisk(this.path, () => writeFully(this.#open(), [bytes], page * PAGE_BYTES));
  }

  sync(): void {
    explainedOnDisk(this.path, () => this.#open().sync());
  }

  /** The same without holding the thread. */
  async syncLater(): Promise<void> {
    const file = this.#open();
    if (file.syncLater === undefined) this.sync();
    else await file.syncLater().catch((error: unknown) => this.#explain(error));
  }

  /** Adds pages that nothing leads to and returns the first one's number. For the keeper. */
  extend(pages: number): number {
    const first = this.pages();
    explainedOnDisk(this.path, () => this.#open().truncate((first + pages) * PAGE_BYTES));
    return first;
  }

  /** Reads pages side by side, beside the buffer and without holding the thread. They are not checked. */
  async readLater(first: number, pages: number, into: Views): Promise<void> {
    const file = this.#open();
    const bytes = into.u8.subarray(0, pages * PAGE_BYTES);
    const at = first * PAGE_BYTES;
    let found = 0;
    try {
      found = await (file.readLater?.(bytes, at) ?? file.read(bytes, at));
    } catch (error) {
      this.#explain(error);
    }
    // What is missing at the end is found to be no page.
    bytes.fill(0, found);
  }

  #explain(error: unknown): never {
    return explainedOnDisk(this.path, () => {
      throw error;
    });
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  /** Whether a page is in the buffer in this generation. */
  isHere(page: number, generation: number): boolean {
    const frame = this.frames.get(page);
    return frame !== undefined && this.#generationIn(frame) === generation;
  }

  /** The frame of a page in this generation; it is read now if it is not there. */
  frameOf(page: number, generation: number): number {
    const frame = this.#buffer.find(this, page);
    if (frame >= 0 && this.#generationIn(frame) === generation) return frame;
    return this.#load(page, generation);
  }

  #generationIn(frame: number): number {
    return this.#buffer.viewsOf(frame).i32[this.#buffer.atOf(frame) + GENERATION];
  }

  #load(page: number, generation: number): number {
    const frame = this.#buffer.admit(this, page);
    const views = this.#buffer.viewsOf(frame);
    const at = this.#buffer.atOf(frame);
    try {
      this.#read(views, at, page);
      this.check(views, at, page, generation);
    } catch (error) {
      this.#buffer.forget(this, page);
      throw error;
    }
    return frame;
  }

  /** Reads pages without holding the thread. Whatever is wrong with one is told when it is used. */
  async prefetch(pages: readonly number[]): Promise<void> {
    const file = this.#open();
    const reading = pages.map(async (page) => {
      const bytes = Buffer.allocUnsafeSlow(PAGE_BYTES);
      const found = await (file.readLater?.(bytes, page * PAGE_BYTES) ??
        file.read(bytes, page * PAGE_BYTES));
      if (found < PAGE_BYTES) return;
      const read = new Views(bytes.buffer);
      if (pageFault(read, 0, page, this.id) !== undefined) return;
      const frame = this.#buffer.admit(this, page);
      this.#buffer.viewsOf(frame).i32.set(read.i32, this.#buffer.atOf(frame));
    });
    await Promise.all(reading);
  }

  /** Puts a row together that has a run of pages of its own. */
  readRun(page: number, generation: number, words: number, into: Views): void {
    const pages = runPages(words);
    const bytes = Buffer.allocUnsafeSlow(pages * PAGE_BYTES);
    const found = this.#open().read(bytes, page * PAGE_BYTES);
    const views = new Views(bytes.buffer);
    for (let part = 0; part < pages; part++) {
      if (found < (part + 1) * PAGE_BYTES)
        throw this.damaged(page + part, "the file ends before it");
      const at = part * PAGE_WORDS;
      this.check(views, at, page + part, generation);
      if (!isPart(views, at, part, words)) throw this.damaged(page + part, "it is of another row");
      const from = at + HEADER_WORDS;
      const length = Math.min(RUN_WORDS, words - part * RUN_WORDS);
      into.i32.set(views.i32.subarray(from, from + length), part * RUN_WORDS);
    }
  }

  /**
   * Reads a page beside the buffer, whatever its generation if none is given. What is read into no views of the
   * caller's is good until the next one, so only within a turn.
   */
  readAlone(page: number, generation?: number, into: Views = this.#alone): Views {
    const views = into;
    this.#read(views, 0, page);
    this.check(views, 0, page, generation);
    return views;
  }

  /** The epoch in which a page was written, by what its file says; 0 if it never was. */
  epochOf(page: number): number {
    const head = new Views(new ArrayBuffer(HEADER_WORDS * 4));
    if (this.#open().read(head.u8, page * PAGE_BYTES) < HEADER_WORDS * 4) return 0;
    return epochOfPage(head);
  }

  /** The error for something that is wrong with a page. */
  damaged(page: number, what: string): SituError {
    return new SituError(
      "SITU_CORRUPT",
      `${this.path}, byte ${page * PAGE_BYTES}: ${what}; restore the store from a backup`,
    );
  }

  #read(views: Views, at: number, page: number): void {
    const into = views.u8.subarray(at * 4, at * 4 + PAGE_BYTES);
    const found = explainedOnDisk(this.path, () => this.#open().read(into, page * PAGE_BYTES));
    if (found < PAGE_BYTES) throw this.damaged(page, "the file ends before this page does");
  }

  /** Throws unless a page that was read is this one, whole, in this generation. */
  check(views: Views, at: number, page: number, generation: number | undefined): void {
    const fault = pageFault(views, at, page, this.id);
    if (fault !== undefined) throw this.damaged(page, fault);
    const found = views.i32[at + GENERATION];
    if (generation === undefined || found === generation) return;
    throw this.damaged(page, `the page has generation ${found >>> 0}, not ${generation >>> 0}`);
  }

  #open(): StoreFile {
    try {
      this.#file ??= this.#files.open(this.name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      throw this.missing(error);
    }
    return this.#file;
  }

  /** The error for a file that must be there. */
  missing(cause?: unknown): SituError {
    return new SituError(
      "SITU_CORRUPT",
      `the device file ${this.path} is missing: put it back, or restore the store from a backup`,
      { cause },
    );
  }
}
