/**
 * Random work while checkpoints are taken, in every way in which the two can meet, and recoveries
 * from each of the checkpoints, and from the log alone. To be imported after engine-all-atomics.ts.
 */

import type { CheckpointWriter } from "../../src/log/checkpoint/writer.ts";
import { EPOCH_LOW } from "../../src/memory/control.ts";
import { TimeoutError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { Churn } from "./churn.ts";
import { hookAtomics } from "./engine-atomics.ts";
import { differences, NARROW, RecoveryStore, repeatedIncarnations } from "./recovery-store.ts";

const EPOCHS = [31, 4_096, 2 ** 31, 2 ** 32, 2 ** 43];
const LONG_COPY_WORDS = 64;

/** A step of the writer in whose middle others go on: between any two looks, and while it copies. */
function disturbedStep(writer: CheckpointWriter, random: Random, disturb: () => void): boolean {
  const every = 1 + random.below(2_000);
  let left = 4;
  let isDisturbing = false;
  const maybe = (): void => {
    if (isDisturbing || left-- <= 0) return;
    isDisturbing = true;
    disturb();
    isDisturbing = false;
  };
  const { prototype } = Int32Array;
  const set = prototype.set;
  // Long copies are made in two halves, in any order.
  prototype.set = function (this: Int32Array, from: ArrayLike<number>, at = 0): void {
    const isTorn = from instanceof Int32Array && from.length >= LONG_COPY_WORDS && !isDisturbing;
    if (!isTorn || random.below(4) > 0) {
      set.call(this, from, at);
      return;
    }
    const cut = random.below(from.length);
    const isForward = random.below(2) === 0;
    if (isForward) set.call(this, from.subarray(0, cut), at);
    else set.call(this, from.subarray(cut), at + cut);
    maybe();
    if (isForward) set.call(this, from.subarray(cut), at + cut);
    else set.call(this, from.subarray(0, cut), at);
  };
  const off = hookAtomics({
    afterLoad: () => {
      if (random.below(every) === 0) maybe();
    },
  });
  try {
    return writer.step();
  } finally {
    off();
    prototype.set = set;
  }
}

/** A step in the middle of a commit, which may have to wait for it: then it is made later. */
function tryStep(writer: CheckpointWriter): boolean {
  try {
    return writer.step();
  } catch (error) {
    if (error instanceof TimeoutError) return true;
    throw error;
  }
}

/** Other work in whose middle the writer takes a step or two. */
function stepInside(writer: CheckpointWriter, random: Random, work: () => void): boolean {
  const every = 1 + random.below(100);
  let isMore = true;
  const off = hookAtomics({
    after: () => {
      if (isMore && random.below(every) === 0) isMore = tryStep(writer);
    },
  });
  try {
    work();
  } finally {
    off();
  }
  return isMore;
}

function takeCheckpoint(
  store: RecoveryStore,
  executorOfLog: ReturnType<RecoveryStore["store"]["open"]>,
  churn: Churn,
  random: Random,
): string {
  const writer = store.begin(executorOfLog, random.below(3) > 0);
  for (let isMore = true; isMore; ) {
    const how = random.below(10);
    if (how < 2) isMore = writer.step();
    else if (how < 4) isMore = disturbedStep(writer, random, () => churn.step());
    else if (how < 6) {
      let release: (() => void) | undefined = churn.prepareReleases();
      isMore = disturbedStep(writer, random, () => {
        release?.();
        release = undefined;
        churn.step();
      });
      release?.();
    } else if (how < 9) isMore = stepInside(writer, random, () => churn.step());
    else {
      churn.die(() => {
        isMore = tryStep(writer);
      });
    }
    for (let i = random.below(5); i > 0; i--) churn.step();
  }
  return store.publish(executorOfLog, writer);
}

/** What is not as it was after the recoveries of a seed. */
export function problemsOf(seed: number): string[] {
  const problems: string[] = [];
  const random = new Random(seed);
  const store = new RecoveryStore({ ...NARROW, regions: 1 + random.below(3) });
  try {
    // Epochs lie anywhere, and those of one seed on both sides of where their halves meet.
    const { control } = store.store.memory;
    const epoch = EPOCHS[random.below(EPOCHS.length)] - random.below(30);
    Atomics.store(control.i64, EPOCH_LOW / 2, BigInt(epoch));
    const executorOfLog = store.store.open();
    const flush = (): void => store.flush(executorOfLog);
    const churn = new Churn(store.store, random, 1 + random.below(3), flush);
    const names: (string | undefined)[] = [undefined];
    for (let i = 1 + random.below(3); i > 0; i--) {
      for (let steps = random.below(40); steps > 0; steps--) churn.step();
      names.push(takeCheckpoint(store, executorOfLog, churn, random));
    }
    for (let steps = random.below(20); steps > 0; steps--) churn.step();
    flush();
    for (const name of names) {
      const recovered = store.recover(name, 1 + random.below(2));
      try {
        const from = name ?? "the log alone";
        const found = [
          ...differences(store.store.memory, recovered.memory, churn.dataWordsAt),
          ...repeatedIncarnations(store.batches, recovered.memory),
        ];
        problems.push(...found.map((problem) => `from ${from}: ${problem}`));
      } finally {
        recovered.dispose();
      }
    }
  } finally {
    store.dispose();
  }
  return problems;
}
