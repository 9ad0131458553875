/**
 * Log: the transaction goes to the journals of all backups before any primary installs it (FaRM
 * §3.4: commit messages go first to the replicas). From the last acknowledgement on it is
 * committed, whatever happens to the primaries.
 *
 *   message  name, writes: those whose partitions the backup has
 *   reply    nothing
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { LOG } from "../kinds.ts";
import { Message } from "../message.ts";
import type { Name } from "../names.ts";

/** Beside the writes: headers of frames, epochs, a name, and how much there is; rather too many. */
const RECORD_WORDS = 32;

/** Writes of several parts, for one backup: where they lie, not copies of them. */
export class LogWrites {
  count = 0;
  #words = 0;
  readonly #sources: Int32Array[] = [];
  readonly #places: number[] = [];

  /** Words of a record that holds them, its name included. */
  get recordWords(): number {
    return RECORD_WORDS + this.#words;
  }

  add(source: Int32Array, at: number): void {
    this.#sources.push(source);
    this.#places.push(at);
    this.#words += source[at];
    this.count++;
  }

  encode(out: Writer): void {
    out.word(this.count);
    out.word(this.#words);
    out.align();
    for (let i = 0; i < this.count; i++) {
      const source = this.#sources[i];
      out.words(source, this.#places[i], source[this.#places[i]]);
    }
  }
}

export class Log extends Message {
  readonly kind = LOG;
  override readonly isInsistent = true;
  readonly #name: Name;
  readonly #writes: LogWrites;

  constructor(to: NodeId, name: Name, writes: LogWrites) {
    super(to);
    this.#name = name;
    this.#writes = writes;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    this.#writes.encode(out);
  }

  protected decode(_reply: Reader): void {}
}
