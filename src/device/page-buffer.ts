/**
 * The pages that a process keeps of its device files, by the 2Q policy (Johnson and Shasha, VLDB 1994): a
 * page that is read for the first time goes into a short queue (a quarter of the frames) and leaves it at
 * its end, however often it was read there. Only its number is remembered then, for as many pages as half
 * of the frames; if it is read again while it is remembered, it goes among the frequent ones, of which the
 * one that was not read for the longest time leaves. So a scan passes through the short queue and drives
 * out no page that is in use.
 *
 * Frames are made when they are needed. A page is known by its file and number; its generation is
 * compared by the reader.
 */

import { Views } from "../memory/views.ts";
import { DEVICE_BUFFER_STEP_PAGES } from "../runtime/limits.ts";
import { PAGE_BYTES, PAGE_WORDS } from "./page.ts";

const NONE = -1;
const RECENT = 0;
const FREQUENT = 1;
const RECENT_SHARE = 1 / 4;
const REMEMBERED_SHARE = 1 / 2;
/** Numbers of pages have 32 bits. */
const PAGES_OF_FILE = 2 ** 32;

/** A file whose pages are kept: where each one is. */
export interface BufferedFile {
  /** Tells the files of a process apart. */
  readonly ordinal: number;
  readonly frames: Map<number, number>;
}

export class PageBuffer {
  readonly #most: number;
  readonly #recentMost: number;
  readonly #rememberedMost: number;
  readonly #chunks: Views[] = [];
  readonly #files: BufferedFile[] = [];
  readonly #pages: Float64Array;
  readonly #queue: Uint8Array;
  readonly #before: Int32Array;
  readonly #after: Int32Array;
  /** By queue: the newest frame, the oldest one, and how many there are. */
  readonly #first = [NONE, NONE];
  readonly #last = [NONE, NONE];
  readonly #count = [0, 0];
  #made = 0;
  /** In the order in which they left: file and page in one number. */
  readonly #remembered = new Set<number>();
  hits = 0;
  misses = 0;

  constructor(mostPages: number) {
    this.#most = mostPages;
    this.#recentMost = Math.max(1, Math.floor(mostPages * RECENT_SHARE));
    this.#rememberedMost = Math.max(1, Math.floor(mostPages * REMEMBERED_SHARE));
    this.#pages = new Float64Array(mostPages);
    this.#queue = new Uint8Array(mostPages);
    this.#before = new Int32Array(mostPages);
    this.#after = new Int32Array(mostPages);
  }

  get mostPages(): number {
    return this.#most;
  }

  /** The frame of a page, or -1. */
  find(file: BufferedFile, page: number): number {
    const frame = file.frames.get(page);
    if (frame === undefined) {
      this.misses++;
      return NONE;
    }
    this.hits++;
    if (this.#queue[frame] === FREQUENT && this.#first[FREQUENT] !== frame) {
      this.#unlink(frame);
      this.#link(frame, FREQUENT);
    }
    return frame;
  }

  viewsOf(frame: number): Views {
    return this.#chunks[Math.floor(frame / DEVICE_BUFFER_STEP_PAGES)];
  }

  /** The word of its views where the page in a frame begins. */
  atOf(frame: number): number {
    return (frame % DEVICE_BUFFER_STEP_PAGES) * PAGE_WORDS;
  }

  /** A frame for a page that is being read; the caller fills it, or forgets it. */
  admit(file: BufferedFile, page: number): number {
    const known = file.frames.get(page);
    if (known !== undefined) return known;
    const key = file.ordinal * PAGES_OF_FILE + page;
    const queue = this.#remembered.delete(key) ? FREQUENT : RECENT;
    const frame = this.#made < this.#most ? this.#make() : this.#evict();
    this.#files[frame] = file;
    this.#pages[frame] = page;
    file.frames.set(page, frame);
    this.#link(frame, queue);
    return frame;
  }

  /** Drops a page that turned out to be no good. Its frame is the next one that is used. */
  forget(file: BufferedFile, page: number): void {
    const frame = file.frames.get(page);
    if (frame === undefined) return;
    file.frames.delete(page);
    this.#unlink(frame);
    this.#free.push(frame);
  }

  readonly #free: number[] = [];

  #make(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const frame = this.#made++;
    if (frame % DEVICE_BUFFER_STEP_PAGES === 0) {
      this.#chunks.push(new Views(new ArrayBuffer(DEVICE_BUFFER_STEP_PAGES * PAGE_BYTES)));
    }
    return frame;
  }

  #evict(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    const fromRecent = this.#count[RECENT] > this.#recentMost || this.#count[FREQUENT] === 0;
    const frame = this.#last[fromRecent ? RECENT : FREQUENT];
    const file = this.#files[frame];
    const page = this.#pages[frame];
    if (fromRecent) this.#remember(file.ordinal * PAGES_OF_FILE + page);
    file.frames.delete(page);
    this.#unlink(frame);
    return frame;
  }

  #remember(key: number): void {
    this.#remembered.add(key);
    if (this.#remembered.size <= this.#rememberedMost) return;
    for (const oldest of this.#remembered) {
      this.#remembered.delete(oldest);
      return;
    }
  }

  #link(frame: number, queue: number): void {
    const first = this.#first[queue];
    this.#queue[frame] = queue;
    this.#before[frame] = NONE;
    this.#after[frame] = first;
    if (first === NONE) this.#last[queue] = frame;
    else this.#before[first] = frame;
    this.#first[queue] = frame;
    this.#count[queue]++;
  }

  #unlink(frame: number): void {
    const queue = this.#queue[frame];
    const before = this.#before[frame];
    const after = this.#after[frame];
    if (before === NONE) this.#first[queue] = after;
    else this.#after[before] = after;
    if (after === NONE) this.#last[queue] = before;
    else this.#before[after] = before;
    this.#count[queue]--;
  }
}
