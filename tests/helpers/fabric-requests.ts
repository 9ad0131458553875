/** Requests for tests of fabrics, that remember how they ended; and a service that answers them. */

import {
  DESCRIBE_KIND,
  type Endpoint,
  FIRST_MESSAGE_KIND,
  type Incoming,
  type NodeId,
  type Request,
  type Ticket,
} from "../../src/fabric/fabric.ts";
import type { Reader, Writer } from "../../src/fabric/wire.ts";
import { SituError } from "../../src/runtime/errors.ts";

/** Answers with what it was sent. */
export const ECHO = FIRST_MESSAGE_KIND;
/** Answers with so many words as it is told. */
export const MANY = FIRST_MESSAGE_KIND + 1;
/** Answers with the error whose message it is told. */
export const FAIL = FIRST_MESSAGE_KIND + 2;
/** Begins an answer, then fails. */
export const FAIL_LATE = FIRST_MESSAGE_KIND + 3;
/** Answers when the test says so. */
export const DEFER = FIRST_MESSAGE_KIND + 4;
/** Answers with the sender's number as a node. */
export const WHO = FIRST_MESSAGE_KIND + 5;

export class Asked implements Request {
  readonly kind: number;
  /** Once for each end that it was told. */
  readonly ends: string[] = [];
  words: number[] = [];
  error: SituError | undefined;
  readonly #encode: (out: Writer) => void;

  constructor(kind: number, encode: (out: Writer) => void = () => {}) {
    this.kind = kind;
    this.#encode = encode;
  }

  get isOver(): boolean {
    return this.ends.length > 0;
  }

  encode(out: Writer): void {
    this.#encode(out);
  }

  replied(reply: Reader): void {
    this.ends.push("replied");
    const count = reply.left;
    const from = reply.skip(count);
    this.words = [...reply.views.i32.subarray(from, from + count)];
  }

  failed(why: SituError): void {
    this.ends.push(why.code);
    this.error = why;
  }
}

export function echo(...words: number[]): Asked {
  return new Asked(ECHO, (out) => {
    for (const word of words) out.word(word);
  });
}

export function sendAll(from: Endpoint, to: NodeId, requests: readonly Asked[]): void {
  for (const request of requests) from.send(to, request);
}

/** Words a frame of `count` body words arrives with: an even number. */
export function padded(words: readonly number[]): number[] {
  return words.length % 2 === 0 ? [...words] : [...words, 0];
}

/** A service for all of the kinds above. */
export class TestService {
  served = 0;
  readonly tickets: Ticket[] = [];

  readonly serve = (incoming: Incoming): void => {
    this.served++;
    const { body } = incoming;
    switch (incoming.kind) {
      case ECHO: {
        const count = body.left;
        incoming.reply().words(body.views.i32, body.skip(count), count);
        return;
      }
      case MANY: {
        const out = incoming.reply();
        for (let left = body.word(); left > 0; left--) out.word(left);
        return;
      }
      case FAIL:
        throw new SituError("SITU_CONFLICT", body.text());
      case FAIL_LATE:
        incoming.reply().word(1);
        throw new SituError("SITU_FULL", "after the reply was begun");
      case DEFER:
        this.tickets.push(incoming.defer());
        return;
      case DESCRIBE_KIND:
      case WHO:
        incoming.reply().word(incoming.from.node);
        return;
      default:
        throw new SituError("SITU_PROTOCOL", `no kind ${incoming.kind}`);
    }
  };
}
