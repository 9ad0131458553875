/**
 * FaRM (Dragojević et al., NSDI 2014), §3.1: message rings, statement by statement. Quotations are the
 * paper's. Deviations: the memory of both ends is the same here, so nothing is written by RDMA; the
 * receiver also says how far it is when the sender waits for it (it may be idle with less than half
 * the ring processed); one who finds nothing sleeps, instead of polling for ever.
 */

import { describe, expect, test } from "vitest";
import {
  RING_CONTROL_WORDS,
  RingReceiver,
  RingSender,
  ringWords,
  TRAILER_WORDS,
} from "../../src/fabric/rings/ring.ts";
import { MAX_FRAME_WORDS } from "../../src/fabric/wire.ts";
import { Views } from "../../src/memory/views.ts";
import { MESSAGE_RING_BYTES } from "../../src/runtime/limits.ts";
import { check, fc } from "../helpers/property.ts";

const RING_BYTES = 1024;
const SIZE = RING_BYTES / 4;

class TestRing {
  readonly views: Views;
  readonly sender: RingSender;
  readonly receiver: RingReceiver;

  constructor(bytes = RING_BYTES) {
    this.views = new Views(new SharedArrayBuffer(ringWords(bytes) * 4));
    this.sender = new RingSender(this.views.i32, 0, ringWords(bytes));
    this.receiver = new RingReceiver(this.views, 0, ringWords(bytes));
  }

  /** The ring alone, without its control. */
  get ring(): Int32Array {
    return this.views.i32.subarray(RING_CONTROL_WORDS);
  }

  /** A frame of so many words, all of them `value` but the length. */
  send(words: number, value: number): boolean {
    const frame = new Int32Array(words).fill(value);
    frame[0] = words;
    return this.sender.tryWrite(frame, 0, words);
  }

  /** The next message, or undefined. */
  receive(): { words: number; value: number } | undefined {
    if (!this.receiver.next()) return undefined;
    const { from, to, views } = this.receiver;
    const frame = views.i32.slice(from, to);
    this.receiver.done();
    expect(frame[0]).toBe(frame.length);
    expect(frame.subarray(1).every((word) => word === frame[1])).toBe(true);
    return { words: frame.length, value: frame[1] };
  }
}

describe("§3.1, circular buffer", () => {
  test("“any non-zero value L in the head indicates a new message, of length L”", () => {
    const { ring, receiver, sender } = new TestRing();
    expect(receiver.next()).toBe(false);
    sender.tryWrite(new Int32Array([6, 1, 2, 3, 4, 5]), 0, 6);
    expect(ring[0]).toBe(6);
    expect(receiver.next()).toBe(true);
    expect(receiver.to - receiver.from).toBe(6);
  });

  test("“then polls the message trailer; when it becomes non-zero, the entire message” is there", () => {
    const { ring, receiver, sender } = new TestRing();
    sender.tryWrite(new Int32Array([6, 1, 2, 3, 4, 5]), 0, 6);
    const trailer = ring[6];
    expect(trailer).not.toBe(0);
    ring[6] = 0;
    expect(receiver.next()).toBe(false);
    ring[6] = trailer;
    expect(receiver.next()).toBe(true);
  });

  test("“the unused portions of the buffer are kept zeroed”", () => {
    const made = new TestRing();
    for (let i = 0; i < 500; i++) {
      expect(made.send(4 + 2 * (i % 40), i + 1)).toBe(true);
      made.receive();
      expect(made.ring.every((word) => word === 0)).toBe(true);
    }
  });

  test("“never writes messages beyond” the receiver's head", () => {
    const made = new TestRing();
    let sent = 0;
    while (made.send(14, sent + 1)) sent++;
    expect(sent).toBe(SIZE / (14 + TRAILER_WORDS));
    expect(made.send(4, 99)).toBe(false);
    for (let i = 0; i < sent; i++) expect(made.receive()).toEqual({ words: 14, value: i + 1 });
    expect(made.receive()).toBeUndefined();
  });

  test("“only updates the sender's copy after processing at least half of the buffer”", () => {
    const made = new TestRing();
    const each = 14 + TRAILER_WORDS;
    for (let i = 0; i < SIZE / each; i++) made.send(14, 1);
    const head = (): number => made.views.i32[0];
    for (let processed = each; processed < SIZE / 2; processed += each) {
      made.receive();
      expect(head()).toBe(0);
      expect(made.send(4, 1)).toBe(false);
    }
    made.receive();
    expect(head()).toBe(SIZE / 2);
    expect(made.send(4, 1)).toBe(true);
  });

  test("a sender that waits is told at once (deviation)", () => {
    const made = new TestRing();
    while (made.send(14, 1));
    made.receive();
    expect(made.send(14, 2)).toBe(false);
    expect(made.receiver.returnRoom()).toBe(false);
    made.sender.askForRoom();
    expect(made.receiver.returnRoom()).toBe(true);
    expect(made.receiver.returnRoom()).toBe(false);
    expect(made.send(14, 2)).toBe(true);
  });

  test("“a contiguous ring buffer”, with “variable-sized messages”: any sizes, in order", () => {
    const step = fc.record({ words: fc.integer({ min: 2, max: 60 }), reads: fc.nat(3) });
    check(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const made = new TestRing();
        const expected: { words: number; value: number }[] = [];
        let value = 1;
        for (const { words, reads } of steps) {
          const frame = { words: 2 * words, value };
          if (made.send(frame.words, value)) {
            expected.push(frame);
            value++;
          } else made.sender.askForRoom();
          for (let i = 0; i < reads; i++) {
            const got = made.receive();
            if (got === undefined) expect(expected).toEqual([]);
            else expect(got).toEqual(expected.shift());
          }
          made.receiver.returnRoom();
        }
        for (const each of expected) expect(made.receive()).toEqual(each);
        expect(made.ring.every((word) => word === 0)).toBe(true);
        // Whatever lies behind, the longest message fits again.
        made.sender.askForRoom();
        made.receiver.returnRoom();
        expect(made.send(SIZE / 2 - TRAILER_WORDS, 7)).toBe(true);
      }),
      300,
    );
  });

  test("counts go on where 32 bits end", () => {
    const made = new TestRing();
    // As if 2^31 words had passed: both ends count modulo 2^32.
    const far = 0x7fffffff - 100;
    for (const end of [made.sender, made.receiver]) Object.assign(end, { count: far & ~1 });
    made.views.i32[0] = far & ~1;
    for (let i = 0; i < 100; i++) {
      made.sender.askForRoom();
      made.receiver.returnRoom();
      expect(made.send(30, i + 1)).toBe(true);
      expect(made.receive()).toEqual({ words: 30, value: i + 1 });
    }
  });

  test("the longest frame fits a ring that is empty, wherever its ends are", () => {
    const made = new TestRing(MESSAGE_RING_BYTES);
    for (const words of [MAX_FRAME_WORDS, 1_000, MAX_FRAME_WORDS, MAX_FRAME_WORDS - 2]) {
      made.sender.askForRoom();
      made.receiver.returnRoom();
      expect(made.send(words, words)).toBe(true);
      expect(made.receive()).toEqual({ words, value: words });
    }
  });
});

describe("what no sender writes", () => {
  test("is refused, before anything beyond the ring is read", () => {
    for (const length of [1, 2, 3, 5, -2, SIZE, SIZE + 2, MAX_FRAME_WORDS + 2, 0x7ffffffe]) {
      const { ring, receiver } = new TestRing();
      ring[0] = length;
      expect(() => receiver.next()).toThrow(expect.objectContaining({ code: "SITU_PROTOCOL" }));
    }
    const { ring, receiver } = new TestRing();
    ring[0] = 4;
    ring[4] = 12345;
    expect(() => receiver.next()).toThrow(expect.objectContaining({ code: "SITU_PROTOCOL" }));
  });

  test("a sender that died in a message: the receiver waits, and gets what was before it", () => {
    const made = new TestRing();
    made.send(8, 1);
    // The length and half of the words, without a trailer.
    made.ring.fill(9, 10, 16);
    made.ring[10] = 20;
    expect(made.receive()).toEqual({ words: 8, value: 1 });
    for (let i = 0; i < 10; i++) expect(made.receive()).toBeUndefined();
  });
});
