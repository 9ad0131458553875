/** Stores in temporary folders that are gone after each test, however the test ended. */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect } from "vitest";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { destroy, openLocal } from "../../src/database/open.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import { memoryFolder, readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import type { SituErrorCode } from "../../src/runtime/errors.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { PATIENCE_MS } from "./patience.ts";
import { fixedSeed } from "./seed.ts";

export { PATIENCE_MS } from "./patience.ts";

export const MIB = 2 ** 20;

/** The seed of a test's random choices. */
export const seed = fixedSeed();

type Cleanup = () => unknown;

export class TemporaryStores {
  readonly #folders: string[] = [];
  readonly #cleanups: Cleanup[] = [];

  /** A new folder that is no store yet. */
  folder(): string {
    const path = mkdtempSync(join(tmpdir(), "situ-test-"));
    this.#folders.push(path);
    return path;
  }

  /** A folder that a test makes itself, in one of these. */
  adopt(path: string): void {
    // Destroyed before the one that it lies in is removed.
    this.#folders.unshift(path);
  }

  async open(options: Partial<OpenOptions> = {}): Promise<LocalDatabase> {
    const path = options.path ?? this.folder();
    const isNew = !existsSync(join(path, "store.json"));
    // Most tests are about memory; those about the disk say so.
    const durability = isNew ? { durability: "none" as const } : {};
    // For synchronous calls, too: a process that is not scheduled for long is no failure of a test.
    const patient = { timeoutMs: PATIENCE_MS };
    // Only a new store: one that is there would grow to it.
    const size = isNew ? { memoryBytes: 16 * MIB } : {};
    const db = await openLocal({ ...patient, ...size, ...durability, ...options, path });
    this.later(() => db.close());
    return db;
  }

  /** Something to do after the test, before the stores are destroyed; the last one first. */
  later(cleanup: Cleanup): void {
    this.#cleanups.push(cleanup);
  }

  async clear(): Promise<void> {
    const failures: unknown[] = [];
    for (const cleanup of this.#cleanups.splice(0).reverse()) {
      await Promise.resolve()
        .then(cleanup)
        .catch((error: unknown) => failures.push(error));
    }
    for (const path of this.#folders.splice(0)) {
      await destroy(path).catch((error: unknown) => failures.push(error));
      removeLeftovers(path);
    }
    expect(failures, "cleaning up after the test").toEqual([]);
  }
}

/** What `destroy` refused to remove must not stay in memory either. */
function removeLeftovers(path: string): void {
  try {
    const identity = readIdentity(path);
    if (identity !== undefined) removeMemory(identity);
  } catch {
    // A test has damaged store.json, and looks after the memory itself.
  }
  rmSync(path, { recursive: true, force: true });
}

/** Call at the top of a test file. */
export function temporaryStores(): TemporaryStores {
  const stores = new TemporaryStores();
  afterEach(() => stores.clear());
  return stores;
}

/** The folder in memory of the store at `path`. */
export function memoryOf(path: string): string {
  return memoryFolder(readIdentity(path)!);
}

/** Runs `work`, expects it to fail with this code, and returns the error. */
export async function failure(code: SituErrorCode, work: () => unknown): Promise<SituError> {
  let error: unknown;
  try {
    const result = await work();
    error = new Error(`nothing was thrown, it returned ${String(result)}`);
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof SituError)) {
    throw new Error(`expected ${code}, got: ${String(error)}`, { cause: error });
  }
  expect(error.code, error.message).toBe(code);
  return error;
}

/** The same for work that fails in this very turn. */
export function failureSync(code: SituErrorCode, work: () => unknown): SituError {
  let error: unknown = new Error("nothing was thrown");
  try {
    work();
  } catch (thrown) {
    error = thrown;
  }
  if (!(error instanceof SituError)) {
    throw new Error(`expected ${code}, got: ${String(error)}`, { cause: error });
  }
  expect(error.code, error.message).toBe(code);
  return error;
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Where one side of a test waits until the other lets it go on. */
export class Gate {
  open: () => void = () => {};
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

/** Polls until `holds`; for what happens in the background, at no stated time. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 240_000;
  while (performance.now() < deadline) {
    if (await holds()) return;
    await sleep(10);
  }
  throw new Error("it did not happen within 240 s");
}
