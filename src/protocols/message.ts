/**
 * A message of a protocol: what goes to one node, and what comes back. Coroutines yield batches of
 * them; the driver (driver.ts) sends each, and runs the coroutine on when all have ended. What a
 * coroutine then reads are the fields that `decode` has filled, or `error`.
 */

import type { ConfigurationId, NodeId, Request } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";

/** The first word of replies by those who may meet locks. */
export const OK = 0;
/** Somebody is about to change, or changing, what was to be read or locked. */
export const LOCKED = 1;
/** The transaction is over: this was a late duplicate. */
export const OVER = 2;

export interface Waiting {
  ended(exchange: Exchange): void;
}

/** What a message belongs to, and ends with: it may know better than the fabric why there is no answer. */
export interface Scope {
  reasonOf(message: Exchange, why: SituError): SituError;
}

/** A request that a coroutine can wait for: a message, or a verb (execute/lookup.ts). */
export interface Exchange extends Request {
  readonly to: NodeId;
  error: SituError | undefined;
  readonly isInsistent: boolean;
  /** Undefined once nobody waits any more: a late reply is not heard. */
  waiting: Waiting | undefined;
  attempts: number;
  configurationId?: ConfigurationId | undefined;
}

export abstract class Message implements Exchange {
  abstract readonly kind: number;
  readonly to: NodeId;
  /** Why there was no answer, or what the answer refused. */
  error: SituError | undefined;
  /** Whether the transaction cannot go on, and not go back, before this is answered. */
  readonly isInsistent: boolean = false;
  waiting: Waiting | undefined;
  attempts = 0;
  configurationId: ConfigurationId | undefined;
  scope: Scope | undefined;

  constructor(to: NodeId) {
    this.to = to;
  }

  abstract encode(out: Writer): void;
  protected abstract decode(reply: Reader): void;

  replied(reply: Reader): void {
    if (this.waiting === undefined) return;
    try {
      this.decode(reply);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      this.error = error;
    }
    this.waiting.ended(this);
  }

  failed(why: SituError): void {
    if (this.waiting === undefined) return;
    this.error = this.scope === undefined ? why : this.scope.reasonOf(this, why);
    this.waiting.ended(this);
  }
}

export type Batch = readonly Exchange[];
/** A coroutine: yields batches, returns its result. It knows no socket, no clock, no randomness. */
export type Routine<T> = Generator<Batch, T, void>;

/** The coroutine of a single exchange: who runs it reads the result from `exchange`. */
export function* once(exchange: Exchange): Routine<void> {
  yield [exchange];
}

/** Whether it is unknown if the other end has seen the message: it may be sent again. */
export function isLost(error: SituError): boolean {
  return (
    error.code === "SITU_LOST" ||
    error.code === "SITU_OVERLOADED" ||
    error.code === "SITU_UNREACHABLE"
  );
}
