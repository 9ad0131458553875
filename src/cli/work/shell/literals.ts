/**
 * Values as people write them: JSON, and what JSON has no word for. Names of fields need no
 * quotes, quotes may be single, 12n is a bigint, and so is a whole number that a double cannot
 * hold; 0x00ff is bytes, and so is a text with \x escapes, which are bytes and not characters.
 */

import { SituError } from "../../../runtime/errors.ts";

const NUMBER = /-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?/iy;
const BYTES = /0x(?:[0-9a-f]{2})*(?![0-9a-z_])/iy;
const NAME = /[A-Za-z_$][\w$]*/y;
const SPACE = /\s*/y;
const NAMED: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  null: null,
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
};
const ESCAPES: Readonly<Record<string, string>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  b: "\b",
  f: "\f",
  v: "\v",
  "0": "\0",
};
const MAX_DEPTH = 100;

/** The value that a text is, all of it. */
export function parseLiteral(text: string): unknown {
  const parser = new Parser(text);
  const value = parser.value(0);
  parser.end();
  return value;
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): unknown {
    if (depth > MAX_DEPTH) this.#refuse("the value is nested too deeply");
    this.#match(SPACE);
    const character = this.#text[this.#at];
    if (character === "{") return this.#object(depth);
    if (character === "[") return this.#list(depth);
    if (character === '"' || character === "'") return this.#quoted();
    const hex = this.#match(BYTES);
    if (hex !== undefined) return new Uint8Array(Buffer.from(hex.slice(2), "hex"));
    const number = this.#match(NUMBER);
    if (number !== undefined) return this.#number(number);
    const isNegative = this.#text.startsWith("-Infinity", this.#at);
    if (isNegative) this.#at++;
    const start = this.#at;
    const name = this.#match(NAME);
    if (name !== undefined && Object.hasOwn(NAMED, name)) {
      return isNegative ? Number.NEGATIVE_INFINITY : NAMED[name];
    }
    this.#at = start;
    const why = name === undefined ? "a value is missing" : `put ${name} in quotes`;
    return this.#refuse(why);
  }

  end(): void {
    this.#match(SPACE);
    if (this.#at < this.#text.length) this.#refuse("unexpected text");
  }

  #number(text: string): number | bigint {
    if (/[\w$]/.test(this.#text[this.#at] ?? "")) this.#refuse(`${text}… is not a number`);
    if (text.endsWith("n")) {
      if (!/^-?\d+n$/.test(text)) this.#refuse(`${text} is not an integer`);
      return BigInt(text.slice(0, -1));
    }
    const number = Number(text);
    return /^-?\d+$/.test(text) && !Number.isSafeInteger(number) ? BigInt(text) : number;
  }

  #object(depth: number): Record<string, unknown> {
    // Without a prototype: a field may be called anything.
    const object = Object.create(null) as Record<string, unknown>;
    this.#at++;
    while (!this.#takes("}")) {
      this.#match(SPACE);
      const quote = this.#text[this.#at];
      const isQuoted = quote === '"' || quote === "'";
      const name = isQuoted ? this.#quoted() : this.#match(NAME);
      if (typeof name !== "string") return this.#refuse("a field name is missing");
      if (!this.#takes(":")) this.#refuse(`a colon is missing after ${name}`);
      if (Object.hasOwn(object, name)) this.#refuse(`${name} is given twice`);
      object[name] = this.value(depth + 1);
      if (!this.#takes(",") && !this.#isNext("}")) this.#refuse("a comma or } is missing");
    }
    return object;
  }

  #list(depth: number): unknown[] {
    const list: unknown[] = [];
    this.#at++;
    while (!this.#takes("]")) {
      list.push(this.value(depth + 1));
      if (!this.#takes(",") && !this.#isNext("]")) this.#refuse("a comma or ] is missing");
    }
    return list;
  }

  #quoted(): string | Uint8Array {
    const quote = this.#text[this.#at];
    const parts: (string | number)[] = [];
    let hasBytes = false;
    for (this.#at++; ; this.#at++) {
      const character = this.#text[this.#at];
      if (character === undefined) this.#refuse(`the closing ${quote} of a string is missing`);
      if (character === quote) break;
      if (character !== "\\") {
        parts.push(character);
        continue;
      }
      this.#at++;
      const escaped = this.#escape();
      if (typeof escaped === "number") hasBytes = true;
      parts.push(escaped);
    }
    this.#at++;
    if (!hasBytes) return parts.join("");
    // Texts in between as a whole: a character may be two of JavaScript's.
    const bytes: Buffer[] = [];
    let text = "";
    for (const part of parts) {
      if (typeof part === "string") text += part;
      else {
        bytes.push(Buffer.from(text), Buffer.from([part]));
        text = "";
      }
    }
    return new Uint8Array(Buffer.concat([...bytes, Buffer.from(text)]));
  }

  /** A byte as a number, all else as text. Stands on its last character afterwards. */
  #escape(): string | number {
    const letter = this.#text[this.#at] ?? "";
    if (letter !== "x" && letter !== "u") return ESCAPES[letter] ?? letter;
    const digits = letter === "x" ? 2 : 4;
    const code = this.#text.slice(this.#at + 1, this.#at + 1 + digits);
    if (!/^[0-9a-f]+$/i.test(code) || code.length < digits) {
      this.#refuse(`\\${letter} needs ${digits} hexadecimal digits`);
    }
    this.#at += digits;
    const value = Number.parseInt(code, 16);
    return letter === "x" ? value : String.fromCharCode(value);
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #isNext(character: string): boolean {
    this.#match(SPACE);
    return this.#text[this.#at] === character;
  }

  #takes(character: string): boolean {
    if (!this.#isNext(character)) return false;
    this.#at++;
    return true;
  }

  #refuse(why: string): never {
    const before = this.#text.slice(Math.max(0, this.#at - 20), this.#at);
    const after = this.#text.slice(this.#at, this.#at + 10);
    throw new SituError(
      "SITU_TYPE",
      `${why}, at character ${this.#at + 1}: ${before}⟨here⟩${after}`,
    );
  }
}
