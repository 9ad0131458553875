/**
 * A running hash over all that happens on a simulated fabric: when, what, from whom, to whom, and
 * the words of the frame. Two runs are the same, byte for byte, if their hashes are. Two lanes of
 * FNV-1a over words, which differ in where they begin and in their prime.
 */

export type Happening =
  | "sent"
  | "dropped"
  | "duplicated"
  | "delivered"
  | "served"
  | "replied"
  | "lost"
  | "stopped"
  | "resumed"
  | "crashed"
  | "returned"
  | "note";

const NUMBER_OF: Readonly<Record<Happening, number>> = {
  sent: 1,
  dropped: 2,
  duplicated: 3,
  delivered: 4,
  served: 5,
  replied: 6,
  lost: 7,
  stopped: 8,
  resumed: 9,
  note: 10,
  crashed: 11,
  returned: 12,
};

/** One line of a trace; `hash` is that of the frame alone. */
export interface TraceLine {
  readonly atUs: number;
  readonly what: Happening;
  readonly from: number;
  readonly to: number;
  readonly kind: number;
  readonly id: number;
  readonly words: number;
  readonly hash: number;
}

/** Words [at, end) of a frame, to be read during the call only. */
export interface TraceFrame {
  readonly i32: Int32Array;
  readonly at: number;
  readonly end: number;
}

export type TraceHook = (line: TraceLine, frame?: TraceFrame) => void;

const PRIME = 0x01000193;
const OTHER_PRIME = 0x01000055;

export class Trace {
  #first = 0x811c9dc5 | 0;
  #second = 0x050c5d1f | 0;
  readonly #hook: TraceHook | undefined;
  readonly #time = new Float64Array(1);
  readonly #timeWords = new Int32Array(this.#time.buffer);

  constructor(hook: TraceHook | undefined) {
    this.#hook = hook;
  }

  /** Words [at, end) of a frame are what it is about. */
  frame(
    what: Happening,
    atUs: number,
    from: number,
    to: number,
    i32: Int32Array,
    at: number,
    end: number,
  ): void {
    this.#begin(what, atUs, from, to);
    let hash = 0x811c9dc5 | 0;
    for (let i = at; i < end; i++) hash = Math.imul(hash ^ i32[i], PRIME);
    this.#word(end - at);
    this.#word(hash);
    if (this.#hook === undefined) return;
    const words = end - at;
    const line = { atUs, what, from, to, kind: i32[at + 1], id: i32[at + 2], words, hash };
    this.#hook(line, { i32, at, end });
  }

  /** Something without a frame. */
  note(what: Happening, atUs: number, from: number, value: number): void {
    this.#begin(what, atUs, from, 0);
    this.#word(value);
    this.#hook?.({ atUs, what, from, to: 0, kind: 0, id: 0, words: 0, hash: value });
  }

  /** Sixteen hexadecimal digits. */
  get hash(): string {
    const hex = (word: number): string => (word >>> 0).toString(16).padStart(8, "0");
    return hex(this.#first) + hex(this.#second);
  }

  #begin(what: Happening, atUs: number, from: number, to: number): void {
    this.#time[0] = atUs;
    this.#word(this.#timeWords[0]);
    this.#word(this.#timeWords[1]);
    this.#word(NUMBER_OF[what]);
    this.#word(from);
    this.#word(to);
  }

  #word(word: number): void {
    this.#first = Math.imul(this.#first ^ word, PRIME);
    this.#second = Math.imul((this.#second << 5) ^ (this.#second >>> 27) ^ word, OTHER_PRIME);
  }
}

/** For those who put what they see into a trace. */
export function hashOfText(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME);
  return hash;
}
