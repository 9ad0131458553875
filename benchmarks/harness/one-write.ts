// Clients of servers write each request to their socket by itself: with many in flight, system calls
// are most of what they cost. Here, all that is asked for within one turn leaves in one write.
export interface Corkable {
  cork(): void;
  uncork(): void;
}

export class OneWrite {
  readonly #stream: Corkable;
  #isHeld = false;

  constructor(stream: Corkable) {
    this.#stream = stream;
  }

  /** To be called before a request: holds the stream back until this turn's promises have run. */
  gather(): void {
    if (this.#isHeld) return;
    this.#isHeld = true;
    this.#stream.cork();
    process.nextTick(this.#release);
  }

  readonly #release = (): void => {
    this.#isHeld = false;
    this.#stream.uncork();
  };
}
