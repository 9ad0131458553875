/** Rings between threads: frames both ways, in order, without a busy loop. */

import { afterEach, describe, expect, test } from "vitest";
import { type FrameHandler, makeChannel, RingChannel } from "../../src/fabric/rings/channel.ts";
import { sleep, turn } from "../../src/runtime/clock.ts";
import { MAX_FRAME_BYTES, MAX_UNREAD_BYTES } from "../../src/runtime/limits.ts";
import { eventually } from "../helpers/fabric-tcp.ts";

const SMALL_RING = 4096;
let open: RingChannel[] = [];

afterEach(() => {
  for (const channel of open) channel.close();
  open = [];
});

function pair(bytes: number | undefined, left: FrameHandler, right: FrameHandler) {
  const [a, b] = makeChannel(bytes);
  const channels = [new RingChannel(a, left), new RingChannel(b, right)] as const;
  open.push(...channels);
  return channels;
}

describe("a channel", () => {
  test("carries frames both ways, in order", async () => {
    const got: number[] = [];
    const back: number[] = [];
    const [here, there] = pair(
      undefined,
      (kind, id, body) => back.push(kind, id, body.word()),
      (kind, id, body) => {
        got.push(id);
        const value = body.word();
        there.send(kind + 1, id, (out) => out.word(value * 2));
      },
    );
    for (let i = 0; i < 1_000; i++) here.send(20, i, (out) => out.word(i));
    await eventually(() => back.length === 3_000);
    expect(got).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    expect(back.slice(-3)).toEqual([21, 999, 1998]);
  });

  test("wakes one who sleeps, again and again", async () => {
    let pongs = 0;
    const [here, there] = pair(
      SMALL_RING,
      () => pongs++,
      (kind, id) => there.send(kind, id, () => {}),
    );
    for (let i = 1; i <= 20; i++) {
      // Long enough for both to have gone to sleep, most of the time.
      await sleep(i % 4);
      here.send(20, i, () => {});
      await eventually(() => pongs === i);
    }
  });

  test("more than the ring holds waits, and arrives in order", async () => {
    const got: number[] = [];
    const [here] = pair(
      SMALL_RING,
      () => {},
      (_, id, body) => {
        expect(body.left).toBe(100);
        got.push(id);
      },
    );
    for (let i = 0; i < 5_000; i++) {
      here.send(20, i, (out) => {
        for (let word = 0; word < 100; word++) out.word(i);
      });
    }
    expect(here.unsentBytes).toBeGreaterThan(SMALL_RING);
    await eventually(() => got.length === 5_000);
    expect(got).toEqual(Array.from({ length: 5_000 }, (_, i) => i));
    expect(here.unsentBytes).toBe(0);
  });

  test("one who does not read: an error, not ever more memory", async () => {
    const [a, b] = makeChannel(SMALL_RING);
    const here = new RingChannel(a, () => {});
    open.push(here);
    const big = new Int32Array(256);
    const fill = (): void => {
      for (;;) here.send(20, 1, (out) => out.words(big, 0, big.length));
    };
    expect(fill).toThrow(expect.objectContaining({ code: "SITU_OVERLOADED" }));
    await turn();
    expect(here.unsentBytes).toBeGreaterThan(MAX_UNREAD_BYTES - SMALL_RING);
    expect(here.unsentBytes).toBeLessThan(MAX_UNREAD_BYTES + 8_192);
    b.port.close();
  });

  test("frames up to the limit; a longer one is refused and does no harm", async () => {
    const lengths: number[] = [];
    const [here] = pair(
      undefined,
      () => {},
      (_kind, _id, body) => lengths.push(body.left),
    );
    const words = MAX_FRAME_BYTES / 4 - 4;
    const long = new Int32Array(words + 2);
    for (let i = 0; i < 3; i++) here.send(20, i, (out) => out.words(long, 0, words));
    const send = (): void => here.send(20, 9, (out) => out.words(long, 0, words + 2));
    expect(send).toThrow(expect.objectContaining({ code: "SITU_TOO_LARGE" }));
    here.send(20, 10, (out) => out.word(1));
    await eventually(() => lengths.length === 4);
    expect(lengths).toEqual([words, words, words, 2]);
  });
});
