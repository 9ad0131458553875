/**
 * Segments for the threads of one process. A thread that is started later must find them without
 * a message from the one that made them, so they travel in Node's environment data, which every
 * new worker inherits; and as nothing can be added to that behind a running worker's back, all
 * segments exist from the start. That costs address space only: untouched pages are not there.
 */

import { getEnvironmentData, setEnvironmentData } from "node:worker_threads";
import { SituError } from "../runtime/errors.ts";
import type { Segment, Segments } from "./segments.ts";

export type SegmentBuffers = ReadonlyMap<string, SharedArrayBuffer>;

const keyOf = (path: string): string => `situ:segments:${path}`;

/** What the threads of this process share under a path, if one of them has opened it. */
export function sharedBuffers(path: string): SegmentBuffers | undefined {
  return getEnvironmentData(keyOf(path)) as SegmentBuffers | undefined;
}

export function shareBuffers(path: string, sizes: ReadonlyMap<string, number>): SegmentBuffers {
  const buffers = new Map<string, SharedArrayBuffer>();
  for (const [name, bytes] of sizes) buffers.set(name, new SharedArrayBuffer(bytes));
  setEnvironmentData(keyOf(path), buffers as unknown as Parameters<typeof setEnvironmentData>[1]);
  return buffers;
}

export function unshareBuffers(path: string): void {
  setEnvironmentData(keyOf(path), undefined as never);
}

export class ThreadSegments implements Segments {
  readonly place = "this process";
  readonly #buffers: SegmentBuffers;

  constructor(buffers: SegmentBuffers) {
    this.#buffers = buffers;
  }

  create(name: string, bytes: number): Segment {
    return this.attach(name, bytes);
  }

  /** Untouched pages cost nothing, and there is no file system that could be full. */
  reserve(): void {}

  attach(name: string, bytes: number): Segment {
    const buffer = this.#buffers.get(name);
    if (buffer === undefined || buffer.byteLength !== bytes) {
      throw new SituError("SITU_CORRUPT", `the segment ${name} of ${bytes} bytes is not shared`);
    }
    return { buffer, release: () => {} };
  }
}
