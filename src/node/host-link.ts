/**
 * What goes between the two threads of a node, the NIC worker and the host: requests and replies,
 * through rings in memory that both see (fabric/rings/channel.ts). Both ends are the same: a
 * request names a node, which is where it shall go if it comes from the host, and where it came
 * from if it comes from the NIC.
 *
 *   REQUEST  node, connection, kind, configuration, and the request's body
 *   REPLY    the reply's body      ERROR  a code and a text
 *
 * The threads adopt a new configuration one after the other. So a request says in which one it was made, and
 * is refused by a thread that has another, as it would be by another node.
 */

import { stale } from "../fabric/exchange/responder.ts";
import {
  type ConfigurationId,
  type Incoming,
  isOfAnyConfiguration,
  type NodeId,
  type Request,
  type Sender,
  type Ticket,
} from "../fabric/fabric.ts";
import { readError, writeError } from "../fabric/frames.ts";
import { type ChannelEnd, RingChannel } from "../fabric/rings/channel.ts";
import { type Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";

const REQUEST = 1;
const REPLY = 2;
const ERROR = 3;

/** Serves a request of the other thread; `node` is as above. */
export type LinkService = (node: NodeId, incoming: Incoming) => void;

export class HostLink {
  readonly #channel: RingChannel;
  readonly #service: LinkService;
  readonly #asked = new Map<number, Request>();
  /** The one that this thread has adopted last. */
  configurationId: ConfigurationId;
  #next = 0;
  #isClosed = false;

  constructor(end: ChannelEnd, configurationId: ConfigurationId, service: LinkService) {
    this.configurationId = configurationId;
    this.#service = service;
    this.#channel = new RingChannel(end, (kind, id, body) => this.#arrived(kind, id, body));
  }

  /** Fails later, never here. */
  send(node: NodeId, connection: number, request: Request): void {
    if (this.#isClosed) {
      queueMicrotask(() => request.failed(closed()));
      return;
    }
    const id = this.#next;
    this.#next = (this.#next + 1) | 0;
    try {
      this.#channel.send(REQUEST, id, (out) => {
        out.word(node);
        out.word(connection);
        out.word(request.kind);
        out.word(request.configurationId ?? this.configurationId);
        request.encode(out);
      });
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      queueMicrotask(() => request.failed(error));
      return;
    }
    this.#asked.set(id, request);
  }

  /** A request that came over the fabric, for the other thread. */
  pass(incoming: Incoming): void {
    const { from, kind, body } = incoming;
    const ticket = incoming.defer();
    const { configurationId } = this;
    this.send(from.node, from.connection, new Passed(kind, configurationId, body, ticket));
  }

  ref(): void {
    this.#channel.ref();
  }

  unref(): void {
    this.#channel.unref();
  }

  /** Requests that are under way fail; replies that come later go nowhere. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#channel.close();
    const asked = [...this.#asked.values()];
    this.#asked.clear();
    for (const request of asked) request.failed(closed());
  }

  /** For replies. One that cannot be sent becomes the error that says why. */
  reply(id: number, write: (out: Writer) => void): void {
    if (this.#isClosed) return;
    try {
      this.#channel.send(REPLY, id, write, false);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.fail(id, error);
    }
  }

  fail(id: number, error: SituError): void {
    if (!this.#isClosed) this.#channel.send(ERROR, id, (out) => writeError(out, error), false);
  }

  #arrived(kind: number, id: number, body: Reader): void {
    if (kind === REQUEST) {
      this.#serve(id, body);
      return;
    }
    const request = this.#asked.get(id);
    this.#asked.delete(id);
    if (kind === REPLY) request?.replied(body);
    else request?.failed(readError(body));
  }

  #serve(id: number, body: Reader): void {
    const node = body.word();
    const connection = body.word();
    const kind = body.word();
    const incoming = new Linked(this, id, { node, connection }, kind, body);
    const configurationId = body.word();
    try {
      if (configurationId !== this.configurationId && !isOfAnyConfiguration(kind)) {
        throw stale(configurationId, this.configurationId);
      }
      this.#service(node, incoming);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      incoming.fail(error);
      return;
    }
    incoming.served();
  }
}

/** A request of the other thread. */
class Linked implements Incoming, Ticket {
  readonly from: Sender;
  readonly kind: number;
  readonly body: Reader;
  readonly isWanted = true;
  readonly #link: HostLink;
  readonly #id: number;
  #out: Writer | undefined;
  #isDeferred = false;

  constructor(link: HostLink, id: number, from: Sender, kind: number, body: Reader) {
    this.#link = link;
    this.#id = id;
    this.from = from;
    this.kind = kind;
    this.body = body;
  }

  reply(): Writer;
  reply(write: (out: Writer) => void): void;
  reply(write?: (out: Writer) => void): Writer | undefined {
    if (write !== undefined) {
      this.#link.reply(this.#id, write);
      return undefined;
    }
    scratch.clear();
    this.#out = scratch;
    return scratch;
  }

  defer(): Ticket {
    this.#isDeferred = true;
    return this;
  }

  fail(error: SituError): void {
    this.#link.fail(this.#id, error);
  }

  served(): void {
    const out = this.#out;
    if (this.#isDeferred || out === undefined) return;
    this.#link.reply(this.#id, (reply) => reply.words(out.views.i32, 0, out.at));
  }
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "the node is being closed");
}

/** One for the thread: a reply is sent before the next one is begun. */
const scratch = new Writer();

/** A request on its way through this thread: its words, and whom to tell of the reply. */
export class Passed implements Request {
  readonly kind: number;
  /** However long it waits on its way. */
  readonly configurationId: ConfigurationId;
  readonly #ticket: Ticket;
  readonly #words: Int32Array;
  #hasLeft = false;

  constructor(kind: number, configurationId: ConfigurationId, body: Reader, ticket: Ticket) {
    this.kind = kind;
    this.configurationId = configurationId;
    this.#words = body.views.i32.slice(body.at, body.end);
    this.#ticket = ticket;
  }

  encode(out: Writer): void {
    this.#hasLeft = true;
    out.words(this.#words, 0, this.#words.length);
  }

  replied(reply: Reader): void {
    const { views, at, end } = reply;
    this.#ticket.reply((out) => out.words(views.i32, at, end - at));
  }

  failed(why: SituError): void {
    // The other thread cannot see it: what never left was not served.
    const isUnsent = why.code === "SITU_LOST" && !this.#hasLeft;
    this.#ticket.fail(isUnsent ? new SituError("SITU_UNREACHABLE", why.message) : why);
  }
}
