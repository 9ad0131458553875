/** Stores with a log, for tests: losing their memory, copies of their folders, a log held still. */

import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import { type OpenOptions, settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { GroupCommit, type Round } from "../../src/log/group-commit.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import type { LogBatch } from "../../src/log/segments/segment-reader.ts";
import { hasHead, listSegments } from "../../src/log/segments/segments.ts";
import { MAX_LAG_MS } from "../../src/runtime/limits.ts";
import { memoryOf, type TemporaryStores } from "./store.ts";

/** What a store's folder says about itself. */
export interface StoredIdentity {
  readonly id: string;
  readonly memoryDir: string;
  readonly logId?: string;
  readonly logStarted?: boolean;
}

export function identityOf(path: string): StoredIdentity {
  return JSON.parse(readFileSync(join(path, "store.json"), "utf8")) as StoredIdentity;
}

/** What a reboot does to a store that nobody has open. */
export function loseMemory(path: string): void {
  rmSync(memoryOf(path), { recursive: true });
}

/** The files of a folder of the store, in order; none if there is no such folder. */
export function filesIn(path: string, folder: "log" | "checkpoints"): string[] {
  try {
    return readdirSync(join(path, folder)).sort();
  } catch {
    return [];
  }
}

/**
 * What is on disk now, as a store of its own without memory: to open it is to recover it. The
 * original may be open, and go on.
 */
export function copyOfDisk(stores: TemporaryStores, path: string): string {
  const copy = stores.folder();
  const identity = identityOf(path);
  const id = Buffer.from(copy).toString("hex").slice(-24).padStart(24, "0");
  writeFileSync(join(copy, "store.json"), JSON.stringify({ ...identity, id }));
  for (const folder of ["log", "checkpoints"] as const) {
    mkdirSync(join(copy, folder), { recursive: true });
    for (const name of filesIn(path, folder)) {
      cpSync(join(path, folder, name), join(copy, folder, name));
    }
  }
  return copy;
}

/**
 * The role of the log's writer in the hands of a test: nothing gets to disk but by
 * `round`. Who has the store open sees somebody who lives and does not move, as with a stopped process.
 */
export class HeldLog {
  readonly executor: Executor;
  readonly #writer: GroupCommit;
  #isHeld = true;

  private constructor(executor: Executor, writer: GroupCommit) {
    this.executor = executor;
    this.#writer = writer;
  }

  /** Of a store that nobody has open. */
  static async take(path: string): Promise<HeldLog> {
    const executor = await attach(settingsOf({ path }), (attached) => attached.executor);
    const writer = new GroupCommit(executor, new NodeFiles(path), identityOf(path).logId!);
    if (!writer.tryBegin()) throw new Error("somebody writes the log");
    return new HeldLog(executor, writer);
  }

  round(): Round {
    return this.#writer.round();
  }

  /** From now on whoever has the store open sees to the log. */
  letGo(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#writer.end();
    this.executor.close();
  }
}

/** A store with a log that is held still until `log.letGo()`, or the end of the test. */
export async function openHeld(
  stores: TemporaryStores,
  options: Partial<OpenOptions> = {},
): Promise<{ db: Database; log: HeldLog; path: string }> {
  const path = options.path ?? stores.folder();
  // Commits are to go on although nothing gets to disk.
  const lagMs = MAX_LAG_MS;
  const mode = { durability: "lazy" as const, memoryBytes: 16 * 2 ** 20, lagMs, ...options };
  await (await open({ ...mode, path, timeoutMs: 5_000 })).close();
  const log = await HeldLog.take(path);
  const db = await stores.open({ ...mode, path });
  stores.later(() => log.letGo());
  return { db, log, path };
}

/** Flips one bit of a file; the same again flips it back. */
export function flipBit(file: string, offset: number): void {
  const content = readFileSync(file);
  content[offset] ^= 1 << (offset % 8);
  writeFileSync(file, content);
}

/** The warnings of this process until the test ends. */
export function warnings(): { code: string | undefined; message: string }[] {
  const heard: { code: string | undefined; message: string }[] = [];
  const listen = (warning: Error & { code?: string }): void => {
    heard.push({ code: warning.code, message: warning.message });
  };
  process.on("warning", listen);
  onTestFinished(() => {
    process.off("warning", listen);
  });
  return heard;
}

/** All batches of the log: it begins after the checkpoint that the store was made with. */
export function batchesOf(path: string): readonly LogBatch[] {
  const files = new NodeFiles(path);
  const [first] = listSegments(files).filter(hasHead);
  return scanLog(files, first.head.afterEpoch).batches;
}
