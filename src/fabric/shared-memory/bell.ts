/**
 * How processes wake each other. Each thread that has ends of this fabric has one bell: a small file
 * that the others map. Who has written to a ring of the thread rings its bell; that is one atomic
 * addition, and a system call only if the thread sleeps.
 *
 *     RINGS    counts; the thread sleeps on this word
 *     SLEEPS   whether it does
 *
 * One bell a thread, not one an endpoint: a sleep that lets the event loop turn takes a thread of
 * Node's pool, which has four.
 */

import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { MappedSegments } from "../../memory/mapped-segments.ts";
import { Parking } from "../../memory/parking.ts";
import type { Segment } from "../../memory/segments.ts";
import { SituError } from "../../runtime/errors.ts";
import { RING_SLEEP_MS } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { type Polled, Poller, type Sleeper } from "./poller.ts";

const BELL_BYTES = 4096;
const RINGS = 0;
const SLEEPS = 16;

const NOTHING = new Int32Array(0);
const PREFIX = "situ-bell-";

/** What others say is the path of their bell is checked before anything is done with it. */
export function isBellPath(path: string): boolean {
  return basename(path).startsWith(PREFIX);
}

/** The bell of another thread, or process. */
export class Bell {
  readonly path: string;
  #i32: Int32Array;
  readonly #segment: Segment;
  readonly #parking: Parking;

  constructor(path: string, segment: Segment) {
    this.path = path;
    this.#segment = segment;
    this.#i32 = new Int32Array(segment.buffer);
    this.#parking = new Parking(this.#i32, segment.address);
  }

  static open(path: string): Bell {
    if (!isBellPath(path)) throw new SituError("SITU_PROTOCOL", `${path} is no bell`);
    return new Bell(path, new MappedSegments(dirname(path)).attach(basename(path), BELL_BYTES));
  }

  ring(): void {
    if (this.#i32.length === 0) return;
    Atomics.add(this.#i32, RINGS, 1);
    if (Atomics.load(this.#i32, SLEEPS) !== 0) this.#parking.wake(RINGS);
  }

  close(): void {
    if (this.#i32.length === 0) return;
    this.#i32 = NOTHING;
    this.#segment.release();
  }
}

/** The bell of this thread, and who is looked after when it rings. */
export class OwnBell {
  readonly path: string;
  #i32: Int32Array;
  readonly #segment: Segment;
  readonly #parking: Parking;
  readonly #poller: Poller;
  #isAsleep = false;
  #rang = 0;
  readonly #removeFile = (): void => rmSync(this.path, { force: true });

  private constructor() {
    this.path = join(tmpdir(), `${PREFIX}${uniqueId()}`);
    const segments = new MappedSegments(dirname(this.path));
    this.#segment = segments.create(basename(this.path), BELL_BYTES);
    this.#i32 = new Int32Array(this.#segment.buffer);
    this.#parking = new Parking(this.#i32, this.#segment.address);
    this.#poller = new Poller(this.#sleeper());
    process.once("exit", this.#removeFile);
  }

  static get(): OwnBell {
    own ??= new OwnBell();
    return own;
  }

  add(polled: Polled): void {
    this.#poller.add(polled);
  }

  remove(polled: Polled): void {
    this.#poller.remove(polled);
    this.ring();
    this.releaseIfIdle();
  }

  /** Where nobody is any more: the next one makes another. */
  releaseIfIdle(): void {
    if (!this.#poller.isEmpty || own !== this) return;
    own = undefined;
    process.off("exit", this.#removeFile);
    this.#removeFile();
    // One who sleeps wakes up first.
    if (!this.#isAsleep) this.#release();
  }

  ring(): void {
    if (this.#i32.length === 0) return;
    Atomics.add(this.#i32, RINGS, 1);
    if (Atomics.load(this.#i32, SLEEPS) !== 0) this.#parking.wake(RINGS);
  }

  #sleeper(): Sleeper {
    return {
      prepare: () => {
        Atomics.store(this.#i32, SLEEPS, 1);
        this.#rang = Atomics.load(this.#i32, RINGS);
      },
      sleep: (wakened) => void this.#sleep(wakened),
      cancel: () => {
        if (this.#i32.length > 0) Atomics.store(this.#i32, SLEEPS, 0);
      },
    };
  }

  #release(): void {
    if (this.#i32.length === 0) return;
    this.#i32 = NOTHING;
    this.#segment.release();
  }

  async #sleep(wakened: () => void): Promise<void> {
    this.#isAsleep = true;
    await this.#parking.sleep(RINGS, this.#rang, RING_SLEEP_MS);
    this.#isAsleep = false;
    if (own !== this) this.#release();
    wakened();
  }
}

let own: OwnBell | undefined;
