/**
 * A typed text as statements, and a statement as words. Statements end at a new line or a
 * semicolon, unless that is inside quotes or brackets; so a row may be written over several lines.
 * A line that begins with # is a comment.
 */

import { SituError } from "../../../runtime/errors.ts";

export interface Word {
  readonly text: string;
  /** A group is all from a bracket to the one that closes it. */
  readonly kind: "bare" | "quoted" | "group";
  /** Where it begins and ends in the statement. */
  readonly start: number;
  readonly end: number;
}

const CLOSING: Readonly<Record<string, string>> = { "{": "}", "[": "]" };

/** Behind the quote that closes the one at `start`; beyond the text if none does. */
function afterQuote(text: string, start: number): number {
  const quote = text[start];
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === quote) return at + 1;
  }
  return text.length + 1;
}

/** Behind the bracket that closes the one at `start`; beyond the text if none does. */
function afterGroup(text: string, start: number): number {
  const open: string[] = [];
  for (let at = start; at < text.length; ) {
    const character = text[at];
    if (character === '"' || character === "'") {
      at = afterQuote(text, at);
      continue;
    }
    if (CLOSING[character] !== undefined) open.push(CLOSING[character]);
    else if (character === open.at(-1)) open.pop();
    at++;
    if (open.length === 0) return at;
  }
  return text.length + 1;
}

function afterWord(text: string, start: number): number {
  const character = text[start];
  if (character === '"' || character === "'") return afterQuote(text, start);
  if (CLOSING[character] !== undefined) return afterGroup(text, start);
  let at = start;
  while (at < text.length && !/[\s;"'{[]/.test(text[at])) at++;
  return Math.max(at, start + 1);
}

export interface Split {
  /** Statements that have come to their end. */
  readonly statements: readonly string[];
  /** The rest, if a bracket or quote is still open. */
  readonly rest: string;
}

export function splitStatements(text: string): Split {
  const statements: string[] = [];
  let start = 0;
  let at = 0;
  const end = (next: number): void => {
    const statement = text.slice(start, at).trim();
    if (statement !== "") statements.push(statement);
    start = next;
    at = next;
  };
  while (at < text.length) {
    const character = text[at];
    const isEmpty = text.slice(start, at).trim() === "";
    if (character === "#" && isEmpty) {
      const line = text.indexOf("\n", at);
      start = at = line < 0 ? text.length : line;
    } else if (character === "\n" || character === ";") end(at + 1);
    else if (/\s/.test(character)) at++;
    else {
      at = afterWord(text, at);
      if (at > text.length) return { statements, rest: text.slice(start) };
    }
  }
  end(at);
  return { statements, rest: "" };
}

/** The words of one statement. A quote or bracket that nothing closes is an error. */
export function wordsOf(statement: string): Word[] {
  const words: Word[] = [];
  for (let at = 0; at < statement.length; ) {
    if (/\s/.test(statement[at])) {
      at++;
      continue;
    }
    const end = afterWord(statement, at);
    if (end > statement.length) {
      const what = `${statement[at]} at character ${at + 1} is not closed`;
      throw new SituError("SITU_TYPE", what);
    }
    const first = statement[at];
    const kind = first === '"' || first === "'" ? "quoted" : CLOSING[first] ? "group" : "bare";
    words.push({ text: statement.slice(at, end), kind, start: at, end });
    at = end;
  }
  return words;
}
