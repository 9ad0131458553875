/**
 * Verbs on the simulated fabric: memory is read line by line, so plain reads are torn; consistent
 * ones are not (FaRM §3.5).
 */

import { afterEach, describe, expect, test } from "vitest";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { HARDWARE, PLAIN } from "../../simulation/fabric/hardware.ts";
import { CompareAndSwap, ReadObject, ReadWords, WriteWords } from "../../src/fabric/verbs.ts";
import {
  HEADER_WORDS,
  INSTALLING,
  LOCK,
  lockWord,
  PREPARED,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { makeTestMemory, type TestMemory } from "../helpers/fabric-memory.ts";

const DATA_WORDS = 60;
/** Not at the beginning of a line. */
const AT = 16 * 100 + 6;

let memories: TestMemory[] = [];
afterEach(() => {
  for (const memory of memories) memory.close();
  memories = [];
});

/** A node whose program writes an object, all words the same, at one instant, again and again. */
function nodeWithWriter(seed: number, lineGapUs: number) {
  const made = makeTestMemory();
  memories.push(made);
  const { memory } = made;
  const { i32 } = memory.region(0);
  const fabric = new SimulatedFabric({ seed, hardware: { ...PLAIN, lineGapUs } });
  const node = fabric.endpoint({ self: 0, configurationId: 1, memory });
  const reader = fabric.endpoint({ self: 1, configurationId: 1 });
  const random = fabric.random("writer");
  const write = (version: number): void => {
    i32[AT + VERSION_LOW] = version;
    i32.fill(version, AT + HEADER_WORDS, AT + HEADER_WORDS + DATA_WORDS);
    if (fabric.nowUs < 2_000) node.clock.after(random.below(3_000) / 1e6, () => write(version + 1));
  };
  write(1);
  return { fabric, reader, i32 };
}

function isTorn(words: Int32Array): boolean {
  return words.some((word) => word !== words[0]);
}

describe("reads while a program writes", () => {
  test("a plain read is torn now and then, between lines only", () => {
    const { fabric, reader } = nodeWithWriter(1, 0.5);
    let torn = 0;
    let reads = 0;
    const read = (): void => {
      if (fabric.nowUs > 2_000) return;
      const verb = new ReadWords(0, AT + HEADER_WORDS, DATA_WORDS, (_, error) => {
        expect(error).toBeUndefined();
        reads++;
        if (isTorn(verb.words)) torn++;
        for (let i = 1; i < DATA_WORDS; i++) {
          const isLineStart = (AT + HEADER_WORDS + i) % 16 === 0;
          if (!isLineStart) expect(verb.words[i]).toBe(verb.words[i - 1]);
        }
        read();
      });
      reader.send(0, verb);
    };
    read();
    fabric.run();
    expect(reads).toBeGreaterThan(50);
    expect(torn).toBeGreaterThan(0);
  });

  test("a consistent read never is, and has the version of its data; it may take longer", () => {
    let slowest = 0;
    for (let seed = 1; seed <= 10; seed++) {
      const { fabric, reader } = nodeWithWriter(seed, 0.5);
      let whole = 0;
      const read = (): void => {
        if (fabric.nowUs > 2_000) return;
        const beganUs = fabric.nowUs;
        const verb = new ReadObject(0, AT, DATA_WORDS, (_, error) => {
          expect(error).toBeUndefined();
          slowest = Math.max(slowest, fabric.nowUs - beganUs);
          if (!verb.isLocked) {
            whole++;
            const data = verb.data?.i32.subarray(0, DATA_WORDS) ?? new Int32Array([1, 2]);
            expect(isTorn(data), `seed ${seed}`).toBe(false);
            expect(data[0], `seed ${seed}`).toBe(verb.versionLow);
          }
          read();
        });
        reader.send(0, verb);
      };
      read();
      fabric.run();
      expect(whole).toBeGreaterThan(30);
    }
    // Four lines, one attempt: at most three gaps. What is slower began again.
    expect(slowest).toBeGreaterThan(2 * PLAIN.wireUs + 4 * 0.5);
  });

  test("where lines are read at one instant nothing is torn", () => {
    const { fabric, reader } = nodeWithWriter(1, 0);
    let torn = 0;
    const read = (): void => {
      if (fabric.nowUs > 500) return;
      const verb = new ReadWords(0, AT + HEADER_WORDS, DATA_WORDS, () => {
        if (isTorn(verb.words)) torn++;
        read();
      });
      reader.send(0, verb);
    };
    read();
    fabric.run();
    expect(torn).toBe(0);
  });
});

describe("an object that is locked", () => {
  function objectWithLock(lock: number) {
    const made = makeTestMemory();
    memories.push(made);
    const { i32 } = made.memory.region(0);
    i32[AT + LOCK] = lock;
    i32[AT + VERSION_LOW] = 5;
    const fabric = new SimulatedFabric({ seed: 1 });
    const node = fabric.endpoint({ self: 0, configurationId: 1, memory: made.memory });
    const reader = fabric.endpoint({ self: -1, configurationId: 1 });
    const verb = new ReadObject(0, AT, DATA_WORDS, () => {});
    reader.send(0, verb);
    return { fabric, node, verb, i32 };
  }

  test("by one who installs is not read; by one who has prepared is", () => {
    const installing = objectWithLock(lockWord(3, INSTALLING));
    installing.fabric.run();
    expect(installing.verb.isLocked).toBe(true);
    expect(installing.verb.data).toBeUndefined();
    const prepared = objectWithLock(lockWord(3, PREPARED));
    prepared.fabric.run();
    expect(prepared.verb.isLocked).toBe(false);
    expect(prepared.verb.versionLow).toBe(5);
  });

  test("is read once it is installed, if that does not take long", () => {
    const { fabric, verb, i32 } = objectWithLock(lockWord(3, INSTALLING));
    fabric.at(PLAIN.wireUs + 0.6, () => {
      i32[AT + LOCK] = 0;
    });
    fabric.run();
    expect(verb.isLocked).toBe(false);
    expect(verb.versionLow).toBe(5);
  });
});

test("a write goes line by line too, in the order of addresses", () => {
  const made = makeTestMemory();
  memories.push(made);
  const { i32 } = made.memory.region(0);
  const fabric = new SimulatedFabric({ seed: 1 });
  fabric.endpoint({ self: 0, configurationId: 1, memory: made.memory });
  const writer = fabric.endpoint({ self: 1, configurationId: 1 });
  const words = new Int32Array(64).fill(9);
  writer.send(0, new WriteWords(0, AT, words, () => {}));
  const seen = new Set<number>();
  while (fabric.step()) {
    const written = i32.subarray(AT, AT + 64).filter((word) => word === 9).length;
    expect(i32.subarray(AT, AT + written).every((word) => word === 9)).toBe(true);
    seen.add(written);
  }
  // 10 words to the end of the first line, then whole lines, then the rest.
  expect([...seen].sort((a, b) => a - b)).toEqual([10, 26, 42, 58, 64]);
});

test("a write that does not fit changes nothing; clients may not write at all", () => {
  const made = makeTestMemory();
  memories.push(made);
  const { i32 } = made.memory.region(0);
  const fabric = new SimulatedFabric({ seed: 1 });
  fabric.endpoint({ self: 0, configurationId: 1, memory: made.memory });
  const errors: (SituError | undefined)[] = [];
  const ended = (_: unknown, error: SituError | undefined): void => void errors.push(error);
  const words = new Int32Array(64).fill(9);
  const node = fabric.endpoint({ self: 1, configurationId: 1 });
  node.send(0, new WriteWords(0, i32.length - 40, words, ended));
  fabric.run();
  const client = fabric.endpoint({ self: -1, configurationId: 1 });
  client.send(0, new WriteWords(0, AT, words, ended));
  client.send(0, new CompareAndSwap(0, AT, 0, 1, ended));
  fabric.run();
  expect(errors.map((error) => error?.code)).toEqual([
    "SITU_PROTOCOL",
    "SITU_PERMISSION",
    "SITU_PERMISSION",
  ]);
  expect(i32.includes(9)).toBe(false);
});

test("every model of hardware serves verbs, in a time above its wire's", () => {
  for (const hardware of Object.values(HARDWARE)) {
    const made = makeTestMemory();
    memories.push(made);
    const fabric = new SimulatedFabric({ seed: 1, hardware });
    fabric.endpoint({ self: 0, configurationId: 1, memory: made.memory });
    const reader = fabric.endpoint({ self: 1, configurationId: 1 });
    let isDone = false;
    reader.send(
      0,
      new ReadWords(0, AT, 96, (_, error) => {
        expect(error).toBeUndefined();
        isDone = true;
      }),
    );
    fabric.run();
    expect(isDone, hardware.name).toBe(true);
    expect(fabric.nowUs).toBeGreaterThanOrEqual(2 * hardware.wireUs);
  }
});
