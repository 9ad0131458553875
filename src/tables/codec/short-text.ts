/**
 * Short ASCII texts, read and written without a call into native code, which takes longer than the text itself. To
 * read one, all its characters are passed to one call of `String.fromCharCode`, which V8 makes a string of at once; a
 * string that is built character by character is copied with each of them. So there is a case for each length, and the
 * source of these is generated. Whatever is not ASCII is left to others.
 */

import { compile } from "./compile.ts";

/** Up to here, reading a text this way beats the call into native code. */
export const SHORT_TEXT_BYTES = 24;
/** Up to here, writing characters one by one does. */
export const SHORT_WRITE_BYTES = 32;

type Read = (u8: Uint8Array, at: number, length: number) => string | undefined;

function readSource(): string {
  const cases = Array.from({ length: SHORT_TEXT_BYTES }, (_, index) => {
    const codes = Array.from({ length: index + 1 }, (_, place) => `c${place}`);
    const loads = codes.map((code, place) => `${code} = u8[at + ${place}]`).join(", ");
    return (
      `case ${index + 1}: { const ${loads}; ` +
      `return (${codes.join(" | ")}) < 0x80 ? String.fromCharCode(${codes.join(", ")}) : undefined; }`
    );
  });
  return `"use strict";
return (u8, at, length) => {
  switch (length) {
    case 0: return "";
    ${cases.join("\n    ")}
    default: return undefined;
  }
};`;
}

let read: Read | undefined;

/** The text of so many bytes; undefined if it is long, or not ASCII. */
export function shortText(u8: Uint8Array, at: number, length: number): string | undefined {
  // Not when this file is loaded: a process that does not allow generated code is told so when it opens a table.
  read ??= compile(readSource(), [])() as Read;
  return read(u8, at, length);
}

/** Writes a text; false if it is long, or not ASCII: then anything may lie in its place. */
export function writeShortText(u8: Uint8Array, at: number, text: string): boolean {
  const { length } = text;
  if (length > SHORT_WRITE_BYTES) return false;
  let all = 0;
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    all |= code;
    u8[at + i] = code;
  }
  return all < 0x80;
}
