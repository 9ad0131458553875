/** Messages between compute servers and memory servers that are rare, and short enough to be JSON. */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { Message } from "../message.ts";

export class JsonMessage<Answer> extends Message {
  readonly kind: number;
  readonly #request: object;
  #answer: { readonly value: Answer } | undefined;

  constructor(to: NodeId, kind: number, request: object) {
    super(to);
    this.kind = kind;
    this.#request = request;
  }

  /** Throws what went wrong. */
  get answer(): Answer {
    if (this.#answer === undefined) {
      throw this.error ?? new SituError("SITU_LOST", `memory server ${this.to} has not answered`);
    }
    return this.#answer.value;
  }

  encode(out: Writer): void {
    out.text(JSON.stringify(this.#request));
  }

  protected decode(reply: Reader): void {
    this.#answer = { value: JSON.parse(reply.text()) as Answer };
  }
}

/** At the server: the request as an object, of which nothing is known yet. */
export function requestOf(incoming: Incoming): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(incoming.body.text());
  } catch (error) {
    if (error instanceof SituError) throw error;
    throw bad("a request is JSON");
  }
  if (typeof value !== "object" || value === null) throw bad("a request is an object");
  return value as Record<string, unknown>;
}

export function answer(incoming: Incoming, value: object): void {
  incoming.reply().text(JSON.stringify(value));
}

export function wholeOf(value: unknown, what: string, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) {
    return value as number;
  }
  throw bad(`${what} is a whole number from ${least} to ${most}`);
}

export function textOf(value: unknown, what: string, mostBytes: number): string {
  if (typeof value === "string" && Buffer.byteLength(value) <= mostBytes) return value;
  throw bad(`${what} is a string of at most ${mostBytes} bytes`);
}

function bad(why: string): SituError {
  return new SituError("SITU_PROTOCOL", `a memory server cannot read a request: ${why}`);
}
