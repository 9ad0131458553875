/**
 * The timestamps of one slot between being taken and being published. Threads that share the slot finish in any order;
 * only up to the first one that is not finished may anything be published. One write is under way at a time:
 * two of them might arrive in the other order, and the slot would go back.
 */

export class PublishWindow {
  /** All up to here is finished. */
  upTo = 0;
  #taken = 0;
  #published = 0;
  #isWriting = false;
  readonly #finished = new Set<number>();

  /** Another life of the slot: everything of the one before is settled. */
  resume(published: number): void {
    this.upTo = published;
    this.#taken = published;
    this.#published = published;
    this.#isWriting = false;
    this.#finished.clear();
  }

  /** The last timestamp that was taken. */
  get taken(): number {
    return this.#taken;
  }

  take(): number {
    return ++this.#taken;
  }

  finish(timestamp: number): void {
    this.#finished.add(timestamp);
    while (this.#finished.delete(this.upTo + 1)) this.upTo++;
  }

  /** The last one that was taken can be taken again, if nothing has used it. */
  giveBack(timestamp: number): boolean {
    if (timestamp !== this.#taken || this.upTo !== timestamp - 1) return false;
    this.#taken--;
    return true;
  }

  get isAhead(): boolean {
    return this.upTo > this.#published;
  }

  /** False if somebody writes already: that one goes on until nothing is left. */
  begin(): boolean {
    if (this.#isWriting) return false;
    this.#isWriting = true;
    return true;
  }

  published(upTo: number): void {
    this.#published = upTo;
  }

  end(): void {
    this.#isWriting = false;
  }
}
