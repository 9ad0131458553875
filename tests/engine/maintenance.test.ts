/** What a table does for itself after a transaction never changes the transaction's outcome. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { type Database, open, table, u32 } from "../../src/index.ts";
import type { Address } from "../../src/memory/address.ts";
import { wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  HEADER_BYTES,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockWord,
} from "../../src/memory/object.ts";
import { sizeClassOf } from "../../src/memory/size-classes.ts";
import { HEAD_WORDS } from "../../src/stores/shards/layout.ts";
import { StoreFolder } from "../helpers/engine-processes.ts";

const Item = table("item", { id: u32(), value: u32() }, { key: "id" });
const TIMEOUT_MS = 50;
/** Such work can be left undone: a caller who gave 50 ms must not wait seconds for it. */
const MOST_SLEEP_MS = 10 * TIMEOUT_MS;

/** The heads of all shards: what a split has to read, and an ordinary insert does not. */
function shardHeads(executor: Executor): Address[] {
  const { blocks } = executor.slabs;
  const sizeClass = sizeClassOf(HEADER_BYTES + HEAD_WORDS * 4);
  const heads: Address[] = [];
  for (let block = 0; block < blocks.count; block++) {
    if (blocks.classOf(block) !== sizeClass) continue;
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const cell = blocks.cellAt(block, index, sizeClass);
      const { i32 } = executor.memory.regionOf(cell);
      if ((i32[wordOf(cell) + INCARNATION] & (ALLOCATED | ARRAY)) === ALLOCATED) heads.push(cell);
    }
  }
  return heads;
}

/** How long this thread has asked to sleep: unlike the time that passed, the same on every machine. */
function countSleeps(): { takeMs(): number; end(): void } {
  const { wait } = Atomics;
  let sum = 0;
  Atomics.wait = ((array: Int32Array, index: number, value: number, ms = 0) => {
    sum += ms;
    return wait(array, index, value, ms);
  }) as typeof Atomics.wait;
  return {
    takeMs: () => {
      const taken = sum;
      sum = 0;
      return taken;
    },
    end: () => {
      Atomics.wait = wait;
    },
  };
}

describe("maintenance after a transaction", () => {
  let folder: StoreFolder;
  let db: Database;
  let owner: Executor;

  beforeEach(async () => {
    folder = new StoreFolder();
    const { path } = folder;
    // Without a log: to start the thread that writes it may take longer than the time-out.
    const options = {
      memoryBytes: 16 * 2 ** 20,
      timeoutMs: TIMEOUT_MS,
      durability: "none",
    } as const;
    db = await open({ ...options, path, tables: [Item] });
    owner = await attach(settingsOf({ path }), ({ executor }) => executor);
  });

  afterEach(async () => {
    owner.close();
    await db.close();
    await folder.remove();
  });

  test("a split that meets an owner who does not move: what has committed is reported so", () => {
    for (let id = 0; id < 100; id++) db.transactSync((tx) => tx.insert(Item, { id, value: id }));
    const heads = shardHeads(owner);
    expect(heads.length).toBeGreaterThan(0);
    const hold = (word: number): void => {
      for (const head of heads) {
        Atomics.store(owner.memory.regionOf(head).i32, wordOf(head) + LOCK, word);
      }
    };
    hold(lockWord(owner.slot, INSTALLING));
    const reported: number[] = [];
    const failed: string[] = [];
    let longestMs = 0;
    const sleeps = countSleeps();
    try {
      for (let id = 100; id < 400 && failed.length === 0; id++) {
        try {
          db.transactSync((tx) => tx.insert(Item, { id, value: id }));
          reported.push(id);
          longestMs = Math.max(longestMs, sleeps.takeMs());
          // Not worth minutes of waiting: it is known by now.
          if (longestMs > MOST_SLEEP_MS) break;
        } catch (error) {
          failed.push(`${id}: ${(error as { code?: string }).code}`);
          // An error is right if the transaction itself needed what is locked.
          if (db.get(Item, id) === undefined) break;
          throw new Error(`item ${id} was committed and reported as failed`, { cause: error });
        }
      }
    } finally {
      sleeps.end();
      hold(0);
    }
    expect(longestMs).toBeLessThanOrEqual(MOST_SLEEP_MS);
    for (const id of reported) expect(db.get(Item, id)).toEqual({ id, value: id });
    for (let id = 1_000; id < 3_000; id++)
      db.transactSync((tx) => tx.insert(Item, { id, value: id }));
    expect(db.stats().counters.splits).toBeGreaterThan(0);
    for (let id = 1_000; id < 3_000; id++) expect(db.get(Item, id)?.value).toBe(id);
  });
});
