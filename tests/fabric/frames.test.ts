import { describe, expect, test } from "vitest";
import {
  FrameDecoder,
  FrameWriter,
  readError,
  Scratch,
  writeError,
} from "../../src/fabric/frames.ts";
import { FRAME_ID, MAX_FRAME_WORDS, Reader, Writer } from "../../src/fabric/wire.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { check, fc } from "../helpers/property.ts";

/** The ids and lengths of the frames that a decoder finds, chunk by chunk. */
function decode(decoder: FrameDecoder, chunks: Iterable<Uint8Array>): [number, number][] {
  const found: [number, number][] = [];
  for (const chunk of chunks) {
    decoder.push(chunk);
    while (decoder.next()) {
      found.push([decoder.views.i32[decoder.from + FRAME_ID], decoder.to - decoder.from]);
      expect(decoder.from % 2).toBe(0);
    }
    decoder.keepRest();
  }
  return found;
}

function codeOf(run: () => void): string {
  try {
    run();
  } catch (error) {
    if (error instanceof SituError) return error.code;
    throw error;
  }
  return "none";
}

/** Frames with bodies of so many words, each filled with its id. */
function stream(bodies: readonly number[]): Buffer {
  const frames = new FrameWriter();
  for (const [id, words] of bodies.entries()) {
    const out = frames.begin(16, id, 1);
    for (let i = 0; i < words; i++) out.word(id);
    frames.end();
  }
  return Buffer.from(frames.out.views.bytes.subarray(0, frames.bytes));
}

const lengthOf = (words: number): number => (4 + words + 1) & ~1;

describe("frames", () => {
  test("come out as they went in, however the bytes are cut", () => {
    const bodies = fc.array(fc.oneof(fc.nat(20), fc.nat(5_000)), { maxLength: 30 });
    const cuts = fc.infiniteStream(fc.oneof(fc.nat(9), fc.nat(100), fc.nat(70_000)));
    check(
      fc.property(bodies, cuts, fc.boolean(), (lengths, cut, shared) => {
        const bytes = stream(lengths);
        const scratch = new Scratch();
        const decoder = new FrameDecoder(scratch);
        const other = new FrameDecoder(scratch);
        const found: [number, number][] = [];
        for (let at = 0; at < bytes.length; ) {
          const size = 1 + (cut.next().value ?? 0);
          found.push(...decode(decoder, [bytes.subarray(at, at + size)]));
          // Another connection uses the same scratch memory in between.
          if (shared) decode(other, [stream([3])]);
          at += size;
        }
        expect(found).toEqual(lengths.map((words, id) => [id, lengthOf(words)]));
        expect(decoder.left).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  test("bodies are whole, also those that came in many pieces", () => {
    const bytes = stream([3, 100_000, 5]);
    const decoder = new FrameDecoder(new Scratch());
    const sums: number[] = [];
    for (let at = 0; at < bytes.length; at += 1_001) {
      decoder.push(bytes.subarray(at, at + 1_001));
      while (decoder.next()) {
        const body = decoder.views.i32.subarray(decoder.from + 4, decoder.to);
        sums.push(body.reduce((sum, word) => sum + word, 0));
      }
      decoder.keepRest();
    }
    expect(sums).toEqual([0, 100_000, 10]);
  });

  test("can be left for later in the middle of a chunk", () => {
    const scratch = new Scratch();
    const decoder = new FrameDecoder(scratch);
    decoder.push(stream([1, 2, 3]));
    expect(decoder.next()).toBe(true);
    decoder.keepRest();
    decode(new FrameDecoder(scratch), [Buffer.alloc(1_000, stream([0]))]);
    expect(decode(decoder, [stream([9])])).toEqual([
      [1, lengthOf(2)],
      [2, lengthOf(3)],
      [0, lengthOf(9)],
    ]);
  });

  test.each([
    ["zero", 0],
    ["no room for a header", 2],
    ["odd", 7],
    ["negative", -8],
    ["too long", MAX_FRAME_WORDS + 2],
    ["far too long", 0x7ffffffe],
  ])("with a length that is %s are refused at their first word", (_what, words) => {
    const decoder = new FrameDecoder(new Scratch());
    decoder.push(Buffer.from(Int32Array.of(words).buffer));
    expect(codeOf(() => decoder.next())).toBe("SITU_PROTOCOL");
  });

  test("are short before the handshake is over", () => {
    const decoder = new FrameDecoder(new Scratch(), 64);
    expect(decode(decoder, [stream([60])])).toEqual([[0, 64]]);
    expect(codeOf(() => decode(decoder, [stream([61])]))).toBe("SITU_PROTOCOL");
  });

  test("garbage is refused, or makes frames within the limits; memory stays bounded", () => {
    const chunks = fc.array(
      fc.oneof(
        fc.uint8Array({ maxLength: 300 }),
        fc.array(fc.nat(40), { maxLength: 5 }).map((bodies) => new Uint8Array(stream(bodies))),
      ),
      { maxLength: 20 },
    );
    check(
      fc.property(chunks, (given) => {
        const decoder = new FrameDecoder(new Scratch());
        const code = codeOf(() => {
          for (const [, words] of decode(decoder, given)) {
            expect(words % 2 === 0 && words >= 4 && words <= MAX_FRAME_WORDS).toBe(true);
          }
        });
        expect(["none", "SITU_PROTOCOL"]).toContain(code);
        const bytes = given.reduce((sum, chunk) => sum + chunk.length, 0);
        expect(decoder.left).toBeLessThanOrEqual(bytes);
        expect(decoder.views.u8.length).toBeLessThanOrEqual(2 * (64 * 1024 + bytes));
      }),
      { numRuns: 500 },
    );
  });

  test("long ones that are not complete share a limit", () => {
    const scratch = new Scratch(300_000);
    const halves = Array.from({ length: 4 }, () => stream([50_000]).subarray(0, 100_000));
    const decoders = halves.map(() => new FrameDecoder(scratch));
    const codes = decoders.map((decoder, i) => codeOf(() => decode(decoder, [halves[i]])));
    expect(codes).toEqual(["none", "none", "none", "SITU_OVERLOADED"]);
    decoders[0].release();
    expect(codeOf(() => decode(new FrameDecoder(scratch), [halves[0]]))).toBe("none");
    // Short ones are not concerned.
    expect(codeOf(() => decode(new FrameDecoder(scratch), [halves[0].subarray(0, 900)]))).toBe(
      "none",
    );
    for (const decoder of decoders) decoder.release();
    expect(scratch.heldBytes).toBeLessThan(110_000);
  });

  test("that are too long are taken back", () => {
    const frames = new FrameWriter();
    frames.begin(16, 0, 1).word(1);
    frames.end();
    const before = frames.bytes;
    const grow = (): void => {
      const out = frames.begin(16, 1, 1);
      for (let i = 0; i <= MAX_FRAME_WORDS; i++) out.word(i);
      frames.end();
    };
    expect(codeOf(grow)).toBe("SITU_TOO_LARGE");
    frames.takeBack();
    expect(frames.bytes).toBe(before);
    const full = (): void => {
      frames.begin(16, 2, 1).bytes(new Uint8Array(MAX_FRAME_WORDS * 4));
      frames.end();
    };
    expect(codeOf(full)).toBe("SITU_TOO_LARGE");
    frames.takeBack();
    frames.begin(16, 3, 1);
    frames.end();
    const bytes = frames.out.views.bytes.subarray(0, frames.bytes);
    expect(decode(new FrameDecoder(new Scratch()), [bytes])).toEqual([
      [0, 6],
      [3, 4],
    ]);
  });
});

test("a text is as long as its bytes, not as the longest with so many characters", () => {
  const frames = new FrameWriter();
  const out = frames.begin(16, 0, 1);
  for (let i = 0; i < 3; i++) out.text("x".repeat(2 ** 20));
  frames.end();
  expect(frames.bytes).toBe(16 + 3 * (4 + 2 ** 20) + 4);
});

describe("values in frames", () => {
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(undefined, null, true, false, -0, Number.NaN, 2 ** 53, -(2 ** 31)),
      fc.integer(),
      fc.double(),
      fc.bigInt(-(2n ** 63n), 2n ** 64n - 1n),
      fc.string({ unit: "grapheme" }),
      fc.uint8Array(),
      fc.array(tie("any"), { maxLength: 5 }),
      fc.dictionary(fc.oneof(fc.string(), fc.constant("__proto__")), tie("any"), {
        maxKeys: 5,
        noNullPrototype: true,
      }),
    ),
  })).any;

  test("come out as they went in, wherever in a frame they begin", () => {
    check(
      fc.property(value, fc.nat(3), (given, before) => {
        const out = new Writer();
        for (let i = 0; i < before; i++) out.word(i);
        out.value(given);
        out.value("end");
        const reader = new Reader(out.views).reset(out.views, before, out.at);
        expect(reader.value()).toEqual(given);
        expect(reader.value()).toBe("end");
        expect(reader.left).toBe(0);
      }),
      { numRuns: 500 },
    );
  });

  test("garbage is a SituError or a value, never anything else, and reads nothing beyond", () => {
    const words = fc.array(fc.oneof(fc.nat(12), fc.integer()), { maxLength: 200 });
    check(
      fc.property(words, (given) => {
        const out = new Writer();
        for (const word of given) out.word(word);
        const reader = new Reader(out.views).reset(out.views, 0, given.length);
        const code = codeOf(() => {
          while (reader.left > 0) reader.value();
        });
        expect(["none", "SITU_PROTOCOL"]).toContain(code);
        expect(reader.at).toBeLessThanOrEqual(reader.end + 1);
      }),
      { numRuns: 2_000 },
    );
  });

  test("flipped bits in real values likewise", () => {
    check(
      fc.property(value, fc.array(fc.nat(), { minLength: 1, maxLength: 4 }), (given, flips) => {
        const out = new Writer();
        out.value(given);
        const { at } = out;
        for (const flip of flips) out.views.u8[flip % (at * 4)] ^= 1 << (flip % 8);
        const reader = new Reader(out.views).reset(out.views, 0, at);
        expect(["none", "SITU_PROTOCOL"]).toContain(codeOf(() => reader.value()));
      }),
      { numRuns: 1_000 },
    );
  });

  test("nested too deep, or claiming more than there is, are refused before memory is taken", () => {
    const deep = new Writer();
    for (let i = 0; i < 1_000; i++) {
      deep.word(9);
      deep.word(1);
    }
    const claims = new Writer();
    claims.word(9);
    claims.word(0x7fffffff);
    const text = new Writer();
    text.word(7);
    text.word(0x7fffffff);
    for (const { views, at } of [deep, claims, text]) {
      expect(codeOf(() => new Reader(views).reset(views, 0, at).value())).toBe("SITU_PROTOCOL");
    }
    let nested: unknown = 1;
    for (let i = 0; i < 100; i++) nested = [nested];
    expect(codeOf(() => new Writer().value(nested))).toBe("SITU_TOO_LARGE");
  });
});

describe("errors in frames", () => {
  test("keep their code and message", () => {
    const out = new Writer();
    writeError(out, new SituError("SITU_CONFLICT", "zwölf"));
    const error = readError(new Reader(out.views).reset(out.views, 0, out.at));
    expect([error.code, error.message, error.retryable]).toEqual(["SITU_CONFLICT", "zwölf", true]);
  });

  test("garbage is a protocol error", () => {
    check(
      fc.property(fc.array(fc.oneof(fc.nat(9), fc.integer()), { maxLength: 30 }), (words) => {
        const out = new Writer();
        for (const word of words) out.word(word);
        const error = readError(new Reader(out.views).reset(out.views, 0, out.at));
        expect(error.code).toBe("SITU_PROTOCOL");
      }),
    );
  });
});
