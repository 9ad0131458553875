/**
 * Serves requests: verbs against the node's memory, messages by the service. Every request that is
 * read gets one reply, at once or, by its ticket, later; an error of the service is a reply like any
 * other. Only what no program of ours would send ends the connection (link.ts).
 */

import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  CLIENT,
  FIRST_MESSAGE_KIND,
  type Incoming,
  isOfAnyConfiguration,
  type NodeId,
  type PostedService,
  type Sender,
  type Service,
  type Ticket,
} from "../fabric.ts";
import { type FrameWriter, PING, writeError } from "../frames.ts";
import { isWriting, serveVerb, type VerbMemory } from "../verbs.ts";
import {
  FLAG_ERROR,
  FLAG_ONE_WAY,
  FLAG_REPLY,
  KIND_MASK,
  type Reader,
  type Writer,
} from "../wire.ts";
import type { Shared } from "./shared.ts";

/** Who asks, and where the replies go. */
export interface Asker {
  readonly from: Sender;
  readonly isOpen: boolean;
  /** Replies that will come later. */
  deferred: number;
  readonly frames: FrameWriter;
  /** A deferred reply was written. */
  answeredOne(): void;
}

export class Responder {
  readonly #shared: Shared;
  readonly #memory: VerbMemory | undefined;
  readonly #service: Service | undefined;
  readonly #posted: PostedService | undefined;
  readonly #arrived: Arrived;
  /** What the gate said first, for the chunk of requests that is being served. */
  #mayServe: boolean | undefined;

  constructor(
    shared: Shared,
    memory: VerbMemory | undefined,
    service: Service | undefined,
    posted?: PostedService,
  ) {
    this.#shared = shared;
    this.#memory = memory;
    this.#service = service;
    this.#posted = posted;
    this.#arrived = new Arrived(shared);
  }

  /** Throws SITU_PROTOCOL for what is no request. */
  serve(asker: Asker, kind: number, id: number, configurationId: number, body: Reader): void {
    if ((kind & FLAG_ONE_WAY) !== 0) {
      this.#servePosted(asker, kind & ~FLAG_ONE_WAY, configurationId, body);
      return;
    }
    if ((kind & ~KIND_MASK) !== 0 || kind === 0) {
      throw new SituError("SITU_PROTOCOL", `there is no kind of request ${kind}`);
    }
    const { counters } = this.#shared;
    if (kind === PING) {
      const { frames } = asker;
      frames.begin(PING | FLAG_REPLY, id, this.#shared.configurationId);
      frames.end();
      return;
    }
    if (configurationId !== this.#shared.configurationId && !isOfAnyConfiguration(kind)) {
      counters.stale++;
      refuseRequest(
        this.#shared,
        asker,
        kind,
        id,
        stale(configurationId, this.#shared.configurationId),
      );
      return;
    }
    counters.requestsServed++;
    const { gate } = this.#shared;
    if (gate !== undefined) this.#mayServe ??= gate.mayServe();
    if (kind < FIRST_MESSAGE_KIND) this.#serveVerb(asker, kind, id, body);
    else this.#serveMessage(asker, kind, id, body);
  }

  /** A message that nobody answers: what is wrong with it is counted, and nobody is told. */
  #servePosted(asker: Asker, kind: number, configurationId: number, body: Reader): void {
    if ((kind & ~KIND_MASK) !== 0 || kind < FIRST_MESSAGE_KIND) {
      throw new SituError("SITU_PROTOCOL", `there is no one-way message of kind ${kind}`);
    }
    const { counters } = this.#shared;
    if (configurationId !== this.#shared.configurationId && !isOfAnyConfiguration(kind)) {
      counters.stale++;
      return;
    }
    counters.requestsServed++;
    if (this.#posted === undefined) {
      throw new SituError("SITU_PROTOCOL", "this end takes no one-way messages");
    }
    this.#posted(asker.from, kind, body);
  }

  /** All of a chunk is served. False if the replies must not leave: what was read may have changed elsewhere. */
  endChunk(): boolean {
    const mayServe = this.#mayServe;
    this.#mayServe = undefined;
    return mayServe !== true || this.#shared.gate!.mayServe();
  }

  #serveVerb(asker: Asker, kind: number, id: number, body: Reader): void {
    const { frames } = asker;
    const out = frames.begin(kind | FLAG_REPLY, id, this.#shared.configurationId);
    try {
      if (this.#memory === undefined) throw unsupported("this end has no memory for verbs");
      const { gate } = this.#shared;
      if (gate !== undefined && !(this.#mayServe && gate.isWhole)) throw notNow(this.#shared.self);
      if (isWriting(kind) && asker.from.node === CLIENT) {
        throw new SituError("SITU_PERMISSION", "only nodes write to the memory of others");
      }
      serveVerb(this.#memory, kind, body, out);
      frames.end();
    } catch (error) {
      frames.takeBack();
      if (!(error instanceof SituError)) throw error;
      refuseRequest(this.#shared, asker, kind, id, error);
    }
  }

  #serveMessage(asker: Asker, kind: number, id: number, body: Reader): void {
    const arrived = this.#arrived.reset(asker, kind, id, body);
    try {
      if (this.#service === undefined) throw unsupported("this end serves no messages");
      this.#service(arrived);
      arrived.finish();
    } catch (error) {
      arrived.takeBack();
      if (!(error instanceof SituError)) throw error;
      refuseRequest(this.#shared, asker, kind, id, error);
    }
  }
}

/** A request as the service sees it. */
class Arrived implements Incoming {
  readonly #shared: Shared;
  #asker!: Asker;
  #id = 0;
  #frames: FrameWriter | undefined;
  #ticket: DeferredReply | undefined;
  kind = 0;
  body!: Reader;

  constructor(shared: Shared) {
    this.#shared = shared;
  }

  get from(): Sender {
    return this.#asker.from;
  }

  reset(asker: Asker, kind: number, id: number, body: Reader): this {
    this.#asker = asker;
    this.kind = kind;
    this.#id = id;
    this.body = body;
    this.#frames = undefined;
    this.#ticket = undefined;
    return this;
  }

  reply(): Writer {
    assert(this.#frames === undefined && this.#ticket === undefined, "a request gets one reply");
    this.#frames = this.#asker.frames;
    return this.#frames.begin(this.kind | FLAG_REPLY, this.#id, this.#shared.configurationId);
  }

  defer(): Ticket {
    assert(this.#frames === undefined && this.#ticket === undefined, "a request gets one reply");
    this.#ticket = new DeferredReply(this.#shared, this.#asker, this.kind, this.#id);
    return this.#ticket;
  }

  finish(): void {
    if (this.#frames !== undefined) this.#frames.end();
    else assert(this.#ticket !== undefined, "a service replies, defers or throws");
  }

  /** The service has failed after all. */
  takeBack(): void {
    this.#frames?.takeBack();
    this.#ticket?.takeBack();
  }
}

class DeferredReply implements Ticket {
  readonly #shared: Shared;
  readonly #asker: Asker;
  readonly #kind: number;
  readonly #id: number;
  #isDone = false;

  constructor(shared: Shared, asker: Asker, kind: number, id: number) {
    this.#shared = shared;
    this.#asker = asker;
    this.#kind = kind;
    this.#id = id;
    asker.deferred++;
  }

  get isWanted(): boolean {
    return !this.#isDone && this.#asker.isOpen;
  }

  reply(write: (out: Writer) => void): void {
    if (!this.takeBack()) return;
    const { frames } = this.#asker;
    const out = frames.begin(this.#kind | FLAG_REPLY, this.#id, this.#shared.configurationId);
    try {
      write(out);
      frames.end();
    } catch (error) {
      frames.takeBack();
      if (!(error instanceof SituError)) throw error;
      refuseRequest(this.#shared, this.#asker, this.#kind, this.#id, error);
    }
    this.#asker.answeredOne();
  }

  fail(error: SituError): void {
    if (!this.takeBack()) return;
    refuseRequest(this.#shared, this.#asker, this.#kind, this.#id, error);
    this.#asker.answeredOne();
  }

  /** False if nobody waits for the reply any more. */
  takeBack(): boolean {
    if (this.#isDone) return false;
    this.#isDone = true;
    this.#asker.deferred--;
    return this.#asker.isOpen;
  }
}

function refuseRequest(
  shared: Shared,
  { frames }: Asker,
  kind: number,
  id: number,
  error: SituError,
): void {
  writeError(frames.begin(kind | FLAG_REPLY | FLAG_ERROR, id, shared.configurationId), error);
  frames.end();
}

function unsupported(what: string): SituError {
  return new SituError("SITU_UNSUPPORTED", what);
}

/** For callers who may try again. */
export function notNow(node: NodeId): SituError {
  return new SituError(
    "SITU_OVERLOADED",
    `node ${node} cannot serve: it has no lease, or recovers`,
  );
}

export function stale(theirs: number, ours: number): SituError {
  return new SituError(
    "SITU_STALE_CONFIGURATION",
    `the request is of configuration ${theirs}, the node of ${ours}`,
  );
}
