/** Serves the reads of remote lookups from memory, with something else happening between them. */

import { ENTRY_WORDS, READ } from "../../src/engine/access-set.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import { ReadObject } from "../../src/fabric/verbs.ts";
import { LOCK, VERSION_HIGH, VERSION_LOW } from "../../src/memory/object.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import type { Answer, Dependency, Reading, Wanted } from "../../src/stores/remote/remote.ts";

/** Reads an object as the node would that has it. */
export function answer(memory: StoreMemory, { regionId, word, dataWords }: Wanted): Answer {
  let failure: Error | undefined;
  const verb = new ReadObject(regionId, word, dataWords, (_, error) => {
    failure = error;
  });
  verb.apply(memory);
  if (failure !== undefined) throw failure;
  return verb;
}

/** Runs a coroutine to its end; `between` is called before each of its reads. */
export function serve<T>(memory: StoreMemory, reading: Reading<T>, between?: () => void): T {
  let step = reading.next([]);
  while (step.done !== true) {
    const answers = step.value.map((wanted) => {
      between?.();
      return answer(memory, wanted);
    });
    step = reading.next(answers);
  }
  return step.value;
}

/** Whether all of them hold just now. */
export function areCurrent(memory: StoreMemory, dependencies: readonly Dependency[]): boolean {
  return dependencies.every(({ regionId, word, versionHigh, versionLow }) => {
    const { i32 } = memory.region(regionId);
    return (
      i32[word + LOCK] === 0 &&
      i32[word + VERSION_HIGH] === versionHigh &&
      i32[word + VERSION_LOW] === versionLow
    );
  });
}

export function shown(dependencies: readonly Dependency[]): string[] {
  return dependencies
    .map((each) => [each.regionId, each.word, each.versionHigh, each.versionLow].join(" "))
    .sort();
}

/** What a transaction depends on, in the same form. */
export function readSet({ set }: Transaction): string[] {
  const { words, end } = set;
  const found: string[] = [];
  for (let entry = 0; entry < end; entry += ENTRY_WORDS) {
    if ((set.kindOf(entry) & READ) !== 0)
      found.push([...words.subarray(entry, entry + 4)].join(" "));
  }
  return found.sort();
}
