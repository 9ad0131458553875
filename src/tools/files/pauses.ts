/** Lets the event loop turn while a tool reads and copies files, whose calls are synchronous. */

import { nowMs, turn } from "../../runtime/clock.ts";
import { SCAN_YIELD_MS } from "../../runtime/limits.ts";

export interface FileProgress {
  /** The file that is being read just now. */
  readonly file: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface FileToolOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((progress: FileProgress) => void) | undefined;
}

export class Pauses {
  readonly #options: FileToolOptions;
  readonly #totalBytes: number;
  #doneBytes = 0;
  #turnMs = nowMs();

  constructor(options: FileToolOptions, totalBytes: number) {
    this.#options = options;
    this.#totalBytes = totalBytes;
    options.signal?.throwIfAborted();
  }

  /** So many more bytes of a file were read. */
  async after(file: string, bytes: number): Promise<void> {
    this.#doneBytes += bytes;
    if (nowMs() - this.#turnMs < SCAN_YIELD_MS) return;
    const [doneBytes, totalBytes] = [this.#doneBytes, this.#totalBytes];
    this.#options.onProgress?.({ file, doneBytes, totalBytes });
    await turn();
    this.#turnMs = nowMs();
    this.#options.signal?.throwIfAborted();
  }
}
