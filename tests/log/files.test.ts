/** One suite over both disks, then what each of them adds: modes and room, failures and crashes. */

import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PowerLost } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { type StoreFiles, writeFully } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytesIn, expectBytes, withFolder } from "../helpers/disk.ts";
import { forSeeds } from "../helpers/seed.ts";

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const filled = (length: number, value: number): Uint8Array => new Uint8Array(length).fill(value);
const withCode = (code: string) => expect.objectContaining({ code });

type Use = (files: StoreFiles) => void;
const disks: [string, (use: Use) => void][] = [
  ["the file system", (use) => withFolder((folder) => use(new NodeFiles(folder)))],
  ["the simulated disk", (use) => use(new FaultyFiles())],
  ["the simulated disk, large blocks", (use) => use(new FaultyFiles({ blockBytes: 4096 }))],
];

describe.each(disks)("the contract, on %s", (_, withDisk) => {
  test("a new file is as long as it should be, and zero", () => {
    withDisk((files) => {
      const file = files.create("a", 10_000);
      expect(file.name).toBe("a");
      expect(file.size()).toBe(10_000);
      const found = filled(10_001, 7);
      expect(file.read(found, 0)).toBe(10_000);
      expectBytes(found.subarray(0, 10_000), filled(10_000, 0));
      file.close();
      const empty = files.create("b", 0);
      expect(empty.size()).toBe(0);
      empty.close();
    });
  });

  test("parts are written one behind the other, across blocks", () => {
    withDisk((files) => {
      const file = files.create("a", 0);
      const parts = [bytes(1, 2, 3), bytes(), filled(5_000, 4), bytes(5)];
      expect(writeFully(file, parts, 509)).toBe(5_004);
      expect(file.size()).toBe(5_513);
      expect(writeFully(file, [bytes(9)], 511)).toBe(1);
      file.close();
      const found = bytesIn(files, "a");
      expect(found.subarray(0, 509).every((byte) => byte === 0)).toBe(true);
      expect([...found.subarray(509, 514)]).toEqual([1, 2, 9, 4, 4]);
      expect(found[5_512]).toBe(5);
    });
  });

  test("more parts than the system takes at once", () => {
    withDisk((files) => {
      const file = files.create("a", 0);
      const parts = Array.from({ length: 3_000 }, (_unused, i) => bytes(i & 0xff));
      expect(writeFully(file, parts, 0)).toBe(3_000);
      file.close();
      expect([...bytesIn(files, "a")]).toEqual(parts.map(([byte]) => byte));
    });
  });

  test("parts may lie in shared memory", () => {
    withDisk((files) => {
      const shared = new Uint8Array(new SharedArrayBuffer(64)).fill(3);
      const file = files.create("a", 0);
      writeFully(file, [shared.subarray(8, 24)], 0);
      file.close();
      expect([...bytesIn(files, "a")]).toEqual([...filled(16, 3)]);
    });
  });

  test("reading ends with the file", () => {
    withDisk((files) => {
      const file = files.create("a", 4);
      expect(file.read(filled(8, 1), 2)).toBe(2);
      expect(file.read(filled(8, 1), 4)).toBe(0);
      expect(file.read(filled(8, 1), 400)).toBe(0);
      file.close();
    });
  });

  test("what was cut off is zero when the file grows again", () => {
    withDisk((files) => {
      const file = files.create("a", 0);
      writeFully(file, [filled(3_000, 1)], 0);
      file.sync();
      file.truncate(700);
      expect(file.size()).toBe(700);
      writeFully(file, [bytes(2)], 2_999);
      file.sync();
      file.close();
      const found = bytesIn(files, "a");
      expectBytes(found.subarray(0, 700), Buffer.alloc(700, 1));
      expectBytes(found.subarray(700, 2_999), Buffer.alloc(2_299));
      expect(found[2_999]).toBe(2);
    });
  });

  test("a file that is only read", () => {
    withDisk((files) => {
      files.create("a", 4).close();
      const file = files.open("a", true);
      expect(() => file.write([bytes(1)], 0)).toThrow(withCode("EBADF"));
      expect(file.read(filled(4, 1), 0)).toBe(4);
      file.close();
      const again = files.open("a");
      expect(again.write([bytes(1)], 0)).toBe(1);
      again.close();
    });
  });

  test("names: folders, lists, renames, removals", () => {
    withDisk((files) => {
      expect(files.list("log")).toEqual([]);
      expect(() => files.create("log/a", 1)).toThrow(withCode("ENOENT"));
      files.makeFolder("log");
      files.makeFolder("log");
      files.syncFolder("");
      for (const name of ["log/c", "log/a", "log/b"]) files.create(name, 1).close();
      files.create("other", 1).close();
      expect(files.list("log")).toEqual(["a", "b", "c"]);
      expect(files.list("")).toEqual(["other"]);
      expect(files.has("log/a")).toBe(true);
      files.rename("log/c", "log/a");
      files.remove("log/b");
      files.syncFolder("log");
      expect(files.list("log")).toEqual(["a"]);
      expect(files.has("log/b")).toBe(false);
      expect(() => files.open("log/b")).toThrow(withCode("ENOENT"));
      expect(() => files.remove("log/b")).toThrow(withCode("ENOENT"));
      expect(() => files.rename("log/b", "log/d")).toThrow(withCode("ENOENT"));
      expect(() => files.syncFolder("none")).toThrow(withCode("ENOENT"));
    });
  });

  test("who has a file open keeps it, also when its name goes to another", () => {
    withDisk((files) => {
      const old = files.create("a", 0);
      writeFully(old, [bytes(1)], 0);
      const reader = files.open("a", true);
      const made = files.create("a", 2);
      const found = bytes(0);
      expect(reader.read(found, 0)).toBe(1);
      expect([...found]).toEqual([1]);
      expect([...bytesIn(files, "a")]).toEqual([0, 0]);
      files.remove("a");
      expect(made.read(bytes(0, 0), 0)).toBe(2);
      for (const file of [old, reader, made]) file.close();
    });
  });
});

describe("the file system", () => {
  test("only the owner may read, and no file is left for which there is no room", () => {
    withFolder((folder) => {
      const files = new NodeFiles(folder);
      expect(files.place).toBe(folder);
      files.makeFolder("log");
      files.create("log/a", 8_192).close();
      expect(statSync(join(folder, "log")).mode & 0o777).toBe(0o700);
      expect(statSync(join(folder, "log/a")).mode & 0o777).toBe(0o600);
      expect(statSync(join(folder, "log/a")).blocks * 512).toBeGreaterThanOrEqual(8_192);
      expect(() => files.create("log/b", 2 ** 50)).toThrow(withCode("ENOSPC"));
      expect(files.list("log")).toEqual(["a"]);
    });
  });
});

describe("the simulated disk fails as it is told", () => {
  test("short writes lose nothing", () => {
    const files = new FaultyFiles({ seed: 5 });
    files.fail({ kind: "short", times: 20 });
    const file = files.create("a", 0);
    const data = Uint8Array.from({ length: 2_000 }, (_unused, i) => i * 7);
    writeFully(file, [data.subarray(0, 3), data.subarray(3)], 0);
    expect(files.operations).toBeGreaterThan(2);
    file.close();
    expect([...bytesIn(files, "a")]).toEqual([...data]);
  });

  test("errors come once, for the calls that were named", () => {
    const files = new FaultyFiles();
    files.create("a", 0).close();
    files.create("b", 0).close();
    files.fail({ kind: "EIO", on: "write", name: "b" });
    files.fail({ kind: "ENOSPC", at: files.operations + 4 });
    const a = files.open("a");
    const b = files.open("b");
    a.write([bytes(1)], 0);
    expect(() => b.write([bytes(1)], 0)).toThrow(withCode("EIO"));
    expect(b.size()).toBe(0);
    expect(() => b.write([bytes(1)], 0)).toThrow(withCode("ENOSPC"));
    expect(b.write([bytes(1)], 0)).toBe(1);
    files.fail({ kind: "EIO", on: "read", times: 2 });
    expect(() => a.read(bytes(0), 0)).toThrow(withCode("EIO"));
    files.forgive();
    expect(a.read(bytes(0), 0)).toBe(1);
  });

  test("a sync that fails loses what it was to write", () => {
    const files = new FaultyFiles();
    const file = files.create("a", 1_000);
    file.write([filled(600, 1)], 0);
    file.sync();
    file.write([filled(600, 2)], 300);
    files.fail({ kind: "EIO", on: "sync" });
    expect(() => file.sync()).toThrow(withCode("EIO"));
    file.sync();
    const expected = Buffer.concat([filled(600, 1), filled(400, 0)]);
    expectBytes(bytesIn(files, "a"), expected);
    expectBytes(bytesIn(files.settled(), "a"), expected);
  });

  test("a disk is full, and has room again", () => {
    const files = new FaultyFiles({ capacityBytes: 1_000 });
    const file = files.create("a", 600);
    expect(() => files.create("b", 500)).toThrow(withCode("ENOSPC"));
    expect(files.has("b")).toBe(false);
    expect(file.write([filled(600, 1)], 500)).toBe(500);
    expect(() => file.write([bytes(1)], 1_000)).toThrow(withCode("ENOSPC"));
    expect(file.write([bytes(1)], 999)).toBe(1);
    files.capacityBytes = 1_500;
    files.create("b", 500).close();
    expect(files.usedBytes).toBe(1_500);
    files.remove("b");
    expect(files.usedBytes).toBe(1_000);
  });

  test("without power nothing works", () => {
    const files = new FaultyFiles();
    const seen: string[] = [];
    files.before = ({ number, kind, name }) => seen.push(`${number} ${kind} ${name}`);
    const file = files.create("a", 0);
    files.fail({ kind: "power", at: 3 });
    file.write([bytes(1)], 0);
    expect(() => file.sync()).toThrow(PowerLost);
    expect(() => file.write([bytes(1)], 0)).toThrow(PowerLost);
    expect(() => file.size()).toThrow(PowerLost);
    expect(() => files.create("b", 0)).toThrow(PowerLost);
    expect(() => files.has("a")).toThrow(PowerLost);
    file.close();
    expect(seen).toEqual(["1 create a", "2 write a", "3 sync a"]);
  });

  test("a flipped bit, and bytes that nobody wrote", () => {
    const files = new FaultyFiles();
    const file = files.create("a", 2_000);
    file.write([filled(2_000, 1)], 0);
    file.sync();
    files.flipBit("a", 513, 3);
    files.spoil("a", 1_023, bytes(7, 8));
    const expected = Buffer.alloc(2_000, 1);
    expected.set([9], 513);
    expected.set([7, 8], 1_023);
    expectBytes(bytesIn(files, "a"), expected);
    files.syncFolder("");
    expectBytes(bytesIn(files.powerLoss(new Random(1)), "a"), expected);
  });
});

describe("what a power loss leaves", () => {
  /** A synced file of ones, and twos that are not synced over a part of it. */
  function written(blockBytes: number): FaultyFiles {
    const files = new FaultyFiles({ blockBytes });
    const file = files.create("a", 20_000);
    file.write([filled(10_000, 1)], 0);
    file.sync();
    files.syncFolder("");
    file.write([filled(8_000, 2)], 6_100);
    return files;
  }

  test.each([512, 4096])("synced bytes stay, others are old, new or torn; blocks of %i", (size) => {
    const outcomes = new Set<string>();
    let hasGarbage = false;
    forSeeds(300, 1, (seed) => {
      const found = bytesIn(written(size).powerLoss(new Random(seed)), "a");
      expect(found.length).toBe(20_000);
      expectBytes(found.subarray(0, 6_100), Buffer.alloc(6_100, 1));
      expectBytes(found.subarray(14_100), Buffer.alloc(5_900));
      let outcome = "";
      for (let at = 6_100; at < 14_100; at++) {
        const old = at < 10_000 ? 1 : 0;
        if (found[at] !== 2 && found[at] !== old) hasGarbage = true;
        if (at % size === 0) outcome += found[at] === 2 ? "n" : "o";
      }
      outcomes.add(outcome);
    });
    const all = [...outcomes];
    expect(hasGarbage).toBe(true);
    expect(all.some((outcome) => /^o+$/.test(outcome))).toBe(true);
    expect(all.some((outcome) => /^n+$/.test(outcome))).toBe(true);
    expect(all.some((outcome) => /^n+o+$/.test(outcome))).toBe(true);
    expect(all.some((outcome) => /^n*on+$/.test(outcome))).toBe(true);
  });

  test("a new file is missing, empty, or there; a synced one is there for certain", () => {
    const outcomes = new Set<number>();
    forSeeds(200, 1, (seed) => {
      const files = new FaultyFiles();
      files.create("a", 1_000);
      const b = files.create("b", 1_000);
      b.write([filled(10, 1)], 0);
      b.sync();
      const found = files.powerLoss(new Random(seed));
      if (found.has("b")) {
        expect(found.has("a")).toBe(true);
        expect([...bytesIn(found, "b").subarray(0, 11)]).toEqual([...filled(10, 1), 0]);
      }
      outcomes.add(found.has("a") ? bytesIn(found, "a").length : -1);
      files.syncFolder("");
      expect(bytesIn(files.powerLoss(new Random(seed)), "b").length).toBe(1_000);
    });
    expect([...outcomes].sort((a, b) => a - b)).toEqual([-1, 0, 1_000]);
  });

  test("a rename is done or not, and in its order", () => {
    const outcomes = new Set<string>();
    forSeeds(200, 1, (seed) => {
      const files = new FaultyFiles();
      files.makeFolder("c");
      files.syncFolder("");
      for (const [name, value] of [
        ["c/old", 1],
        ["c/a.new", 2],
      ] as const) {
        const file = files.create(name, 0);
        file.write([bytes(value)], 0);
        file.sync();
      }
      files.syncFolder("c");
      files.rename("c/a.new", "c/a");
      files.remove("c/old");
      const found = files.powerLoss(new Random(seed));
      outcomes.add(found.list("c").join(" "));
      expect([...bytesIn(found, found.has("c/a") ? "c/a" : "c/a.new")]).toEqual([2]);
    });
    expect([...outcomes].sort()).toEqual(["a", "a old", "a.new old"]);
  });

  test("a folder that is lost takes its files with it", () => {
    const outcomes = new Set<boolean>();
    forSeeds(50, 1, (seed) => {
      const files = new FaultyFiles();
      files.makeFolder("log");
      files.create("log/a", 1).sync();
      files.syncFolder("log");
      outcomes.add(files.powerLoss(new Random(seed)).has("log/a"));
      files.syncFolder("");
      expect(files.powerLoss(new Random(seed)).has("log/a")).toBe(true);
    });
    expect([...outcomes].sort()).toEqual([false, true]);
  });

  test("a length that was cut may be the old one", () => {
    const outcomes = new Set<number>();
    forSeeds(50, 1, (seed) => {
      const files = written(512);
      const file = files.open("a");
      file.sync();
      file.truncate(7_000);
      const found = files.powerLoss(new Random(seed));
      outcomes.add(bytesIn(found, "a").length);
      expectBytes(bytesIn(found, "a").subarray(6_100, 7_000), Buffer.alloc(900, 2));
      file.sync();
      expect(bytesIn(files.powerLoss(new Random(seed)), "a").length).toBe(7_000);
    });
    expect([...outcomes].sort()).toEqual([20_000, 7_000]);
  });

  test("the disk that lost its power is not changed by it, and the copy is independent", () => {
    const files = written(512);
    const found = files.settled();
    found.open("a").write([bytes(9)], 0);
    found.flipBit("a", 1);
    expect([...bytesIn(files, "a").subarray(0, 2)]).toEqual([1, 1]);
    expectBytes(bytesIn(files, "a").subarray(6_100, 14_100), Buffer.alloc(8_000, 2));
  });
});
