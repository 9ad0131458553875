// The limits to approach: loops that do the same loads and stores as Situ on memory of the same
// size, without table, journal or API. Each row is one cache line:
//
//   word 0        lock and version: odd while locked
//   words 1..14   56 bytes of data; the balance is words 1 (low) and 2 (high)
//   word 15       unused
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { decodeValue, encodeValue, makeRow, viewValue } from "./rows.ts";

const lineWords = 16;
const dataWords = 14;

export function bareMemory(rows: number): Int32Array {
  const words = new Int32Array(new SharedArrayBuffer(rows * lineWords * 4));
  const scratch = new Int32Array(dataWords);
  const view = viewValue(scratch.buffer, 0);
  for (let id = 0; id < rows; id++) {
    encodeValue(view, makeRow(id));
    words.set(scratch, id * lineWords + 1);
  }
  return words;
}

/** Version, 14 words, version again. */
export function bareRead(words: Int32Array, keys: Int32Array): SyncContestant {
  const read = seqlockRead;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "bare-read",
    run(operations) {
      let cursor = kept;
      let mixed = 0;
      for (let done = 0; done < operations; done++) {
        mixed ^= read(words, keys[cursor] * lineWords);
        cursor = (cursor + 1) & mask;
      }
      kept = cursor;
      return mixed;
    },
  };
}

/** The same, and the row as an object: what is left between this and `get` is the lookup. */
export function bareRow(words: Int32Array, keys: Int32Array): SyncContestant {
  const scratch = new Int32Array(dataWords);
  const view = viewValue(scratch.buffer, 0);
  const decode = decodeValue;
  const seen = sink;
  const mask = keyMask;
  let kept = 0;
  return {
    name: "bare-read into an object",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        const id = keys[cursor];
        cursor = (cursor + 1) & mask;
        seqlockCopy(words, id * lineWords, scratch);
        seen.value = decode(view, id);
        sum += id;
      }
      kept = cursor;
      return sum;
    },
  };
}

/** Two consistent reads, two compare-and-swaps, two writes, two unlocks. */
export function bareTransfer(words: Int32Array, keys: Int32Array): SyncContestant {
  const payer = new Int32Array(dataWords);
  const payee = new Int32Array(dataWords);
  const mask = keyMask;
  let kept = 0;
  return {
    name: "bare-transfer",
    run(operations) {
      let cursor = kept;
      for (let done = 0; done < operations; done++) {
        const from = keys[cursor] * lineWords;
        const to = keys[cursor + 1] * lineWords;
        cursor = (cursor + 2) & mask;
        const fromVersion = seqlockCopy(words, from, payer);
        const toVersion = seqlockCopy(words, to, payee);
        lock(words, from, fromVersion);
        lock(words, to, toVersion);
        addToBalance(payer, -1);
        addToBalance(payee, 1);
        install(words, from, payer, fromVersion);
        install(words, to, payee, toVersion);
      }
      kept = cursor;
      return payer[0];
    },
  };
}

// Unrolled by hand, because V8 does not. Exclusive or instead of a sum, because a sum of words
// leaves 32 bits and becomes a double.
function seqlockRead(words: Int32Array, at: number): number {
  for (;;) {
    const version = Atomics.load(words, at);
    const mixed =
      words[at + 1] ^
      words[at + 2] ^
      words[at + 3] ^
      words[at + 4] ^
      words[at + 5] ^
      words[at + 6] ^
      words[at + 7] ^
      words[at + 8] ^
      words[at + 9] ^
      words[at + 10] ^
      words[at + 11] ^
      words[at + 12] ^
      words[at + 13] ^
      words[at + 14];
    if ((version & 1) === 0 && Atomics.load(words, at) === version) return mixed;
  }
}

function seqlockCopy(words: Int32Array, at: number, into: Int32Array): number {
  for (;;) {
    const version = Atomics.load(words, at);
    copyData(words, at + 1, into, 0);
    if ((version & 1) === 0 && Atomics.load(words, at) === version) return version;
  }
}

function copyData(words: Int32Array, at: number, into: Int32Array, intoAt: number): void {
  into[intoAt] = words[at];
  into[intoAt + 1] = words[at + 1];
  into[intoAt + 2] = words[at + 2];
  into[intoAt + 3] = words[at + 3];
  into[intoAt + 4] = words[at + 4];
  into[intoAt + 5] = words[at + 5];
  into[intoAt + 6] = words[at + 6];
  into[intoAt + 7] = words[at + 7];
  into[intoAt + 8] = words[at + 8];
  into[intoAt + 9] = words[at + 9];
  into[intoAt + 10] = words[at + 10];
  into[intoAt + 11] = words[at + 11];
  into[intoAt + 12] = words[at + 12];
  into[intoAt + 13] = words[at + 13];
}

function lock(words: Int32Array, at: number, version: number): void {
  if (Atomics.compareExchange(words, at, version, version | 1) !== version) {
    throw new Error("a bare loop has no rivals");
  }
}

function install(words: Int32Array, at: number, from: Int32Array, version: number): void {
  copyData(from, 0, words, at + 1);
  Atomics.store(words, at, (version + 2) | 0);
}

/** 64 bits in two words, with the carry by hand. */
function addToBalance(row: Int32Array, amount: 1 | -1): void {
  const low = row[0];
  row[0] = low + amount;
  if (amount === 1 ? low === -1 : low === 0) row[1] += amount;
}
