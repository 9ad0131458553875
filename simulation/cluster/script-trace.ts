/**
 * The trace of a scripted run, for people: a line for each request, with what became of it, in the order
 * in which they were sent; what comes many times in a row is one line. Messages of a node to itself do not pass the fabric and are not in it.
 */

import { FIRST_MESSAGE_KIND } from "../../src/fabric/fabric.ts";
import { readError } from "../../src/fabric/frames.ts";
import {
  FLAG_ERROR,
  FLAG_REPLY,
  FRAME_HEADER_WORDS,
  KIND_MASK,
  Reader,
} from "../../src/fabric/wire.ts";
import { Views } from "../../src/memory/views.ts";
import {
  KIND_NAMES,
  LOCK,
  READ,
  READ_LOCK,
  SCAN,
  SUBMIT,
  VALIDATE,
} from "../../src/protocols/kinds.ts";
import type { TraceFrame, TraceLine } from "../fabric/trace.ts";

/** What the first word of a reply means. */
const OUTCOMES: Readonly<Record<number, readonly string[]>> = {
  [READ]: ["ok", "locked", "over"],
  [READ_LOCK]: ["ok", "locked", "over"],
  [LOCK]: ["ok", "locked", "over"],
  [SCAN]: ["ok", "locked", "over"],
  [VALIDATE]: ["changed", "valid"],
  [SUBMIT]: ["committed", "aborted", "refused", "unknown"],
};
const VERBS: Readonly<Record<number, string>> = { 1: "verb READ", 2: "verb READ OBJECT" };

interface Entry {
  readonly atUs: number;
  readonly text: string;
  outcome: string;
}

export class ScriptTrace {
  /** Nothing is kept before the scenario begins. */
  isOn = false;
  #startUs = 0;
  readonly #entries: Entry[] = [];
  /** Requests that have no outcome yet, by who sent them and their number. */
  readonly #open = new Map<string, Entry>();

  /** Times are counted from here. */
  begin(startUs: number): void {
    this.isOn = true;
    this.#startUs = startUs;
  }

  /** Something that the scenario does or sees. */
  tell(atUs: number, text: string): void {
    this.#entries.push({ atUs, text, outcome: "" });
  }

  /** For the trace of a fabric. */
  look(line: TraceLine, frame: TraceFrame | undefined): void {
    const { atUs, what, from, to, kind, id, hash } = line;
    if (!this.isOn) return;
    if (what === "lost") this.#end(from, hash, "no answer");
    if (frame === undefined) return;
    const isReply = (kind & FLAG_REPLY) !== 0;
    if (what === "sent" && !isReply) {
      const text = `${nameOf(from)} → ${nameOf(to)}  ${phaseOf(kind & KIND_MASK)}`;
      const entry = { atUs, text, outcome: "" };
      this.#entries.push(entry);
      this.#open.set(`${from} ${id}`, entry);
    } else if (what === "dropped" && isReply) this.#end(to, id, "the answer is dropped");
    else if (what === "dropped") this.#end(from, id, "dropped");
    else if (what === "replied") this.#end(from === to ? from : to, id, outcomeOf(kind, frame));
  }

  get text(): string {
    let lines = "";
    for (let i = 0, next = 0; i < this.#entries.length; i = next) {
      const { atUs, text, outcome } = this.#entries[i];
      const isSame = (other: Entry | undefined): boolean =>
        other?.text === text && other.outcome === outcome;
      for (next = i + 1; isSame(this.#entries[next]); ) next++;
      const time = ((atUs - this.#startUs) / 1e3).toFixed(3).padStart(9);
      const line = outcome === "" ? text : `${text.padEnd(24)}  ${outcome}`;
      lines += `${time}  ${line}${next - i > 1 ? `, ${next - i} times` : ""}\n`;
    }
    return lines;
  }

  /** The first thing that is told of a request stays. */
  #end(from: number, id: number, outcome: string): void {
    const entry = this.#open.get(`${from} ${id}`);
    if (entry === undefined) return;
    this.#open.delete(`${from} ${id}`);
    entry.outcome = outcome;
  }
}

/** Nodes are numbers, clients c1, c2 … */
function nameOf(id: number): string {
  return id >= 0 ? `${id}` : `c${-id}`;
}

function phaseOf(kind: number): string {
  if (kind < FIRST_MESSAGE_KIND) return VERBS[kind] ?? `verb ${kind}`;
  return (KIND_NAMES[kind] ?? `kind ${kind}`).toUpperCase();
}

function outcomeOf(kind: number, { i32, at, end }: TraceFrame): string {
  if ((kind & FLAG_ERROR) !== 0) {
    const views = new Views(i32.buffer as ArrayBuffer);
    return readError(new Reader(views).reset(views, at + FRAME_HEADER_WORDS, end)).code;
  }
  const names = OUTCOMES[kind & KIND_MASK];
  return names === undefined ? "ok" : (names[i32[at + FRAME_HEADER_WORDS]] ?? "?");
}
