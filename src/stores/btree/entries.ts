/**
 * A list of entries outside of any node, while nodes are rebuilt from them: for a split, the
 * entries of a full node and a new one; for a merge, those of two nodes. Kept from one use to the
 * next. An entry is the words of its key, the key, and the payload.
 */

export class Entries {
  count = 0;
  words = new Int32Array(4096);
  #starts = new Int32Array(1024);
  #top = 0;

  clear(): void {
    this.count = 0;
    this.#top = 0;
  }

  add(
    key: Int32Array,
    keyAt: number,
    keyWords: number,
    payload: Int32Array,
    payloadAt: number,
    payloadWords: number,
  ): void {
    const start = this.#top;
    const end = start + 1 + keyWords + payloadWords;
    this.#room(end);
    const { words } = this;
    words[start] = keyWords;
    for (let i = 0; i < keyWords; i++) words[start + 1 + i] = key[keyAt + i];
    const to = start + 1 + keyWords;
    for (let i = 0; i < payloadWords; i++) words[to + i] = payload[payloadAt + i];
    this.#starts[this.count++] = start;
    this.#top = end;
  }

  keyWords(index: number): number {
    return this.words[this.#starts[index]];
  }

  /** Where the key of an entry begins in `words`; the payload follows it. */
  keyAt(index: number): number {
    return this.#starts[index] + 1;
  }

  key(index: number): Int32Array {
    const at = this.keyAt(index);
    return this.words.slice(at, at + this.keyWords(index));
  }

  /** The shortest key that is above the one before `index` and not above the one at it. */
  separator(index: number): Int32Array {
    const before = this.keyAt(index - 1);
    const at = this.keyAt(index);
    const most = Math.min(this.keyWords(index - 1), this.keyWords(index));
    let same = 0;
    while (same < most && this.words[before + same] === this.words[at + same]) same++;
    return this.words.slice(at, at + Math.min(same + 1, this.keyWords(index)));
  }

  #room(words: number): void {
    if (words > this.words.length) {
      const longer = new Int32Array(2 * words);
      longer.set(this.words);
      this.words = longer;
    }
    if (this.count === this.#starts.length) {
      const longer = new Int32Array(2 * this.count);
      longer.set(this.#starts);
      this.#starts = longer;
    }
  }
}
