/**
 * Stops code at its atomic operations. Every step of the commit and recovery protocols that another
 * executor can notice is one of these, so "at the k-th one" names each point of a protocol.
 * Nothing is patched while no test asks for it.
 */

type Words = Int32Array | BigInt64Array;
type Value = number | bigint;
type Operation = "store" | "compareExchange" | "add";

export interface AtomicStep {
  readonly operation: Operation;
  readonly array: Words;
  readonly index: number;
  /** The value stored, added, or put in place by a compare-and-swap. */
  readonly value: Value;
}

export interface AtomicHooks {
  readonly before?: (step: AtomicStep) => void;
  readonly after?: (step: AtomicStep) => void;
  /** After a load; the value is what it returned. */
  readonly afterLoad?: (array: Words, index: number, value: Value) => void;
}

type Changing = (array: Words, index: number, ...values: Value[]) => Value;
type Loading = (array: Words, index: number) => Value;

/** Installs the hooks until the returned function is called. Hooks do not see their own atomics. */
export function hookAtomics(hooks: AtomicHooks): () => void {
  const originals = new Map<string, unknown>();
  let inHook = false;
  const guarded = (work: () => void): void => {
    if (inHook) return;
    inHook = true;
    try {
      work();
    } finally {
      inHook = false;
    }
  };
  for (const operation of ["store", "compareExchange", "add"] as const) {
    const original = Atomics[operation] as unknown as Changing;
    originals.set(operation, original);
    const replaced: Changing = (array, index, ...values) => {
      const step = { operation, array, index, value: values[values.length - 1] };
      if (hooks.before) guarded(() => hooks.before?.(step));
      const result = original(array, index, ...values);
      if (hooks.after) guarded(() => hooks.after?.(step));
      return result;
    };
    Reflect.set(Atomics, operation, replaced);
  }
  if (hooks.afterLoad) {
    const original = Atomics.load as unknown as Loading;
    originals.set("load", original);
    const replaced: Loading = (array, index) => {
      const value = original(array, index);
      guarded(() => hooks.afterLoad?.(array, index, value));
      return value;
    };
    Reflect.set(Atomics, "load", replaced);
  }
  return () => {
    for (const [name, original] of originals) Reflect.set(Atomics, name, original);
  };
}

export type When = "before" | "after";

/** Calls `act` before or after the k-th atomic change, counted from 1; counts on after it. */
export function atStep(k: number, when: When, act: () => void): { count(): number; off(): void } {
  let steps = 0;
  const off = hookAtomics({
    before: () => {
      steps++;
      if (when === "before" && steps === k) act();
    },
    after: () => {
      if (when === "after" && steps === k) act();
    },
  });
  return { count: () => steps, off };
}

/** Thrown through an executor that a test lets die in the middle of something. */
export class Death extends Error {
  override readonly name = "Death";
}

/** Runs `work` and lets it die at its k-th atomic change; says whether it came that far. */
export function dieAt(k: number, when: When, work: () => void): boolean {
  const point = atStep(k, when, () => {
    throw new Death(`${when} step ${k}`);
  });
  try {
    work();
    return false;
  } catch (error) {
    if (error instanceof Death) return true;
    throw error;
  } finally {
    point.off();
  }
}
