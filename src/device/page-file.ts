/**
 * The file of one table on the device: pages by number, through `StoreFiles`. What a place of the table's
 * map leads to was written and synced before the place was. So whatever is found here that does not fit a
 * place is damage, and is told with file and offset, unless the place was read too long ago to be true.
 *
 * Where the store has a media log (media-log.ts), every page is written there, too, and what is damaged or missing here is
 * read from there.
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
const UNFINISHED = ".new";
/** What is copied at a time where a file is rebuilt. */
const REBUILT_BYTES = 1 << 20;

/** The steps of rebuilding a lost file, for those who test what a death leaves. */
export const REBUILD_STEPS = ["created", "copying", "copied", "synced", "renamed", "kept"] as const;
export type RebuildStep = (typeof REBUILD_STEPS)[number];
let passedStep: (step: RebuildStep) => void = () => {};

/** For tests: called after each step of a rebuild. */
export function watchRebuilds(passed: (step: RebuildStep) => void): void {
  passedStep = passed;
}

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

/** Where a file is rebuilt, until it is whole. */
export function unfinishedName(name: string): string {
  return `${name}${UNFINISHED}`;
}

/** The same of what a rebuild has left that was cut off. */
export function isUnfinished(name: string): boolean {
  return name.endsWith(UNFINISHED) && isDeviceFile(name.slice(0, -UNFINISHED.length));
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
  #media: StoreFiles | undefined;
  readonly #findMedia: () => StoreFiles | undefined;
  #mediaFile: StoreFile | undefined;
  /** Pages that were read from the media log, because they were damaged or missing. */
  mended = 0;
  /** For what is read beside the buffer. */
  readonly #alone = new Views(new ArrayBuffer(PAGE_BYTES));

  constructor(
    files: StoreFiles,
    buffer: PageBuffer,
    high: number,
    low: number,
    findMedia: () => StoreFiles | undefined = () => undefined,
  ) {
    this.#files = files;
    this.#findMedia = findMedia;
    this.#media = findMedia();
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

  /** Makes an empty file, which is there for certain when this returns. For the keeper. */
  create(): void {
    this.#lookForMedia();
    explainedOnDisk(this.path, () => {
      this.#files.makeFolder(DEVICE_FOLDER);
      // One who has died, or met an error, may have made it before.
      const { name } = this;
      this.#file ??= this.#files.has(name) ? this.#files.open(name) : this.#files.create(name, 0);
      this.#files.syncFolder(DEVICE_FOLDER);
      this.#files.syncFolder("");
    });
    const media = this.#media;
    if (media === undefined) return;
    this.#onMedia(() => {
      media.makeFolder(DEVICE_FOLDER);
      const { name } = this;
      this.#mediaFile ??= media.has(name) ? media.open(name) : media.create(name, 0);
      media.syncFolder(DEVICE_FOLDER);
      media.syncFolder("");
    });
  }

  /**
   * Where there is a media log, and the file or its copy there is lost, it is made again from the other one. For the
   * keeper, before it writes to a file that must be there.
   */
  rebuildIfLost(): void {
    const { name } = this;
    this.#lookForMedia();
    const copy = this.#openMedia();
    if (this.#file === undefined && !this.#files.has(name)) {
      if (copy === undefined) throw this.missing();
      explainedOnDisk(this.path, () => copyTo(this.#files, name, copy));
    } else if (copy === undefined && this.#media !== undefined) {
      const media = this.#media;
      this.#onMedia(() => copyTo(media, name, this.#open()));
    }
  }

  /** Another process may have noted a media log since this file was first used (media-log.ts). */
  #lookForMedia(): void {
    this.#media ??= this.#findMedia();
  }

  #onMedia<T>(work: () => T): T {
    return explainedOnDisk(`${this.#media!.place}/${this.name}`, work);
  }

  /** The copy of the file in the media log; undefined if there is none. */
  #openMedia(): StoreFile | undefined {
    const media = this.#media;
    if (media === undefined || this.#mediaFile !== undefined) return this.#mediaFile;
    if (media.has(this.name)) this.#mediaFile = this.#onMedia(() => media.open(this.name));
    return this.#mediaFile;
  }

  /** The same for one who writes. */
  #mediaToWrite(): StoreFile | undefined {
    const copy = this.#openMedia();
    if (copy === undefined && this.#media !== undefined) {
      throw new SituError(
        "SITU_CORRUPT",
        `the media log ${this.#media.place}/${this.name} is missing: put it back, or restore the store from a backup`,
      );
    }
    return copy;
  }

  /** Pages that it has room for; the last one may not be whole. */
  pages(): number {
    return Math.ceil(this.#open().size() / PAGE_BYTES);
  }

  write(bytes: Uint8Array, page: number): void {
    const copy = this.#mediaToWrite();
    explainedOnDisk(this.path, () => writeFully(this.#open(), [bytes], page * PAGE_BYTES));
    if (copy !== undefined) this.#onMedia(() => writeFully(copy, [bytes], page * PAGE_BYTES));
  }

  /** The same without holding the thread. The bytes must stay as they are until it is done. */
  async writeLater(bytes: Uint8Array, page: number): Promise<void> {
    const copy = this.#mediaToWrite();
    const at = page * PAGE_BYTES;
    await this.#both(copy, (file) => {
      if (file.writeLater !== undefined) return file.writeLater(bytes, at);
      writeFully(file, [bytes], at);
      return undefined;
    });
  }

  /** Does the same with the file and its copy. Nothing is under way when it ends, whatever fails. */
  async #both(
    copy: StoreFile | undefined,
    work: (file: StoreFile) => Promise<void> | undefined,
  ): Promise<void> {
    const one = async (file: StoreFile): Promise<void> => {
      await work(file);
    };
    const done = [one(this.#open()).catch((error: unknown) => this.#explain(error))];
    if (copy !== undefined) {
      const rethrow = (error: unknown) =>
        this.#onMedia(() => {
          throw error;
        });
      done.push(one(copy).catch(rethrow));
    }
    for (const each of await Promise.allSettled(done)) {
      if (each.status === "rejected") throw each.reason;
    }
  }

  sync(): void {
    const copy = this.#mediaToWrite();
    explainedOnDisk(this.path, () => this.#open().sync());
    if (copy !== undefined) this.#onMedia(() => copy.sync());
  }

  /** The same without holding the thread. */
  async syncLater(): Promise<void> {
    await this.#both(this.#mediaToWrite(), (file) => {
      if (file.syncLater !== undefined) return file.syncLater();
      file.sync();
      return undefined;
    });
  }

  /** Adds pages that nothing leads to and returns the first one's number. For the keeper. */
  extend(pages: number): number {
    const first = this.pages();
    explainedOnDisk(this.path, () => this.#open().truncate((first + pages) * PAGE_BYTES));
    return first;
  }

  /** Reads pages side by side, beside the buffer and without holding the thread. They are not checked. */
  async readLater(first: number, pages: number, into: Views): Promise<void> {
    const bytes = into.u8.subarray(0, pages * PAGE_BYTES);
    const at = first * PAGE_BYTES;
    let found = 0;
    try {
      const file = this.#open();
      found = await (file.readLater?.(bytes, at) ?? file.read(bytes, at));
    } catch (error) {
      // What the media log has instead is found by the check of each page.
      if (this.#openMedia() === undefined) this.#explain(error);
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
    this.#mediaFile?.close();
    this.#mediaFile = undefined;
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
    const bytes = Buffer.allocUnsafeSlow(runPages(words) * PAGE_BYTES);
    const found = this.#readWhatIsThere(bytes, page);
    this.#join(new Views(bytes.buffer), found, page, generation, words, into);
  }

  /** The same without holding the thread. */
  async readRunLater(page: number, generation: number, words: number, into: Views): Promise<void> {
    const file = this.#open();
    const bytes = Buffer.allocUnsafeSlow(runPages(words) * PAGE_BYTES);
    const at = page * PAGE_BYTES;
    const found = await (file.readLater?.(bytes, at) ?? file.read(bytes, at));
    this.#join(new Views(bytes.buffer), found, page, generation, words, into);
  }

  #join(
    views: Views,
    found: number,
    page: number,
    generation: number,
    words: number,
    into: Views,
  ): void {
    const pages = runPages(words);
    for (let part = 0; part < pages; part++) {
      const isMissing = found < (part + 1) * PAGE_BYTES;
      if (isMissing && this.#openMedia() === undefined)
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

  /** What is wrong with the copy of a page in the media log; undefined if nothing is, or there is none. */
  mediaFault(page: number, generation: number): string | undefined {
    if (this.#media === undefined) return undefined;
    const copy = this.#openMedia();
    if (copy === undefined) return "the file is missing";
    const views = new Views(new ArrayBuffer(PAGE_BYTES));
    const found = this.#onMedia(() => copy.read(views.u8, page * PAGE_BYTES));
    return found < PAGE_BYTES ? "the file ends before" : this.#faultOf(views, 0, page, generation);
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
    const found = this.#readWhatIsThere(into, page);
    if (found < PAGE_BYTES && this.#openMedia() === undefined)
      throw this.damaged(page, "the file ends before this page does");
  }

  /** Reads into `bytes`; what the disk does not give, the media log may have: then it is found by the check. */
  #readWhatIsThere(bytes: Uint8Array, page: number): number {
    let found = 0;
    try {
      found = explainedOnDisk(this.path, () => this.#open().read(bytes, page * PAGE_BYTES));
    } catch (error) {
      if (this.#openMedia() === undefined) throw error;
    }
    bytes.fill(0, found);
    return found;
  }

  /** Throws unless a page that was read is this one, whole, in this generation. */
  check(views: Views, at: number, page: number, generation: number | undefined): void {
    const fault = this.#faultOf(views, at, page, generation);
    if (fault === undefined) return;
    const copy = this.#openMedia();
    if (copy === undefined) throw this.damaged(page, fault);
    const into = views.u8.subarray(at * 4, at * 4 + PAGE_BYTES);
    const found = this.#onMedia(() => copy.read(into, page * PAGE_BYTES));
    const there =
      found < PAGE_BYTES ? "it ends before" : this.#faultOf(views, at, page, generation);
    if (there !== undefined) throw this.damaged(page, `${fault}; and in the media log: ${there}`);
    this.mended++;
  }

  #faultOf(
    views: Views,
    at: number,
    page: number,
    generation: number | undefined,
  ): string | undefined {
    const fault = pageFault(views, at, page, this.id);
    const found = views.i32[at + GENERATION];
    if (fault !== undefined || generation === undefined || found === generation) return fault;
    return `the page has generation ${found >>> 0}, not ${generation >>> 0}`;
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

/** A file with all that another one has, under its name when it is whole: whoever dies has made it, or not. */
function copyTo(files: StoreFiles, name: string, from: StoreFile): void {
  const unfinished = unfinishedName(name);
  files.makeFolder(DEVICE_FOLDER);
  const file = files.create(unfinished, 0);
  passedStep("created");
  try {
    const bytes = Buffer.allocUnsafeSlow(REBUILT_BYTES);
    for (let at = 0; ; ) {
      const found = from.read(bytes, at);
      if (found === 0) break;
      writeFully(file, [bytes.subarray(0, found)], at);
      at += found;
      passedStep("copying");
    }
    passedStep("copied");
    file.sync();
  } finally {
    file.close();
  }
  passedStep("synced");
  files.rename(unfinished, name);
  passedStep("renamed");
  files.syncFolder(DEVICE_FOLDER);
  files.syncFolder("");
  passedStep("kept");
}
