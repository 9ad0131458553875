import { describe, expect, test } from "vitest";
import { Packer, unpack } from "../../src/log/segments/packing.ts";
import { Random } from "../../src/runtime/random.ts";

const NOTHING = new Int32Array(0);

/** Words of all lengths, small ones more often. */
function wordsOf(random: Random, count: number): Int32Array {
  return Int32Array.from({ length: count }, () => random.next() >>> random.below(33));
}

function bytesOf(words: Int32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

describe("packed payloads", () => {
  test("there and back, in any number of parts", () => {
    const random = new Random(3);
    const packer = new Packer();
    const into = new Int32Array(300);
    for (let round = 0; round < 500; round++) {
      const parts = Array.from({ length: random.below(5) }, () =>
        wordsOf(random, random.below(200)),
      );
      const all = Int32Array.from(parts.flatMap((part) => [...part]));
      const packed = packer.pack(parts.map(bytesOf));
      if (packed === undefined) continue;
      expect(packed.length % 4).toBe(0);
      expect(packed.length).toBeLessThan(all.byteLength);
      expect(unpack(packed.slice(), round % 2 === 0 ? into : NOTHING)).toEqual(all);
    }
  });

  test("words at the edges of their lengths", () => {
    const edges = [
      0,
      1,
      255,
      256,
      65_535,
      65_536,
      2 ** 24 - 1,
      2 ** 24,
      -1,
      -(2 ** 31),
      2 ** 31 - 1,
    ];
    const words = Int32Array.from([...edges, ...new Array<number>(40).fill(0)]);
    expect(unpack(new Packer().pack([bytesOf(words)])!, NOTHING)).toEqual(words);
  });

  test("what would not get shorter is left as it is", () => {
    const words = Int32Array.from({ length: 100 }, (_, i) => (i + 1) * 0x1234567);
    expect(new Packer().pack([bytesOf(words)])).toBeUndefined();
    expect(new Packer().pack([])).toBeUndefined();
  });

  test("what is cut off, or has an impossible number of words, is refused", () => {
    const packed = new Packer().pack([bytesOf(wordsOf(new Random(1), 400).fill(7, 0, 300))])!;
    for (let length = 0; length < packed.length - 4; length += 4) {
      expect(unpack(packed.slice(0, length), NOTHING), `${length} bytes`).toBeUndefined();
    }
    const wrong = packed.slice();
    new DataView(wrong.buffer).setUint32(0, 0xffff_ffff, true);
    expect(unpack(wrong, NOTHING)).toBeUndefined();
  });
});
