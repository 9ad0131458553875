/**
 * Checkpoints while other threads really work at the same time: what is copied is torn by the
 * machine itself. They run the compiled form of churn-worker.ts: `npm run build` first.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { HEADER_WORDS } from "../../src/memory/object.ts";
import { sleep } from "../../src/runtime/clock.ts";
import type { ChurnTask } from "../helpers/churn-worker.ts";
import { differences, NARROW, RecoveryStore } from "../helpers/recovery-store.ts";

const SCRIPT = fileURLToPath(new URL("../../dist/tests/helpers/churn-worker.js", import.meta.url));
const STEPS = 1_500;
const WORKERS = 2;
/** For a worker that is not scheduled while it installs a commit. */
const PATIENCE_MS = 60_000;
/** So many of the checkpoints are recovered from, at most. */
const RECOVERIES = 16;

function start(task: ChurnTask): { ended: Promise<void>; stop: () => Promise<number> } {
  const worker = new Worker(SCRIPT, { workerData: task });
  const ended = new Promise<void>((resolve, reject) => {
    worker.on("message", () => resolve());
    worker.on("error", reject);
    worker.on("exit", () => reject(new Error("a worker ended early")));
  });
  return { ended, stop: () => worker.terminate() };
}

test("memory is rebuilt from checkpoints that were taken while others worked", async () => {
  expect(existsSync(SCRIPT), `${SCRIPT} is there: npm run build`).toBe(true);
  const geometry = { ...NARROW, regions: 4, slots: 8 };
  const store = new RecoveryStore(geometry, "mapped files");
  const executorOfLog = store.store.open();
  const folder = store.store.memory.segments.place;
  const workers = Array.from({ length: WORKERS }, (_, i) =>
    start({ folder, geometry, seed: 1 + i, steps: STEPS }),
  );
  let isOver = false;
  const all = Promise.all(workers.map(({ ended }) => ended)).finally(() => {
    isOver = true;
  });
  try {
    const names: (string | undefined)[] = [undefined];
    while (!isOver) {
      const writer = store.begin(executorOfLog, names.length % 4 !== 1, PATIENCE_MS);
      while (writer.step()) store.flush(executorOfLog);
      names.push(store.publish(executorOfLog, writer));
      await sleep(0);
    }
    await all;
    executorOfLog.sweep();
    store.flush(executorOfLog);
    const { memory } = store.store;
    const dataWordsAt = (id: number, word: number): number =>
      memory.region(id).i32[word + HEADER_WORDS];
    expect(names.length).toBeGreaterThan(3);
    const every = Math.ceil(names.length / RECOVERIES);
    for (const name of names.filter((_, i) => i % every === 0)) {
      const recovered = store.recover(name, 2);
      try {
        const found = differences(memory, recovered.memory, dataWordsAt);
        expect(found.slice(0, 5), `from ${name ?? "the log alone"}`).toEqual([]);
      } finally {
        recovered.dispose();
      }
    }
  } finally {
    for (const { stop } of workers) await stop();
    store.dispose();
  }
});
