/** The part of the fabrics' contract that is about verbs (src/fabric/verbs.ts). */

import { afterEach, describe, expect, test } from "vitest";
import type { Endpoint } from "../../src/fabric/fabric.ts";
import {
  CompareAndSwap,
  FetchAndAdd,
  ReadObject,
  ReadWords,
  type Verb,
  WriteWords,
} from "../../src/fabric/verbs.ts";
import { HEADER_WORDS, INSTALLING, lockWord, PREPARED } from "../../src/memory/object.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { MAX_VERB_WORDS } from "../../src/runtime/limits.ts";
import type { FabricMaker, FabricPlan, TestFabric } from "../helpers/fabric-maker.ts";
import { makeTestMemory, type TestMemory } from "../helpers/fabric-memory.ts";
import { startObjectWriter } from "../helpers/fabric-writer.ts";

type Ended = (verb: Verb, error: SituError | undefined) => void;

export function testVerbContract(
  maker: FabricMaker,
  make: (plan: FabricPlan) => Promise<TestFabric>,
): void {
  describe("verbs", () => {
    let memory: TestMemory | undefined;

    afterEach(() => {
      memory?.close();
      memory = undefined;
    });

    /** Node 0 has memory; node 1 and a client reach it. */
    const setUp = async () => {
      memory = (maker.makeMemory ?? makeTestMemory)();
      const made = await make({ nodes: [{ memory: memory.memory }, {}] });
      const from = async <V extends Verb>(
        endpoint: Endpoint,
        makeVerb: (ended: Ended) => V,
      ): Promise<{ verb: V; error: SituError | undefined }> => {
        const ends: (SituError | undefined)[] = [];
        const verb = makeVerb((_verb, error) => ends.push(error));
        endpoint.send(0, verb);
        await made.until(() => ends.length > 0);
        expect(ends.length).toBe(1);
        return { verb, error: ends[0] };
      };
      const { i32 } = memory.memory.region(0);
      return { made, from, i32, memory, node: made.nodes[1], client: made.clients[0] };
    };

    test("read", async () => {
      const { from, i32, client, node } = await setUp();
      for (let i = 0; i < 100; i++) i32[1000 + i] = i - 50;
      for (const who of [client, node]) {
        const { verb, error } = await from(who, (ended) => new ReadWords(0, 1000, 100, ended));
        expect(error).toBeUndefined();
        expect([...verb.words]).toEqual(Array.from({ length: 100 }, (_, i) => i - 50));
        const none = await from(who, (ended) => new ReadWords(0, 1000, 0, ended));
        expect(none.verb.words.length).toBe(0);
      }
      const most = await from(client, (ended) => new ReadWords(0, 0, MAX_VERB_WORDS, ended));
      expect(most.verb.words.length).toBe(MAX_VERB_WORDS);
    });

    test("write", async () => {
      const { from, i32, node } = await setUp();
      const words = Int32Array.from([7, -1, 2 ** 31 - 1]);
      const { error } = await from(node, (ended) => new WriteWords(0, 500, words, ended));
      expect(error).toBeUndefined();
      expect([...i32.subarray(499, 504)]).toEqual([0, 7, -1, 2 ** 31 - 1, 0]);
    });

    test("compare and swap", async () => {
      const { from, i32, node } = await setUp();
      i32[40] = 5;
      const hit = await from(node, (ended) => new CompareAndSwap(0, 40, 5, 6, ended));
      expect([hit.verb.found, i32[40]]).toEqual([5, 6]);
      const miss = await from(node, (ended) => new CompareAndSwap(0, 40, 5, 7, ended));
      expect([miss.verb.found, i32[40]]).toEqual([6, 6]);
    });

    test("fetch and add, by many at once", async () => {
      const { made, i32, node } = await setUp();
      const found: number[] = [];
      for (let i = 0; i < 1_000; i++) {
        const verb = new FetchAndAdd(0, 41, 1, (_verb, error) => {
          if (error === undefined) found.push(verb.found);
        });
        node.send(0, verb);
      }
      await made.until(() => found.length === 1_000);
      expect(i32[41]).toBe(1_000);
      expect(found.sort((a, b) => a - b)).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    });

    test("read an object: its header and its data", async () => {
      const { from, i32, client } = await setUp();
      i32.set([0, 11, 22, 9, 1, 2, 3, 4], 2000);
      const { verb, error } = await from(client, (ended) => new ReadObject(0, 2000, 4, ended));
      expect(error).toBeUndefined();
      expect(verb.isLocked).toBe(false);
      expect([verb.lock, verb.versionHigh, verb.versionLow, verb.incarnation]).toEqual([
        0, 11, 22, 9,
      ]);
      expect([...(verb.data?.i32 ?? [])].slice(0, 4)).toEqual([1, 2, 3, 4]);
    });

    test("an object that is prepared can be read, one that is being installed cannot", async () => {
      const { from, i32, client } = await setUp();
      i32.set([lockWord(3, PREPARED), 1, 2, 1, 77], 2000);
      const prepared = await from(client, (ended) => new ReadObject(0, 2000, 1, ended));
      expect([prepared.verb.isLocked, prepared.verb.lock]).toEqual([false, lockWord(3, PREPARED)]);
      expect(prepared.verb.data?.i32[0]).toBe(77);
      i32[2000] = lockWord(3, INSTALLING);
      const installing = await from(client, (ended) => new ReadObject(0, 2000, 1, ended));
      expect(installing.error).toBeUndefined();
      expect([installing.verb.isLocked, installing.verb.data]).toEqual([true, undefined]);
    });

    test("out of bounds is an error, and nothing else", async () => {
      const { from, i32, node } = await setUp();
      const end = i32.length;
      const nonsense: ((ended: Ended) => Verb)[] = [
        (ended) => new ReadWords(0, end - 1, 2, ended),
        (ended) => new ReadWords(0, -1, 1, ended),
        (ended) => new ReadWords(0, 0, MAX_VERB_WORDS + 1, ended),
        (ended) => new ReadWords(0, 0, -1, ended),
        (ended) => new ReadWords(0, 2 ** 31 - 1, MAX_VERB_WORDS, ended),
        (ended) => new ReadWords(1, 0, 1, ended),
        (ended) => new ReadWords(-1, 0, 1, ended),
        (ended) => new ReadWords(1 << 20, 0, 1, ended),
        (ended) => new ReadObject(0, end - HEADER_WORDS, 1, ended),
        (ended) => new WriteWords(0, end, Int32Array.of(1), ended),
        (ended) => new CompareAndSwap(0, end, 0, 1, ended),
        (ended) => new FetchAndAdd(0, -5, 1, ended),
      ];
      for (const makeVerb of nonsense) {
        const { error } = await from(node, makeVerb);
        expect(error?.code).toBe("SITU_PROTOCOL");
      }
      const { verb } = await from(node, (ended) => new ReadWords(0, end - 1, 1, ended));
      expect(verb.words.length).toBe(1);
    });

    test.runIf(maker.clientsAreRefusedWrites ?? true)("clients do not write", async () => {
      const { from, i32, client } = await setUp();
      const writing: ((ended: Ended) => Verb)[] = [
        (ended) => new WriteWords(0, 8, Int32Array.of(1), ended),
        (ended) => new CompareAndSwap(0, 8, 0, 1, ended),
        (ended) => new FetchAndAdd(0, 8, 1, ended),
      ];
      for (const makeVerb of writing) {
        const { error } = await from(client, makeVerb);
        expect(error?.code).toBe("SITU_PERMISSION");
      }
      expect(i32[8]).toBe(0);
    });

    test("an object under a writer is never read torn", async () => {
      const { from, client, memory: shared } = await setUp();
      if (shared.region === undefined) return;
      const dataWords = 64;
      const writer = startObjectWriter(shared.region, 4096, dataWords, 0);
      const versions = new Set<number>();
      let torn = 0;
      try {
        for (let reads = 0; reads < 3_000 || (versions.size < 2 && reads < 1e6); reads++) {
          const { verb } = await from(client, (ended) => new ReadObject(0, 4096, dataWords, ended));
          if (verb.isLocked || verb.data === undefined) continue;
          versions.add(verb.versionLow);
          const data = verb.data.i32.subarray(0, dataWords);
          if (data.some((word) => word !== verb.versionLow)) torn++;
        }
      } finally {
        await writer.stop();
      }
      expect(torn).toBe(0);
      expect(versions.size).toBeGreaterThan(1);
    });
  });
}
