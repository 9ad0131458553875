/** Transactions by verb (NAM-DB §3 to §6): what they see, what they cost, and what a memory server refuses. */

import { describe, expect, it, vi } from "vitest";
import { Views } from "../../src/memory/views.ts";
import { highOf, LOCKED_BIT, MAX_TIMESTAMP } from "../../src/protocols/nam/header.ts";
import { KEPT_AT, KEY_AT, MOVED_COUNT_AT, sign } from "../../src/protocols/nam/layout.ts";
import { FIRST_PLACE, type Scanned, type ScanPlace } from "../../src/protocols/nam/scan.ts";
import { JOURNALS, OVERFLOW, TIMESTAMPS, VECTOR_AT } from "../../src/protocols/nam/segments.ts";
import { Timestamps } from "../../src/protocols/nam/timestamps.ts";
import type { GuardedVerb } from "../../src/protocols/nam/verbs.ts";
import { AddVerb, SwapVerb, WriteVerb } from "../../src/protocols/nam/verbs.ts";
import { codeOf, DATA_WORDS, keyOf, NamScene, rowOf } from "./scene.ts";

/** Two keys whose search begins in the same cell. */
function keysWithOneHome({ table }: NamScene): [number, number] {
  const first = new Map<string, number>();
  for (let key = 0; ; key++) {
    const { server, cell } = table.home(keyOf(key));
    const other = first.get(`${server}:${cell}`);
    if (other !== undefined) return [other, key];
    first.set(`${server}:${cell}`, key);
  }
}

const UP_TO_20 = Array.from({ length: 20 }, (_, key) => key);

describe("transactions", () => {
  it.each(["vector", "background", "compressed", "both", "oracle"] as const)(
    "insert, read, update and delete, with timestamps as %s",
    (layout) => {
      const scene = new NamScene({ timestamps: { layout } });
      for (const key of UP_TO_20) expect(scene.write({ [key]: key }).kind).toBe("committed");
      expect(scene.read(UP_TO_20, 1)).toEqual(UP_TO_20);
      expect(scene.write({ 3: 33, 4: undefined, 50: 5 }, 1).kind).toBe("committed");
      expect(scene.read([3, 4, 50, 51], 0)).toEqual([33, undefined, 5, undefined]);
      expect(scene.write({ 4: 44 }, 0).kind).toBe("committed");
      expect(scene.read([4], 1)).toEqual([44]);
      expect(scene.locked()).toBe(0);
    },
  );

  it("see one point in time, however often the records change meanwhile: ring, then overflow region", () => {
    const scene = new NamScene();
    scene.write({ 1: 1, 2: 2 });
    const reader = scene.transaction(1);
    scene.run(reader.begin(), 1);
    const move = (): void => {
      for (const { mover } of scene.cluster.servers) mover.round(0, 1_000);
    };
    for (let round = 0; round < 7; round++) {
      expect(scene.write({ 1: 100 + round, 2: 200 + round, 9: round }).kind).toBe("committed");
      move();
    }
    expect(scene.readIn(reader, [1, 2, 9], 1)).toEqual([1, 2, undefined]);
    expect(scene.read([1, 2, 9], 1)).toEqual([106, 206, 6]);
  });

  it("a scan sees the same as reads by key, of one point in time, while records are written and read torn", () => {
    const scene = new NamScene({ journalWords: 4_096 });
    scene.write(Object.fromEntries(UP_TO_20.map((key) => [key, key])));
    scene.write({ 3: undefined });
    const reader = scene.transaction(1);
    scene.run(reader.begin(), 1);
    const { fabric, servers } = scene.cluster;
    // Somebody writes all the time, in the middle of what is read.
    let round = 0;
    const again = (): void => {
      if (++round > 40) return;
      const transaction = scene.transaction(0);
      for (const key of [1, 3, 5, 60]) {
        const data = (round + key) % 5 === 0 ? undefined : rowOf(1_000 + round);
        transaction.write(scene.table, keyOf(key), data);
      }
      for (const { mover } of servers) mover.round(0, 1_000);
      const { driver } = scene.compute[0];
      driver.run(transaction.commit(), 0, again, again);
    };
    again();
    for (let times = 0; times < 12; times++) {
      const rows = new Map<number, Int32Array>();
      for (let place: ScanPlace | undefined = FIRST_PLACE; place !== undefined; ) {
        const { bodies, next }: Scanned = scene.run(reader.scan(scene.table, place), 1);
        for (const body of bodies) {
          expect(rows.has(body[KEY_AT])).toBe(false);
          rows.set(body[KEY_AT], scene.table.dataOf(body));
        }
        place = next;
      }
      expect([...rows.keys()].toSorted((a, b) => a - b)).toEqual(
        UP_TO_20.filter((key) => key !== 3),
      );
      for (const [key, data] of rows) expect(data).toEqual(rowOf(key));
    }
    fabric.run(fabric.nowUs + 1_000);
    expect(round).toBeGreaterThan(10);
  });

  it("the first committer wins; the other one's writes leave nothing behind", () => {
    const scene = new NamScene();
    scene.write({ 1: 1, 2: 2 });
    const slow = scene.transaction(1);
    expect(scene.readIn(slow, [1], 1)).toEqual([1]);
    scene.write({ 1: 10 });
    slow.write(scene.table, keyOf(1), rowOf(11));
    slow.write(scene.table, keyOf(2), rowOf(12));
    expect(scene.run(slow.commit(), 1)).toEqual({ kind: "aborted", reason: "conflict" });
    expect(scene.read([1, 2])).toEqual([10, 2]);
    expect(scene.locked()).toBe(0);
  });

  it("two that insert the same key meet in the same cell", () => {
    const scene = new NamScene();
    const both = [scene.transaction(0), scene.transaction(1)];
    for (const [i, each] of both.entries()) {
      expect(scene.readIn(each, [7], i)).toEqual([undefined]);
      each.write(scene.table, keyOf(7), rowOf(i));
    }
    expect(both.map((each, i) => scene.run(each.commit(), i).kind)).toEqual([
      "committed",
      "aborted",
    ]);
    expect(scene.read([7])).toEqual([0]);
  });

  it("new keys of one transaction that find the same free cell get one each", () => {
    const scene = new NamScene({
      tables: [{ name: "small", keyWords: 1, dataWords: DATA_WORDS, cells: 45, ring: 2 }],
    });
    const keys = Array.from({ length: 15 }, (_, key) => key);
    const homes = keys.map((key) => JSON.stringify(scene.table.home(keyOf(key))));
    expect(new Set(homes).size).toBeLessThan(keys.length - 2);
    expect(scene.write(Object.fromEntries(keys.map((key) => [key, key]))).kind).toBe("committed");
    expect(scene.read(keys, 1)).toEqual(keys);
    expect(scene.write(Object.fromEntries(keys.map((key) => [key, key + 1])), 1).kind).toBe(
      "committed",
    );
    expect(scene.read(keys)).toEqual(keys.map((key) => key + 1));
    expect(scene.locked()).toBe(0);
  });

  it("one that inserts a key that was pushed on meets the other in the cell that both found free", () => {
    const scene = new NamScene();
    const [first, second] = keysWithOneHome(scene);
    const both = [scene.transaction(0), scene.transaction(1)];
    // The second transaction has seen the key's first cell free, and holds on to it.
    expect(scene.readIn(both[1], [second], 1)).toEqual([undefined]);
    for (const key of [first, second]) both[0].write(scene.table, keyOf(key), rowOf(key));
    both[1].write(scene.table, keyOf(second), rowOf(99));
    expect(both.map((each, i) => scene.run(each.commit(), i).kind)).toEqual([
      "committed",
      "aborted",
    ]);
    expect(scene.read([first, second])).toEqual([first, second]);
    expect(scene.write({ [second]: 3 }, 1).kind).toBe("committed");
    expect(scene.read([first, second])).toEqual([first, 3]);
  });

  it("a range without room says so", () => {
    const scene = new NamScene({
      tables: [{ name: "small", keyWords: 1, dataWords: DATA_WORDS, cells: 6, ring: 1 }],
    });
    const codes = UP_TO_20.map((key) => codeOf(() => scene.write({ [key]: key })));
    expect(codes.filter((code) => code === "SITU_FULL").length).toBeGreaterThan(10);
    expect(scene.locked()).toBe(0);
  });
});

describe("messages of a commit, as the paper counts them", () => {
  it("O(4,2): vector, 4 reads, 2 locks, 2 installs, publish; and what journals and versions add", () => {
    const scene = new NamScene();
    scene.write({ 1: 1, 2: 2, 3: 3, 4: 4 });
    const before = { ...scene.thread().counts };
    const served = scene.served;
    const transaction = scene.transaction();
    scene.readIn(transaction, [1, 2, 3, 4]);
    transaction.write(scene.table, keyOf(1), rowOf(5));
    transaction.write(scene.table, keyOf(2), rowOf(6));
    expect(scene.run(transaction.commit()).kind).toBe("committed");
    const after = scene.thread().counts;
    const spent = Object.fromEntries(
      Object.entries(after).map(([name, count]) => [
        name,
        count - before[name as keyof typeof before],
      ]),
    );
    expect(spent).toEqual({
      timestamps: 1,
      reads: 4,
      locks: 2,
      installs: 2,
      publishes: 1,
      // For each record: is there a free entry, its body, its header.
      oldVersions: 6,
      journals: 2,
      roundTrips: 7,
    });
    expect(scene.served - served).toBe(1 + 4 + 2 + 2 + 1 + 6 + 2);
  });

  it("a read-only transaction: the vector and its records, and no commit", () => {
    const scene = new NamScene();
    scene.write({ 1: 1, 2: 2 });
    const served = scene.served;
    const transaction = scene.transaction(1);
    scene.readIn(transaction, [1, 2], 1);
    expect(scene.run(transaction.commit(), 1).kind).toBe("committed");
    expect(scene.served - served).toBe(3);
  });
});

describe("what a memory server refuses", () => {
  const scene = new NamScene();
  scene.write({ 1: 1 });
  const thread = scene.thread();
  const { table } = scene;
  const { server, cell } = table.home(keyOf(1));
  const { cells, rings, old } = table.segments;
  const words = (count: number): Int32Array => new Int32Array(count).fill(7);
  const { journalWords } = scene.cluster.directory;
  const header = table.headerAt(cell);
  const write = (segment: number, word: number, what: Int32Array): GuardedVerb =>
    new WriteVerb(thread, server, segment, word, what);
  const swap = (word: number, from: [number, number], to: [number, number]): GuardedVerb =>
    new SwapVerb(thread, server, cells, word, from, to);
  const theirs: [number, number] = [9, highOf(1) | LOCKED_BIT];

  it.each<[string, () => GuardedVerb]>([
    ["a record that is not locked", () => write(cells, table.cellAt(cell), words(table.cellWords))],
    ["a part of a record", () => write(cells, table.cellAt(cell) + 8, words(2))],
    ["beyond the table", () => write(cells, table.cellsPerServer * table.cellWords, words(2))],
    [
      "a ring of a record that is not locked",
      () => write(rings, table.ringHeaderAt(cell, 0), words(2)),
    ],
    ["the overflow word of a record", () => write(rings, table.blockAt(cell), words(2))],
    [
      "an old version of one that is not locked",
      () => write(old, table.oldAt(cell, 0), words(table.bodyWords)),
    ],
    ["the overflow region", () => write(OVERFLOW, 0, words(2))],
    ["another's slot of the vector", () => write(TIMESTAMPS, VECTOR_AT + 1, words(1))],
    ["the own slot, backward", () => write(TIMESTAMPS, VECTOR_AT, new Int32Array([0]))],
    ["another's journal", () => write(JOURNALS, journalWords, words(4))],
    ["beyond the own journal", () => write(JOURNALS, journalWords - 2, words(4))],
    ["no segment", () => write(99, 0, words(2))],
    ["a lock in another's name", () => swap(header, [1, highOf(0)], theirs)],
    ["another's lock", () => swap(header, theirs, [1, highOf(0)])],
    ["an unlocked header over another", () => swap(header, [1, highOf(0)], [2, highOf(0)])],
    ["a word that is no header", () => swap(table.cellAt(cell), [1, highOf(0)], theirs)],
    ["a counter that is none", () => new AddVerb(thread, server, cells, header)],
  ])("a write to %s", (_, verbOf) => {
    const memory = scene.cluster.servers[server];
    const before = segmentsOf(memory);
    const { refused } = memory.guard;
    const verb = verbOf();
    expect(codeOf(() => scene.run(thread.sendHarmless([verb])))).toBe("SITU_PERMISSION");
    expect(memory.guard.refused).toBe(refused + 1);
    expect(segmentsOf(memory)).toEqual(before);
  });

  function segmentsOf(memory: (typeof scene.cluster.servers)[number]): Int32Array[] {
    return [TIMESTAMPS, JOURNALS, OVERFLOW, cells, rings, old].map((segment) =>
      memory.region(segment).i32.slice(),
    );
  }

  it("guarded verbs at all, where memory has no guard", () => {
    const views = new Views(new ArrayBuffer(64), 0);
    const verb = new WriteVerb(thread, 0, 0, 0, words(2));
    verb.apply({ hasRegion: () => true, region: () => views });
    expect(verb.error?.code).toBe("SITU_UNSUPPORTED");
    expect(views.i32.every((word) => word === 0)).toBe(true);
  });

  it("verbs of a pair that nobody has claimed, or of an earlier incarnation", () => {
    const fresh = new NamScene();
    const stale = fresh.cluster.threadsOf(0)[0];
    const publish = () =>
      fresh.run(stale.send([new WriteVerb(stale, 0, TIMESTAMPS, VECTOR_AT, new Int32Array([5]))]));
    expect(codeOf(publish)).toBe("SITU_STALE_CONFIGURATION");
    expect(fresh.cluster.servers[0].region(TIMESTAMPS).i32[VECTOR_AT]).toBe(0);
  });

  it("two clients with one thread: the later one has it, and the other one is refused, not heard halfway", () => {
    const fresh = new NamScene();
    fresh.write({ 1: 1 });
    const [settled] = fresh.settle(0);
    expect(settled.settlement).toBe("published");
    expect(codeOf(() => fresh.write({ 1: 2 }))).toBe("SITU_STALE_CONFIGURATION");
    expect(fresh.read([1], 1)).toEqual([1]);
    expect(fresh.locked()).toBe(0);
    // It may claim its thread back, and then the other one is refused.
    fresh.run(fresh.cluster.open(fresh.compute[0]));
    expect(fresh.write({ 1: 3 }).kind).toBe("committed");
  });
});

describe("limits", () => {
  it("a slot that has used its last timestamp says so, and nothing is locked", () => {
    const scene = new NamScene();
    const { i32 } = scene.cluster.servers[0].region(TIMESTAMPS);
    i32[VECTOR_AT] = (MAX_TIMESTAMP - 1) | 0;
    scene.run(scene.cluster.open(scene.compute[0]));
    expect(scene.write({ 1: 1 })).toEqual({ kind: "committed", timestamp: MAX_TIMESTAMP });
    expect(scene.read([1], 1)).toEqual([1]);
    expect(codeOf(() => scene.write({ 1: 2 }))).toBe("SITU_FULL");
    expect(scene.locked()).toBe(0);
    expect(scene.read([1], 1)).toEqual([1]);
  });

  it.each([2, 3])(
    "old versions of a record are counted in 32 bits, and a ring of %i goes on at their end",
    (ring) => {
      for (const kept of [2 ** 31 - 3, 2 ** 32 - 5]) {
        const scene = new NamScene({
          tables: [{ name: "records", keyWords: 1, dataWords: DATA_WORDS, cells: 96, ring }],
        });
        const { table } = scene;
        scene.write({ 1: 0 });
        const { server, cell } = table.home(keyOf(1));
        const memory = scene.cluster.servers[server];
        // As after so many updates, of which all old versions were moved.
        const { i32 } = memory.region(table.segments.cells);
        i32[table.cellAt(cell) + KEPT_AT] = kept;
        sign(i32, table.cellAt(cell), table.bodyWords);
        memory.region(table.segments.rings).i32[table.blockAt(cell) + MOVED_COUNT_AT] = kept;
        const readers = [];
        for (let value = 1; value <= 12; value++) {
          const reader = scene.transaction(1);
          scene.run(reader.begin(), 1);
          readers.push(reader);
          if (value % 3 === 0) {
            // One that dies when it has installed, and is settled.
            vi.spyOn(Timestamps.prototype, "publish").mockImplementation(function* () {});
            scene.write({ 1: value });
            vi.restoreAllMocks();
            expect(scene.settle(0)[0].settlement).toBe("forward");
            scene.run(scene.cluster.open(scene.compute[0]));
          } else expect(scene.write({ 1: value }).kind).toBe("committed");
          memory.mover.round(0, 1_000);
        }
        expect(readers.map((reader) => scene.readIn(reader, [1], 1)[0])).toEqual([
          0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
        ]);
        expect(memory.mover.moved).toBe(12);
        expect(scene.read([1], 1)).toEqual([12]);
        expect(scene.locked()).toBe(0);
      }
    },
  );

  it("where the overflow region is full, writers give way; when the longest transaction time is over they go on", () => {
    const scene = new NamScene({ overflowWords: 64, longestTransactionMs: 100 });
    const move = (nowMs: number): void => {
      for (const { mover } of scene.cluster.servers) mover.round(nowMs, 1_000);
    };
    const outcomes: string[] = [];
    for (let i = 0; i < 6; i++) {
      const outcome = scene.write({ 1: i });
      outcomes.push(outcome.kind === "aborted" ? outcome.reason : outcome.kind);
      move(0);
    }
    // The record itself, one version moved and two in the ring.
    expect(outcomes).toEqual([
      "committed",
      "committed",
      "committed",
      "committed",
      "no room",
      "no room",
    ]);
    expect(scene.locked()).toBe(0);
    expect(scene.read([1], 1)).toEqual([3]);
    move(101);
    expect(scene.write({ 1: 9 }).kind).toBe("committed");
  });

  it("a transaction that took longer than the longest time is told, never shown another version", () => {
    const scene = new NamScene({ overflowWords: 64, longestTransactionMs: 100 });
    scene.write({ 1: 1 });
    const reader = scene.transaction(1);
    scene.run(reader.begin(), 1);
    for (let i = 0; i < 8; i++) {
      scene.write({ 1: 10 + i });
      for (const { mover } of scene.cluster.servers) mover.round(1_000 * (i + 1), 1_000);
    }
    expect(codeOf(() => scene.readIn(reader, [1], 1))).toBe("SITU_SNAPSHOT_TOO_OLD");
  });

  it("a transaction that is too large for a journal is refused before anything is locked", () => {
    const scene = new NamScene({ journalWords: 128 });
    expect(codeOf(() => scene.write({ 1: 1, 2: 2, 3: 3 }))).toBe("SITU_TOO_LARGE");
    expect(scene.locked()).toBe(0);
    // Nothing has happened: the thread goes on, with its first timestamp.
    expect(scene.write({ 1: 1 })).toEqual({ kind: "committed", timestamp: 1 });
  });
});
