/**
 * The promise of one operation. It knows whether anybody looks at it: the failure of an operation
 * that was not awaited must fail the transaction, and not vanish or end the process.
 */
export class Operation<T> extends Promise<T> {
  observed = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: noticing who waits is what this class is for
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.observed = true;
    return super.then(onFulfilled, onRejected);
  }

  /** Before it fails: that nobody awaits it is the transaction's affair, and does not end the process. */
  silence(): void {
    // Not through `then` of the class: this does not count as looking at it.
    super.then(undefined, () => {});
  }
}
