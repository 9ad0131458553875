/**
 * Messages of a node to itself: through the same bytes as over a fabric, so that nobody can come to
 * rely on shared objects, but in the same call.
 */

import type { Incoming, NodeId, Request, Sender, Service, Ticket } from "../fabric/fabric.ts";
import { Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";

export class Loopback {
  readonly #self: NodeId;
  readonly #service: Service;
  readonly #idle: Exchange[] = [];

  constructor(self: NodeId, service: Service) {
    this.#self = self;
    this.#service = service;
  }

  serve(request: Request): void {
    const exchange = this.#idle.pop() ?? new Exchange(this.#self);
    exchange.begin(request);
    try {
      this.#service(exchange);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      exchange.fail(error);
    }
    // One that was deferred is in the hands of those who will reply.
    if (exchange.isDeferred) return;
    this.#idle.push(exchange.finish());
  }
}

class Exchange implements Incoming, Ticket {
  readonly from: Sender;
  readonly body: Reader;
  readonly isWanted = true;
  kind = 0;
  isDeferred = false;
  readonly #out = new Writer();
  readonly #in = new Writer();
  readonly #reader: Reader;
  #request: Request | undefined;
  #error: SituError | undefined;

  constructor(self: NodeId) {
    this.from = { node: self, connection: -1 };
    this.body = new Reader(this.#out.views);
    this.#reader = new Reader(this.#in.views);
  }

  begin(request: Request): void {
    this.#request = request;
    this.#error = undefined;
    this.isDeferred = false;
    this.kind = request.kind;
    this.#in.clear();
    this.#out.clear();
    request.encode(this.#out);
    this.body.reset(this.#out.views, 0, this.#out.at);
  }

  defer(): Ticket {
    this.isDeferred = true;
    return this;
  }

  /** Of Incoming: begins the reply. Of Ticket: is the reply. */
  reply(): Writer;
  reply(write: (out: Writer) => void): void;
  reply(write?: (out: Writer) => void): Writer | undefined {
    if (write === undefined) return this.#in;
    write(this.#in);
    this.finish();
    return undefined;
  }

  fail(error: SituError): void {
    this.#error = error;
    if (this.isDeferred) this.finish();
  }

  finish(): this {
    const request = this.#request;
    this.#request = undefined;
    if (request === undefined) return this;
    if (this.#error !== undefined) request.failed(this.#error);
    else request.replied(this.#reader.reset(this.#in.views, 0, this.#in.at));
    return this;
  }
}
