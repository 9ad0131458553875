/**
 * A thread that installs versions of an object over and over, as a commit does (memory/object.ts):
 * in each of them all data words are the low word of the version.
 */

import { Worker } from "node:worker_threads";
import { HEADER_WORDS, INSTALLING, LOCK, VERSION_LOW } from "../../src/memory/object.ts";

export interface ObjectWriter {
  stop(): Promise<void>;
}

// Plain JavaScript: a worker does not go through the test runner's compiler.
const SOURCE = `
  const { region, word, dataWords, stopWord, lock, versionLow, header, installing } =
    require("node:worker_threads").workerData;
  const i32 = new Int32Array(region);
  for (let version = 1; Atomics.load(i32, stopWord) === 0; version++) {
    Atomics.store(i32, word + lock, 4 | installing);
    for (let i = 0; i < dataWords; i++) Atomics.store(i32, word + header + i, version);
    Atomics.store(i32, word + versionLow, version);
    Atomics.store(i32, word + lock, 0);
    for (let i = 0; i < 3 * dataWords; i++) Atomics.load(i32, stopWord);
  }
`;

export function startObjectWriter(
  region: SharedArrayBuffer,
  word: number,
  dataWords: number,
  stopWord: number,
): ObjectWriter {
  const layout = { lock: LOCK, versionLow: VERSION_LOW, header: HEADER_WORDS };
  const workerData = { region, word, dataWords, stopWord, ...layout, installing: INSTALLING };
  const worker = new Worker(SOURCE, { eval: true, workerData });
  const ended = new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.once("exit", () => resolve());
  });
  return {
    async stop() {
      Atomics.store(new Int32Array(region), stopWord, 1);
      await ended;
    },
  };
}
