// Texts of all lengths around the limits up to which they are read and written without native code.
import { describe, expect, it } from "vitest";
import { Views } from "../../src/memory/views.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import {
  SHORT_TEXT_BYTES,
  SHORT_WRITE_BYTES,
  shortText,
} from "../../src/tables/codec/short-text.ts";
import { readInlineString, readString } from "../../src/tables/codec/values.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";

const MOST = 60;
const Texts = table("texts", { id: u32(), fixed: str(MOST), free: str() }, { key: "id" });

const ascii = (length: number): string =>
  String.fromCharCode(...Array.from({ length }, (_, i) => (i * 37 + length) % 128));

/** Of as many bytes, if that can be: with one character of two, three or four bytes in it. */
function mixed(length: number): string[] {
  return ["é", "\u0080", "߿", "€", "\uffff", "😀"].flatMap((character) => {
    const rest = length - Buffer.byteLength(character);
    return rest < 0 ? [] : [ascii(rest) + character, character + ascii(rest)];
  });
}

describe("texts in rows", () => {
  const codec = codecOf(Texts);

  it("come back as they were, of each length", () => {
    for (let length = 0; length <= MOST; length++) {
      for (const text of [ascii(length), "\0".repeat(length), ...mixed(length)]) {
        // Behind it lies what an earlier row has left.
        codec.encode({ id: 1, fixed: "x".repeat(MOST), free: "y".repeat(MOST + 20) });
        const words = codec.encode({ id: 1, fixed: text, free: text });
        const row = codec.decode(codec.scratch, 0, words);
        expect(row).toEqual({ id: 1, fixed: text, free: text });
        const bytes = Buffer.from(codec.scratch.u8.slice(0, words * 4));
        const place = 4 + 8;
        expect(bytes[place]).toBe(Buffer.byteLength(text));
        const kept = Buffer.concat([Buffer.from(text), Buffer.alloc(MOST)]).subarray(0, MOST);
        expect(bytes.subarray(place + 1, place + 1 + MOST).equals(kept)).toBe(true);
        const end = bytes.readInt32LE(0) + bytes.readInt32LE(4);
        expect(bytes.subarray(end).every((byte) => byte === 0)).toBe(true);
      }
    }
  });

  it("are refused if they are too long or not well-formed, whatever their length", () => {
    const encode = (fixed: string): unknown => codec.encode({ id: 1, fixed, free: "" });
    expect(() => encode("x".repeat(MOST + 1))).toThrow(/61 bytes, at most 60/);
    expect(() => encode("é".repeat(31))).toThrow(/62 bytes, at most 60/);
    expect(() => encode("a\ud800")).toThrow(/well-formed/);
    expect(() => codec.encode({ id: 1, fixed: "", free: "\udc00b" })).toThrow(/well-formed/);
  });

  it("may be declared shorter than what is written without native code", () => {
    const Short = table("short", { id: u32(), text: str(3), next: str(3) }, { key: "id" });
    const short = codecOf(Short);
    expect(() => short.encode({ id: 1, text: "abcd", next: "" })).toThrow(/4 bytes, at most 3/);
    const words = short.encode({ id: 1, text: "abc", next: "d€".slice(1) });
    expect(short.decode(short.scratch, 0, words)).toEqual({ id: 1, text: "abc", next: "€" });
  });

  it("that torn words place outside of memory are empty", () => {
    const views = new Views(new ArrayBuffer(64));
    views.u8.fill(65);
    views.u8[60] = 5;
    expect(readInlineString(views, 60, 10)).toBe("");
    for (const [offset, length] of [
      [-1, 4],
      [60, 4],
      [8, -4],
      [8, 2 ** 30],
    ]) {
      views.i32[0] = offset;
      views.i32[1] = length;
      expect(readString(views, 0, 0, 15)).toBe("");
    }
    // Inside of what the row claims, but beyond the memory.
    views.i32[0] = 60;
    views.i32[1] = 8;
    expect(readString(views, 0, 0, 1000)).toBe("");
  });

  it("that are short and ASCII need no native code, others do", () => {
    const bytes = new Uint8Array(SHORT_WRITE_BYTES + 8).fill(66);
    expect(shortText(bytes, 3, SHORT_TEXT_BYTES)).toBe("B".repeat(SHORT_TEXT_BYTES));
    expect(shortText(bytes, 3, SHORT_TEXT_BYTES + 1)).toBe(undefined);
    for (let at = 3; at < 3 + SHORT_TEXT_BYTES; at++) {
      bytes[at] = 0x80;
      expect(shortText(bytes, 3, SHORT_TEXT_BYTES)).toBe(undefined);
      bytes[at] = 0x7f;
    }
  });
});

describe("names of fields", () => {
  const codec = codecOf(Texts);
  const encode = (row: object): unknown => codec.encode(row as never);

  it("may come in any order", () => {
    const words = encode({ free: "c", fixed: "b", id: 7 }) as number;
    expect(codec.decode(codec.scratch, 0, words)).toEqual({ id: 7, fixed: "b", free: "c" });
  });

  it("are refused if there is no such field, wherever they stand", () => {
    expect(() => encode({ other: 1, id: 7, fixed: "b", free: "c" })).toThrow(/no field "other"/);
    expect(() => encode({ id: 7, other: 1, fixed: "b", free: "c" })).toThrow(/no field "other"/);
    expect(() => encode({ id: 7, fixed: "b", free: "c", other: 1 })).toThrow(/no field "other"/);
    class Row {
      other = 1;
      get id(): number {
        return 7;
      }
      get fixed(): string {
        return "b";
      }
      get free(): string {
        return "c";
      }
    }
    expect(() => encode(new Row())).toThrow(/no field "other"/);
  });
});
