/**
 * Bytes of the memory files of a closed store are changed, and a process opens it and reads
 * everything. After a clean close nothing wrong is ever read; without one, nothing hangs.
 */

import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { memoryFolder, readIdentity } from "../../src/folder/store-files.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, start } from "../helpers/engine-processes.ts";
import { temporaryStores } from "../helpers/store.ts";
import {
  type DamageOrder,
  Ordered,
  ROWS,
  rowOf,
  rowsOf,
  Texts,
  tables,
} from "./damaged-memory-store.ts";

const stores = temporaryStores();
afterEach(endAll);
const RUNS = 6;
/** Generous: what hangs, hangs for ever. */
const LIMIT_MS = 120_000;
const MIB = 2 ** 20;

/** A closed store; returns its folder and that of its memory. */
async function closedStore(durability: "none" | "sync"): Promise<{ path: string; memory: string }> {
  const path = stores.folder();
  const db = await stores.open({
    path,
    tables,
    durability,
    memoryBytes: 16 * MIB,
  });
  for (const table of tables) {
    db.transactSync((tx) => {
      for (let id = 0; id < rowsOf(table); id++) tx.put(table, rowOf(table, id));
    });
  }
  await db.close();
  return { path, memory: memoryFolder(readIdentity(path)!) };
}

/** Changes some bytes in the part of a file that is likely to be in use. */
function flip(file: string, random: Random, count: number): void {
  const fd = openSync(file, "r+");
  try {
    const byte = Buffer.alloc(1);
    const most = Math.min(statSync(file).size, 512 * 1024);
    for (let i = 0; i < count; i++) {
      const at = random.below(most);
      readSync(fd, byte, 0, 1, at);
      byte[0] ^= 1 << random.below(8);
      writeSync(fd, byte, 0, 1, at);
    }
  } finally {
    closeSync(fd);
  }
}

/**
 * Changes words that are in use: a bit of them, or the whole word to a small number, a negative one, or a
 * word of another place, so that pointers lead to other objects, and round in circles.
 */
function changeWords(file: string, random: Random, count: number): void {
  const bytes = readFileSync(file);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  const used: number[] = [];
  words.forEach((word, at) => {
    if (word !== 0) used.push(at);
  });
  const fd = openSync(file, "r+");
  try {
    for (let i = 0; i < count; i++) {
      const at = used[random.below(used.length)];
      const changed = [
        words[at] ^ (1 << random.below(32)),
        random.below(64),
        -1 - random.below(64),
        words[used[random.below(used.length)]],
      ][random.below(4)];
      writeSync(fd, Int32Array.of(changed), 0, 4, 4 * at);
    }
  } finally {
    closeSync(fd);
  }
}

async function outcomesOf(path: string): Promise<string[]> {
  const order: DamageOrder = { path };
  const running = start("damaged-memory-child", order);
  const limit = setTimeout(() => running.child.kill("SIGKILL"), LIMIT_MS);
  const { stdout, stderr, signal } = await running.ended;
  clearTimeout(limit);
  expect(signal, `it did not end in ${LIMIT_MS} ms`).toBe(null);
  expect(stdout, stderr).not.toBe("");
  return JSON.parse(stdout) as string[];
}

describe("memory that was damaged while the store was closed", () => {
  test("after a clean close: SITU_CORRUPT, with the file and where, as often as one asks", async () => {
    const { path, memory } = await closedStore("none");
    expect(existsSync(join(memory, "seal"))).toBe(true);
    flip(join(memory, "region-0"), new Random(7), 1);
    for (let i = 0; i < 2; i++) {
      await expect(stores.open({ path, tables: [Texts] })).rejects.toMatchObject({
        code: "SITU_CORRUPT",
        message: expect.stringMatching(/region-0, byte \d+/),
      });
    }
  });

  test("after a clean close, with a log: a warning, and the store as it was", async () => {
    const { path, memory } = await closedStore("sync");
    expect(existsSync(join(memory, "seal"))).toBe(true);
    flip(join(memory, "control"), new Random(8), 3);
    const warnings: string[] = [];
    const listen = (warning: Error & { code?: string }): void => {
      if (warning.code === "SITU_DAMAGED") warnings.push(warning.message);
    };
    process.on("warning", listen);
    try {
      const db = await stores.open({ path, tables: [Texts, Ordered] });
      expect(db.recovered).toBeDefined();
      for (let id = 0; id < ROWS; id++) expect(db.get(Texts, id)).toEqual(rowOf(tables[0], id));
      await new Promise((resolve) => setImmediate(resolve));
      expect(warnings).toEqual([expect.stringContaining("control, byte")]);
    } finally {
      process.off("warning", listen);
    }
  });

  test("the seal is broken by who opens the store, and made again by who leaves it last", async () => {
    const { path, memory } = await closedStore("none");
    const seal = join(memory, "seal");
    const [one, two] = [
      await stores.open({ path, tables: [Texts] }),
      await stores.open({ path, tables: [Texts] }),
    ];
    expect(existsSync(seal)).toBe(false);
    await one.close();
    expect(existsSync(seal)).toBe(false);
    two.transactSync((tx) => tx.put(Texts, { id: 1, group: 1, text: "new" }));
    await two.close();
    expect(existsSync(seal)).toBe(true);
    const again = await stores.open({ path, tables: [Texts] });
    expect(again.get(Texts, 1)).toEqual({ id: 1, group: 1, text: "new" });
  });

  test.each(["none", "sync"] as const)(
    "anywhere, after a clean close, durability %s: never wrong",
    async (durability) => {
      for (let run = 0; run < RUNS; run++) {
        const random = new Random(1_000 + run);
        const { path, memory } = await closedStore(durability);
        flip(
          join(memory, random.below(3) === 0 ? "control" : "region-0"),
          random,
          1 + random.below(20),
        );
        const outcomes = await outcomesOf(path);
        for (const outcome of outcomes) expect(["right", "SITU_CORRUPT"]).toContain(outcome);
        if (durability === "sync") expect(new Set(outcomes)).toEqual(new Set(["right"]));
      }
    },
    1_000_000,
  );

  test("anywhere in the regions, without a seal: it ends, with what it has or with a code", async () => {
    for (let run = 0; run < RUNS; run++) {
      const random = new Random(2_000 + run);
      const { path, memory } = await closedStore("none");
      rmSync(join(memory, "seal"));
      changeWords(join(memory, "region-0"), random, [1, 10, 100, 400][run % 4]);
      const outcomes = await outcomesOf(path);
      for (const outcome of outcomes) {
        expect(outcome, `run ${run}`).toMatch(/^(right|wrong|SITU_[A-Z_]+)$/);
      }
    }
  }, 1_000_000);
});
