/**
 * How ends of this fabric find each other. A node has a folder:
 *
 *     node.lock       locked by the node while it lives
 *     directory       mapped by all; see below
 *     slot-<i>.lock   locked by the end that has the slot, while it lives
 *     rings-<i>-<g>   its two rings; the node removes the name once it has mapped them
 *
 *     directory:  words 0–7    magic, version, slots, node, configuration epoch, heartbeat, closed
 *                 word 16      counts the claims of slots: the node looks when it has changed
 *                 word 32…     where the node's bell is
 *                 word 256…    per slot: its generation, and the last one that the node has given up
 *
 * One who wants to send takes the lock of a slot, makes rings for the slot's next generation, writes
 * the generation, and sends at once. The node finds the rings, or not, and need not be waited for. The
 * rings of a dead end are never used again; its slot is.
 *
 * A lock ends with the process that has it, however that ends, so whoever gets one knows that the one
 * before is dead.
 */

import {
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { libc } from "../../memory/libc.ts";
import { MappedSegments } from "../../memory/mapped-segments.ts";
import type { Segment } from "../../memory/segments.ts";
import { Views } from "../../memory/views.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { isBellPath } from "./bell.ts";

const MAGIC = 0x676e6952; // "Ring", read in little-endian order
const VERSION = 1;

const WORD_MAGIC = 0;
const WORD_VERSION = 1;
const WORD_SLOTS = 2;
const WORD_NODE = 3;
const WORD_EPOCH = 4;
const WORD_HEARTBEAT = 5;
const WORD_CLOSED = 6;
const WORD_CLAIMS = 16;
const WORD_BELL = 32;
const SLOTS_AT = 256;
const SLOT_WORDS = 4;
const GIVEN_UP = 1;

const NAME = "directory";
const ATTEMPTS = 20;
const ATTEMPT_MS = 10;

/** A lock that the system takes back when its owner dies. */
export class FileLock {
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** Undefined if somebody has it. */
  static take(path: string): FileLock | undefined {
    const fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    if (libc().tryLock(fd)) return new FileLock(fd);
    closeSync(fd);
    return undefined;
  }

  release(): void {
    closeSync(this.#fd);
  }
}

/** Whether somebody has the lock; without a file nobody has. */
export function isLocked(path: string): boolean {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDWR);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
  const isFree = libc().tryLock(fd);
  closeSync(fd);
  return !isFree;
}

export const slotLock = (folder: string, slot: number): string => join(folder, `slot-${slot}.lock`);
export const ringsName = (slot: number, generation: number): string =>
  `rings-${slot}-${generation >>> 0}`;
export const nodeLock = (folder: string): string => join(folder, "node.lock");

export class Directory {
  readonly folder: string;
  readonly segments: MappedSegments;
  #views: Views;
  readonly #segment: Segment;
  /** Tells this file from one that has taken its place. */
  readonly #inode: number;

  private constructor(folder: string, segment: Segment) {
    this.folder = folder;
    this.segments = new MappedSegments(folder);
    this.#segment = segment;
    this.#views = new Views(segment.buffer);
    this.#inode = inodeOf(folder);
  }

  /** For the node, which must have its lock. What an earlier one has left is removed. */
  static create(folder: string, node: number, slots: number, bell: string): Directory {
    removeBellOfDead(folder);
    for (const name of readdirSync(folder)) {
      if (name.startsWith("rings-") || name === NAME) rmSync(join(folder, name), { force: true });
    }
    const bytes = Math.ceil(((SLOTS_AT + slots * SLOT_WORDS) * 4) / 4096) * 4096;
    const draft = `${NAME}.new`;
    const segment = new MappedSegments(folder).create(draft, bytes);
    const { i32, bytes: text } = new Views(segment.buffer);
    i32[WORD_VERSION] = VERSION;
    i32[WORD_SLOTS] = slots;
    i32[WORD_NODE] = node;
    i32[WORD_BELL] = text.write(bell, (WORD_BELL + 1) * 4, "utf8");
    Atomics.store(i32, WORD_MAGIC, MAGIC);
    renameSync(join(folder, draft), join(folder, NAME));
    return new Directory(folder, segment);
  }

  /** For those who want to send to the node: undefined if there is none that lives. */
  static open(folder: string, node: number): Directory | undefined {
    const segments = new MappedSegments(folder);
    if (!segments.has(NAME) || !isLocked(nodeLock(folder))) return undefined;
    const directory = new Directory(folder, segments.attach(NAME, segments.bytesOf(NAME)));
    const { i32 } = directory.#views;
    if (i32[WORD_MAGIC] !== MAGIC || i32[WORD_VERSION] !== VERSION) {
      directory.close();
      throw new SituError("SITU_LAYOUT", `${folder} has message rings of another version of Situ`);
    }
    if (i32[WORD_NODE] !== node) {
      const found = i32[WORD_NODE];
      directory.close();
      throw new SituError("SITU_CONFIG", `node ${found} is in ${folder}, in place of ${node}`);
    }
    return directory;
  }

  get slots(): number {
    return this.#views.i32[WORD_SLOTS];
  }

  get bell(): string {
    const { i32, bytes } = this.#views;
    const from = (WORD_BELL + 1) * 4;
    return bytes.toString("utf8", from, from + i32[WORD_BELL]);
  }

  get epoch(): number {
    return this.#load(WORD_EPOCH);
  }

  set epoch(epoch: number) {
    Atomics.store(this.#views.i32, WORD_EPOCH, epoch);
  }

  /** Moves while the node's event loop turns. */
  get heartbeat(): number {
    return this.#load(WORD_HEARTBEAT);
  }

  beat(): void {
    Atomics.add(this.#views.i32, WORD_HEARTBEAT, 1);
  }

  get claims(): number {
    return this.#load(WORD_CLAIMS);
  }

  /** The node is closing, or was closed. */
  get isClosed(): boolean {
    return this.#load(WORD_CLOSED) !== 0;
  }

  markClosed(): void {
    Atomics.store(this.#views.i32, WORD_CLOSED, 1);
  }

  generation(slot: number): number {
    return this.#load(SLOTS_AT + slot * SLOT_WORDS);
  }

  /** For one who has the slot's lock, and has made the rings. */
  claim(slot: number, generation: number): void {
    Atomics.store(this.#views.i32, SLOTS_AT + slot * SLOT_WORDS, generation);
    Atomics.add(this.#views.i32, WORD_CLAIMS, 1);
  }

  /** The node reads these rings no more. */
  giveUp(slot: number, generation: number): void {
    Atomics.store(this.#views.i32, SLOTS_AT + slot * SLOT_WORDS + GIVEN_UP, generation);
  }

  isGivenUp(slot: number, generation: number): boolean {
    return this.#load(SLOTS_AT + slot * SLOT_WORDS + GIVEN_UP) === generation;
  }

  /** Whether the node is alive, and still the same: system calls, so only now and then. */
  isAlive(): boolean {
    try {
      return inodeOf(this.folder) === this.#inode && isLocked(nodeLock(this.folder));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
  }

  close(): void {
    if (this.#views.i32.length === 0) return;
    this.#views.clear();
    this.#segment.release();
  }

  #load(word: number): number {
    return this.#views.i32.length === 0 ? 0 : Atomics.load(this.#views.i32, word);
  }
}

/** The lock of the node itself. Somebody may be looking at it just now, so it is tried for a while. */
export async function lockNode(folder: string): Promise<FileLock> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const lock = FileLock.take(nodeLock(folder));
    if (lock !== undefined) return lock;
    await sleep(ATTEMPT_MS);
  }
  throw new SituError("SITU_IN_USE", `another process serves ${folder}`);
}

/** Of a node that was killed: nobody else removes it. */
function removeBellOfDead(folder: string): void {
  const path = join(folder, NAME);
  if (!existsSync(path)) return;
  const file = readFileSync(path);
  if (file.length < SLOTS_AT * 4 || file.readInt32LE(0) !== MAGIC) return;
  const from = (WORD_BELL + 1) * 4;
  const bell = file.toString("utf8", from, from + file.readInt32LE(WORD_BELL * 4));
  if (isBellPath(bell)) rmSync(bell, { force: true });
}

function inodeOf(folder: string): number {
  return statSync(join(folder, NAME)).ino;
}
