/**
 * A client's side of the protocol, for tests: replies of RESP2 and RESP3 as values that show which
 * form they had. Plain and independent of what writes them.
 */

export type Reply =
  | { readonly simple: string }
  | { readonly error: string }
  | { readonly integer: bigint }
  | { readonly bulk: string }
  | { readonly double: string }
  | { readonly boolean: boolean }
  | { readonly verbatim: readonly [string, string] }
  | { readonly bigNumber: bigint }
  | { readonly array: readonly Reply[] }
  | { readonly set: readonly Reply[] }
  | { readonly push: readonly Reply[] }
  | { readonly map: readonly (readonly [Reply, Reply])[] }
  | { readonly nil: "bulk" | "array" | "null" };

class Reader {
  readonly #text: string;
  at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isDone(): boolean {
    return this.at === this.#text.length;
  }

  #line(): string {
    const end = this.#text.indexOf("\r\n", this.at);
    if (end < 0) throw new Error(`a line without an end at ${this.at}`);
    const line = this.#text.slice(this.at, end);
    if (/[\r\n]/.test(line)) throw new Error(`a line end inside of a line at ${this.at}`);
    this.at = end + 2;
    return line;
  }

  #data(length: number): string {
    const data = this.#text.slice(this.at, this.at + length);
    this.at += length + 2;
    const end = this.#text.slice(this.at - 2, this.at);
    if (data.length !== length || end !== "\r\n") throw new Error(`no line end at ${this.at - 2}`);
    return data;
  }

  #many(count: number): Reply[] {
    return Array.from({ length: count }, () => this.reply());
  }

  reply(): Reply {
    const line = this.#line();
    const rest = line.slice(1);
    const count = Number(rest);
    switch (line[0]) {
      case "+":
        return { simple: rest };
      case "-":
        return { error: rest };
      case ":":
        return { integer: BigInt(rest) };
      case "$":
        return rest === "-1" ? { nil: "bulk" } : { bulk: this.#data(size(rest)) };
      case "*":
        return rest === "-1" ? { nil: "array" } : { array: this.#many(size(rest)) };
      case "%":
        return { map: Array.from({ length: size(rest) }, () => [this.reply(), this.reply()]) };
      case "~":
        return { set: this.#many(size(rest)) };
      case ">":
        return { push: this.#many(size(rest)) };
      case "_":
        if (rest !== "") throw new Error("a null with something in it");
        return { nil: "null" };
      case "#":
        if (rest !== "t" && rest !== "f") throw new Error(`no boolean: ${rest}`);
        return { boolean: rest === "t" };
      case ",":
        if (Number.isNaN(count) && !/^(-?inf|nan)$/.test(rest))
          throw new Error(`no double: ${rest}`);
        return { double: rest };
      case "(":
        return { bigNumber: BigInt(rest) };
      case "=": {
        const data = this.#data(size(rest));
        if (data[3] !== ":") throw new Error("a verbatim string without a format");
        return { verbatim: [data.slice(0, 3), data.slice(4)] };
      }
      default:
        throw new Error(`no reply begins with ${JSON.stringify(line[0])}`);
    }
  }
}

function size(text: string): number {
  if (!/^(0|[1-9][0-9]*)$/.test(text)) throw new Error(`no length: ${text}`);
  return Number(text);
}

/** All replies in these bytes; texts are Latin-1 strings, one character a byte. */
export function parseReplies(bytes: Uint8Array): Reply[] {
  const reader = new Reader(Buffer.from(bytes).toString("latin1"));
  const replies: Reply[] = [];
  while (!reader.isDone) replies.push(reader.reply());
  return replies;
}
