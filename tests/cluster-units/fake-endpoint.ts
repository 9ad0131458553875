/** An end of a fabric in the hands of a test: what was sent lies there until the test answers it. */

import type {
  Clock,
  Endpoint,
  FabricCounters,
  NodeId,
  Request,
  Timer,
} from "../../src/fabric/fabric.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { SituError, type SituErrorCode } from "../../src/runtime/errors.ts";

/** Time that moves only when a test says so. */
export class ManualClock implements Clock {
  #nowMs = 1_000;
  #timers: { atMs: number; run: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, run: () => void): Timer {
    const timer = { atMs: this.#nowMs + ms, run };
    this.#timers.push(timer);
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((each) => each !== timer);
      },
    };
  }

  get waiting(): number {
    return this.#timers.length;
  }

  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      this.#timers.sort((a, b) => a.atMs - b.atMs);
      const [next] = this.#timers;
      if (next === undefined || next.atMs > endMs) break;
      this.#timers.shift();
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.run();
    }
    this.#nowMs = endMs;
  }
}

export interface Sent {
  readonly to: NodeId;
  readonly kind: number;
  readonly words: Int32Array;
  reply(write?: (out: Writer) => void): void;
  fail(code: SituErrorCode): void;
  /** To read what was sent. */
  body(): Reader;
}

export class FakeEndpoint implements Endpoint {
  readonly self: NodeId;
  readonly clock = new ManualClock();
  readonly counters: FabricCounters = {
    requestsSent: 0,
    requestsServed: 0,
    repliesReceived: 0,
    writes: 0,
    lost: 0,
    stale: 0,
    overloaded: 0,
    refused: {},
    connections: 0,
  };
  configurationId = 1;
  #sent: Sent[] = [];

  constructor(self: NodeId = 0) {
    this.self = self;
  }

  send(to: NodeId, request: Request): void {
    const out = new Writer();
    request.encode(out);
    const words = out.views.i32.slice(0, out.at);
    this.#sent.push({
      to,
      kind: request.kind,
      words,
      body: () => readerOf(words),
      reply: (write) => {
        const reply = new Writer();
        write?.(reply);
        request.replied(readerOf(reply.views.i32.slice(0, reply.at)));
      },
      fail: (code) => request.failed(new SituError(code, `a test says ${code}`)),
    });
  }

  async close(): Promise<void> {}

  /** What was sent since the last call. */
  take(): Sent[] {
    const sent = this.#sent;
    this.#sent = [];
    return sent;
  }
}

export function readerOf(words: Int32Array): Reader {
  const copy = new Writer();
  copy.words(words, 0, words.length);
  return new Reader(copy.views).reset(copy.views, 0, copy.at);
}

export function encoded(write: (out: Writer) => void): Reader {
  const out = new Writer();
  write(out);
  return readerOf(out.views.i32.slice(0, out.at));
}
