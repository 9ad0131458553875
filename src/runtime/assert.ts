/** A broken invariant stops the program: going on would spread the damage to shared memory. */
export class AssertionError extends Error {
  override readonly name = "AssertionError";
}

export function assert(holds: boolean, invariant: string): asserts holds {
  if (!holds) throw new AssertionError(`broken invariant: ${invariant}`);
}
