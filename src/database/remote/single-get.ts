/**
 * One row by its key, outside of transactions: one message to its primary and one back, and nothing
 * to validate (FaSST §5: single-key reads). The same bytes as `Read` (protocols/read.ts), without a
 * coroutine: this is what clients do most.
 */

import type { Endpoint, NodeId, Request } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { READ } from "../../protocols/kinds.ts";
import { isLost } from "../../protocols/message.ts";
import { OK } from "../../protocols/read.ts";
import { DEPENDENCY_WORDS } from "../../protocols/writes.ts";
import { type SituError, TimeoutError } from "../../runtime/errors.ts";
import { MAX_ACCESSES, RESEND_MAX_MS } from "../../runtime/limits.ts";
import { keptKey } from "../../tables/copied-key.ts";
import type { Values } from "../../tables/indexes/structure.ts";
import type { RemoteTable } from "./remote-table.ts";

export class SingleGet implements Request {
  readonly kind = READ;
  readonly #endpoint: Endpoint;
  readonly #table: RemoteTable;
  readonly #key: unknown;
  readonly #partition: number;
  readonly #timeoutMs: number;
  readonly #resolve: (row: Values | undefined) => void;
  readonly #reject: (error: SituError) => void;
  #attempts = 0;
  #deadlineMs = 0;

  constructor(
    endpoint: Endpoint,
    table: RemoteTable,
    given: unknown,
    timeoutMs: number,
    resolve: (row: Values | undefined) => void,
    reject: (error: SituError) => void,
  ) {
    this.#endpoint = endpoint;
    this.#table = table;
    const key = keptKey(given);
    this.#partition = table.partitionOf(key);
    this.#key = table.sent(key);
    this.#timeoutMs = timeoutMs;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  send(): void {
    this.#endpoint.send(this.#node, this);
  }

  get #node(): NodeId {
    return this.#table.primaryOf(this.#partition);
  }

  encode(out: Writer): void {
    out.word(1);
    out.word(this.#table.id);
    out.word(this.#partition);
    out.value(this.#key);
  }

  replied(reply: Reader): void {
    if (reply.word() !== OK) {
      this.#again(undefined);
      return;
    }
    reply.wide();
    reply.skip(reply.count(MAX_ACCESSES) * DEPENDENCY_WORDS);
    const words = reply.count(reply.left);
    reply.align();
    const at = reply.skip(words);
    this.#resolve(words === 0 ? undefined : this.#table.codec.decode(reply.views, at, words));
  }

  failed(why: SituError): void {
    if (isLost(why)) this.#again(why);
    else this.#reject(why);
  }

  /** Somebody was just changing the row, or the message was lost. */
  #again(why: SituError | undefined): void {
    const { clock } = this.#endpoint;
    const now = clock.nowMs();
    if (this.#attempts++ === 0) this.#deadlineMs = now + this.#timeoutMs;
    if (now >= this.#deadlineMs) {
      this.#reject(why ?? locked(this.#table, this.#timeoutMs));
      return;
    }
    // The first time at once: a commit takes as long as a message.
    if (this.#attempts === 1) this.send();
    else
      clock.after(Math.min(2 ** Math.min(this.#attempts, 10) / 2, RESEND_MAX_MS), () =>
        this.send(),
      );
  }
}

export function locked({ table }: RemoteTable, timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `gave up after ${timeoutMs} ms: a row of table ${table.name} is locked by a transaction that ` +
      `does not end; is a node stopped?`,
  );
}
