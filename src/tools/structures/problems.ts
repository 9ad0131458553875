/**
 * What checks have found wrong: plain sentences, each with the structure, the place in it and what
 * is wrong there. A store that is damaged all over gives millions of them, so only the first ones
 * are kept, and all are counted.
 */

/** Where a check looks just now, told only if something is wrong there. */
export interface Place {
  toString(): string;
}

export class Problems {
  readonly list: string[] = [];
  count = 0;
  readonly #most: number;
  /** What is being checked: every sentence begins with it. */
  readonly #subject: string;
  readonly #parent: Problems | undefined;

  constructor(most: number, subject: string, parent?: Problems) {
    this.#most = most;
    this.#subject = subject;
    this.#parent = parent;
  }

  /** Those of a part, which count for the whole, too. */
  of(subject: string): Problems {
    return new Problems(this.#most, subject, this);
  }

  add(place: Place | undefined, what: string): void {
    const where = place === undefined ? this.#subject : `${this.#subject}: ${place}`;
    this.#keep(() => `${where}: ${what}`);
  }

  /** Adds all that another one has. */
  takeOver(other: Problems): void {
    this.count += other.count - other.list.length;
    for (const sentence of other.list) this.#keep(() => sentence);
  }

  #keep(sentence: () => string): void {
    this.count++;
    if (this.list.length < this.#most) this.list.push(sentence());
    if (this.#parent !== undefined) this.#parent.#keep(sentence);
  }
}
