/**
 * One row by its key, outside of transactions: one message to its primary and one back, and nothing
 * to validate (FaSST §5: single-key reads). The same bytes as `Read` (phases/read.ts), without a
 * coroutine: this is what clients do most. By verb (FaRM §3.6) it is a lookup, and a message only if
 * the row cannot be found that way.
 */

import type { Clock, Endpoint, NodeId, Request } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { type SituError, TimeoutError } from "../../runtime/errors.ts";
import { MAX_ACCESSES, RESEND_MAX_MS } from "../../runtime/limits.ts";
import { readAlone } from "../../stores/remote/open.ts";
import { keptKey } from "../../tables/copied-key.ts";
import type { Values } from "../../tables/indexes/structure.ts";
import type { Driver } from "../driver.ts";
import { READ } from "../kinds.ts";
import { isLost, OK } from "../message.ts";
import { DEPENDENCY_WORDS } from "../writes.ts";
import { lookupAll } from "./lookup.ts";
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

export async function getByVerb(
  driver: Driver,
  table: RemoteTable,
  key: unknown,
  timeoutMs: number,
): Promise<Values | undefined> {
  const { endpoint } = driver;
  const { clock } = endpoint;
  const deadlineMs = clock.nowMs() + timeoutMs;
  const node = table.primaryOf(table.partitionOf(key));
  const store = table.storeAt(node);
  for (let attempt = 0; store !== undefined; attempt++) {
    const reading = readAlone(store, key);
    const [found] = await driver.start(lookupAll([{ node, reading }]), timeoutMs);
    if (found.outcome === "absent") return undefined;
    if (found.outcome === "found") return table.codec.decode(found.views, found.at, found.words);
    if (found.outcome === "ask") break;
    if (clock.nowMs() >= deadlineMs) throw locked(table, timeoutMs);
    if (attempt > 0) await pause(clock, Math.min(2 ** attempt / 2, RESEND_MAX_MS));
  }
  return new Promise((resolve, reject) => {
    new SingleGet(endpoint, table, key, timeoutMs, resolve, reject).send();
  });
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

function locked({ table }: RemoteTable, timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `gave up after ${timeoutMs} ms: a row of table ${table.name} is locked by a transaction that ` +
      `does not end; is a node stopped?`,
  );
}
