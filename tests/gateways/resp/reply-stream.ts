/** Replies out of a stream, one by one as they become complete. Knows where one ends, not what it says. */

const COLLECTIONS = "*~>";
const STRINGS = "$=";

export class ReplyStream {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;

  push(chunk: Buffer): void {
    const rest = this.#bytes.subarray(this.#at);
    this.#bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    this.#at = 0;
  }

  /** Bytes that belong to no complete reply yet. */
  get rest(): number {
    return this.#bytes.length - this.#at;
  }

  /** The bytes of the next reply, or undefined. */
  next(): Buffer | undefined {
    const end = this.#end(this.#at);
    if (end < 0) return undefined;
    const reply = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return reply;
  }

  #end(start: number): number {
    const line = this.#bytes.indexOf("\r\n", start);
    if (line < 0) return -1;
    const type = String.fromCharCode(this.#bytes[start]);
    const count = Number(this.#bytes.toString("latin1", start + 1, line));
    let at = line + 2;
    if (STRINGS.includes(type)) {
      at += count < 0 ? 0 : count + 2;
      return at <= this.#bytes.length ? at : -1;
    }
    const elements = COLLECTIONS.includes(type) ? count : type === "%" ? 2 * count : 0;
    for (let i = 0; i < elements && at >= 0; i++) at = this.#end(at);
    return at;
  }
}
