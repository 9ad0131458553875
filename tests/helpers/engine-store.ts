/**
 * A bare store for tests of memory/ and engine/: segments, control and executors, without tables.
 * Small, so that a test can fill it; every executor maps it for itself, as a process would, and
 * can be "killed": its leases go, everything else stays as it was.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Executor } from "../../src/engine/executor.ts";
import { DescriptorLeases } from "../../src/engine/leases/descriptor.ts";
import { FileLockLeases } from "../../src/engine/leases/file-lock.ts";
import type { Leases } from "../../src/engine/leases/leases.ts";
import { controlBytes, type Geometry } from "../../src/memory/control.ts";
import { MappedSegments } from "../../src/memory/mapped-segments.ts";
import type { Segments } from "../../src/memory/segments.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";

const MIB = 2 ** 20;

export type Sharing = "mapped files" | "threads";
export const SHARINGS: readonly Sharing[] = ["mapped files", "threads"];

export const SMALL: Geometry = {
  slots: 16,
  journalBytes: 64 * 1024,
  regionBytes: 2 * MIB,
  regions: 4,
  ringBytes: 64 * 1024,
  chunkBytes: 256 * 1024,
  chunks: 8,
};

/** Segments of a kind in a place of their own. The names and sizes matter to threads only. */
export function testSegments(
  sharing: Sharing,
  sizes: ReadonlyMap<string, number>,
): { segments: () => Segments; leases: () => Leases; remove: () => void } {
  if (sharing === "mapped files") {
    const folder = mkdtempSync(join(tmpdir(), "situ-test-engine-"));
    return {
      segments: () => new MappedSegments(folder),
      leases: () => new FileLockLeases(folder),
      remove: () => rmSync(folder, { recursive: true, force: true }),
    };
  }
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of sizes) buffers.set(name, new SharedArrayBuffer(bytes));
  const holders = new SharedArrayBuffer(256 * 8);
  return {
    segments: () => new ThreadSegments(buffers),
    leases: () => new DescriptorLeases(holders),
    remove: () => buffers.clear(),
  };
}

export class EngineStore {
  readonly geometry: Geometry;
  /** A view of the memory that belongs to nobody: for tests that look or set the stage. */
  readonly memory: StoreMemory;
  readonly #place: ReturnType<typeof testSegments>;
  readonly #leases = new Map<Executor, Leases>();
  readonly #dead = new Set<Executor>();

  constructor(geometry: Geometry = SMALL, sharing: Sharing = "mapped files", isLogged = false) {
    this.geometry = geometry;
    this.#place = testSegments(sharing, segmentSizes(geometry));
    const segments = this.#place.segments();
    const control = segments.create(CONTROL_NAME, controlBytes(geometry));
    this.memory = new StoreMemory(segments, control, geometry);
    this.memory.control.format();
    if (isLogged) this.memory.control.startLog();
    this.memory.control.publish();
  }

  attachMemory(): StoreMemory {
    const segments = this.#place.segments();
    const control = segments.attach(CONTROL_NAME, controlBytes(this.geometry));
    return new StoreMemory(segments, control, this.geometry);
  }

  leases(): Leases {
    return this.#place.leases();
  }

  open(): Executor {
    const leases = this.leases();
    const executor = Executor.open(this.attachMemory(), leases);
    this.#leases.set(executor, leases);
    return executor;
  }

  /** As SIGKILL would: the system takes the leases, nothing in memory is tidied. */
  kill(executor: Executor): void {
    if (this.#dead.has(executor)) return;
    this.#dead.add(executor);
    this.#leases.get(executor)?.close();
  }

  close(executor: Executor): void {
    executor.close();
    this.#leases.delete(executor);
  }

  /** Also after a failed test, in whatever state its executors are. */
  dispose(): void {
    for (const executor of this.#leases.keys()) {
      this.kill(executor);
      executor.memory.close();
    }
    this.#leases.clear();
    this.memory.close();
    this.#place.remove();
  }
}
