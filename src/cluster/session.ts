/**
 * The other end of outcomes.ts: the sessions of one who has nodes do something once. There is one at each
 * node, which is opened when it is first needed. A node that does not know a session any more has
 * forgotten what was done in it: the next request opens another, under a name that was never used.
 *
 * A request is *in doubt* when it may have been served and its reply was not heard. Only then is the
 * outcome unknown; one that never left, or was refused each time, was not done.
 */

import type { Clock, Incoming, NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import type { OPEN_CALLS, OPEN_SESSION } from "../protocols/kinds.ts";
import { Message, type Routine } from "../protocols/message.ts";
import { numberOf, sessionNameOf } from "../protocols/origin.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_TIMEOUT_MS, SESSION_SLOTS } from "../runtime/limits.ts";
import type { Outcomes } from "./outcomes.ts";
import { livesOn, type View } from "./view.ts";

/** Under which number of which session something is to be done. */
export interface Numbered {
  readonly session: string;
  readonly number: number;
}

export function encodeNumbered(out: Writer, { session, number }: Numbered): void {
  out.text(session);
  out.wide(number);
}

export function decodeNumbered(body: Reader): Numbered {
  return { session: sessionNameOf(body), number: numberOf(body) };
}

/** The name under which a node knows a session: nobody can use that of another node. */
export function sessionOf({ from }: Incoming, name: string): string {
  return `${from.node} ${name}`;
}

/** For how long somebody waits for the reply. */
export interface TimeLeft {
  leftMs(): number;
}

/** As a message says it; at most as long as anybody may wait. */
export function leftMsOf(body: Reader): number {
  const leftMs = body.wide();
  return leftMs > 0 ? Math.min(leftMs, MAX_TIMEOUT_MS) : 0;
}

/** A moment of a clock that everything must be done by. */
export class Deadline implements TimeLeft {
  readonly #clock: Clock;
  readonly #atMs: number;

  constructor(clock: Clock, leftMs: number) {
    this.#clock = clock;
    this.#atMs = clock.nowMs() + leftMs;
  }

  leftMs(): number {
    return this.#atMs - this.#clock.nowMs();
  }
}

/** A request that is to be done once. */
export abstract class NumberedMessage extends Message {
  #hasLeft = false;
  #wasLost = false;

  /** Whether it may have been done, though no reply says so. */
  get isInDoubt(): boolean {
    return this.#hasLeft || this.#wasLost;
  }

  encode(out: Writer): void {
    // Its time was over while it waited for its turn to be sent.
    if (this.waiting === undefined && this.attempts > 0) throw givenUp();
    this.#hasLeft = true;
    this.encodeBody(out);
  }

  protected abstract encodeBody(out: Writer): void;

  override failed(why: SituError): void {
    if (this.waiting !== undefined) {
      if (this.#hasLeft && (why.code === "SITU_LOST" || why.code === "SITU_CLOSED")) {
        this.#wasLost = true;
      }
      this.#hasLeft = false;
    }
    super.failed(why);
  }

  abandon(): void {
    if (this.waiting === undefined) return;
    this.#wasLost ||= this.#hasLeft;
    super.failed(hasLeft(this.to));
  }
}

/** What is abandoned when its node has left the configuration: it will not answer. */
interface Abandoned extends Message {
  abandon(): void;
}

class OpenSession extends Message implements Abandoned {
  readonly kind: number;
  readonly #name: string;

  constructor(to: NodeId, kind: number, name: string) {
    super(to);
    this.kind = kind;
    this.#name = name;
  }

  encode(out: Writer): void {
    out.text(this.#name);
  }

  protected decode(): void {}

  abandon(): void {
    this.failed(hasLeft(this.to));
  }
}

/** At the node. */
export function serveOpenSession<T>(
  outcomes: Outcomes<T>,
  incoming: Incoming,
  nowMs: number,
): void {
  outcomes.open(sessionOf(incoming, sessionNameOf(incoming.body)), nowMs);
  incoming.reply();
}

class Session {
  readonly name: string;
  isOpen = false;
  /** The next number of each slot. */
  readonly #next: number[] = [];
  /** Slots that are free, as a stack. */
  readonly #free: number[] = [];

  constructor(name: string) {
    this.name = name;
  }

  take(): Numbered {
    const slot = this.#free.pop() ?? this.#newSlot();
    const number = this.#next[slot];
    this.#next[slot] = number + SESSION_SLOTS;
    return { session: this.name, number };
  }

  /** Its outcome was heard, or nobody will ask for it any more. */
  give({ number }: Numbered): void {
    this.#free.push(number % SESSION_SLOTS);
  }

  #newSlot(): number {
    const slot = this.#next.length;
    if (slot >= SESSION_SLOTS) {
      throw new SituError(
        "SITU_OVERLOADED",
        `${SESSION_SLOTS} requests of this client are under way at one node: nothing was begun`,
      );
    }
    this.#next.push(slot);
    return slot;
  }
}

export class Sessions {
  readonly #owner: string;
  readonly #kind: typeof OPEN_SESSION | typeof OPEN_CALLS;
  readonly #sessions = new Map<NodeId, Session>();
  readonly #underWay = new Set<Abandoned>();
  /** How the slots of requests in doubt become free. */
  readonly #kept = new Map<NumberedMessage, () => void>();
  #opened = 0;

  /** `owner` is different for all who ever open sessions at a node. */
  constructor(owner: string, kind: typeof OPEN_SESSION | typeof OPEN_CALLS) {
    this.#owner = owner;
    this.#kind = kind;
  }

  /**
   * Has a node do something once. What became of it, the message says; it was not done if its error is
   * set and it is not in doubt. One that is in doubt keeps its number, to be asked for, until `settled`.
   */
  *send<M extends NumberedMessage>(node: NodeId, messageOf: (numbered: Numbered) => M): Routine<M> {
    const session = yield* this.#at(node);
    const numbered = session.take();
    const message = messageOf(numbered);
    let isKept = false;
    try {
      yield* this.again(message);
      if (isForgotten(message.error) && this.#sessions.get(node) === session) {
        this.#sessions.delete(node);
      }
      isKept = message.error !== undefined && message.isInDoubt;
      if (isKept) this.#kept.set(message, () => session.give(numbered));
      return message;
    } finally {
      if (!isKept) session.give(numbered);
    }
  }

  /** Sends a request under the number that it has. */
  *again(message: Abandoned): Routine<void> {
    this.#underWay.add(message);
    try {
      yield [message];
    } finally {
      this.#underWay.delete(message);
    }
  }

  /** Nobody will ask for it again. */
  settled(message: NumberedMessage): void {
    this.#kept.get(message)?.();
    this.#kept.delete(message);
  }

  /** Nodes that have left do not answer any more, and those that came back know no session. */
  adopted(before: View, now: View): void {
    for (const node of [...this.#sessions.keys()]) {
      if (!livesOn(node, before, now)) this.#sessions.delete(node);
    }
    for (const message of [...this.#underWay]) {
      if (!livesOn(message.to, before, now)) message.abandon();
    }
  }

  /** Opens sessions at some nodes before they are needed. One that fails is opened when it is. */
  *open(nodes: readonly NodeId[]): Routine<void> {
    const messages = nodes.map((node) => new OpenSession(node, this.#kind, this.#of(node).name));
    yield messages;
    for (const { to, error } of messages) this.#of(to).isOpen = error === undefined;
  }

  /** The session at a node. Several who need it at once open the same. */
  *#at(node: NodeId): Routine<Session> {
    const session = this.#of(node);
    if (session.isOpen) return session;
    const message = new OpenSession(node, this.#kind, session.name);
    yield* this.again(message);
    if (message.error !== undefined) throw message.error;
    session.isOpen = true;
    return session;
  }

  #of(node: NodeId): Session {
    let session = this.#sessions.get(node);
    if (session === undefined) {
      session = new Session(`${this.#owner} ${this.#opened++}`);
      this.#sessions.set(node, session);
    }
    return session;
  }
}

function hasLeft(node: NodeId): SituError {
  return new SituError("SITU_STALE_CONFIGURATION", `node ${node} has left the configuration`);
}

function givenUp(): SituError {
  return new SituError("SITU_LOST", "nobody waits for the reply any more");
}

/** Whether the node said that it does not know the session. */
export function isForgotten(error: SituError | undefined): boolean {
  return error?.code === "SITU_UNKNOWN_OUTCOME";
}

/** How a request that was not answered is told. */
export function untold(message: NumberedMessage, what: string): SituError {
  const { error, to, isInDoubt } = message;
  if (error === undefined || !isInDoubt || isForgotten(error)) return error!;
  return new SituError(
    "SITU_UNKNOWN_OUTCOME",
    `node ${to} did not answer: ${what} may or may not have been committed`,
    { cause: error },
  );
}
