/**
 * One row by its key, outside of transactions: one message to its primary and one back, and nothing
 * to validate (FaSST §5: single-key reads). The same bytes as `Read` (phases/read.ts), without a
 * coroutine: this is what clients do most. By verb (FaRM §3.6) it is a lookup, and a message only if
 * the row cannot be found that way.
 */

import type { NodeId, Request } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import { MAX_ACCESSES, RESEND_MAX_MS } from "../../runtime/limits.ts";
import { RetryPolicy } from "../../runtime/retry-policy.ts";
import { readAlone } from "../../stores/remote/open.ts";
import { keptKey } from "../../tables/copied-key.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { Timed } from "../deadlines.ts";
import type { Driver } from "../driver.ts";
import { READ } from "../kinds.ts";
import { isLost, OK } from "../message.ts";
import { DEPENDENCY_WORDS } from "../writes.ts";
import { lookupAll } from "./lookup.ts";
import type { Recalled, RememberedRows } from "./remembered-rows.ts";
import type { RemoteTable } from "./remote-table.ts";

const FIRST_PAUSE_MS = 0.5;

export class SingleGet implements Request, Timed {
  readonly kind = READ;
  readonly deadlineMs: number;
  readonly #driver: Driver;
  readonly #table: RemoteTable;
  readonly #key: unknown;
  readonly #partition: number;
  readonly #timeoutMs: number;
  readonly #resolve: (row: RowValues | undefined) => void;
  readonly #reject: (error: SituError) => void;
  #retry: RetryPolicy | undefined;
  #isLocked = false;
  #isOver = false;

  constructor(
    driver: Driver,
    table: RemoteTable,
    given: unknown,
    timeoutMs: number,
    resolve: (row: RowValues | undefined) => void,
    reject: (error: SituError) => void,
  ) {
    this.#driver = driver;
    this.deadlineMs = driver.endpoint.clock.nowMs() + timeoutMs;
    this.#table = table;
    const key = keptKey(given);
    this.#partition = table.partitionOf(key);
    this.#key = table.sent(key);
    this.#timeoutMs = timeoutMs;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    this.#driver.deadlines.add(this);
    this.#send();
  }

  #send(): void {
    if (!this.#isOver) this.#driver.endpoint.send(this.#node, this);
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
    if (this.#isOver) return;
    this.#isLocked = reply.word() !== OK;
    if (this.#isLocked) {
      this.#again(undefined);
      return;
    }
    reply.wide();
    reply.skip(reply.count(MAX_ACCESSES) * DEPENDENCY_WORDS);
    const words = reply.count(reply.left);
    reply.align();
    const at = reply.skip(words);
    this.#end();
    this.#resolve(words === 0 ? undefined : this.#table.codec.decode(reply.views, at, words));
  }

  failed(why: SituError): void {
    if (this.#isOver) return;
    this.#isLocked = false;
    this.#driver.troubled?.(this, why);
    // Its primary may be another one by now.
    if (isLost(why) || why.code === "SITU_STALE_CONFIGURATION") this.#again(why);
    else this.#fail(why);
  }

  late(): void {
    this.#fail(this.#isLocked ? locked(this.#table, this.#timeoutMs) : silent(this.#node));
  }

  #end(): void {
    this.#isOver = true;
    this.#driver.deadlines.delete(this);
  }

  #fail(why: SituError): void {
    this.#end();
    this.#reject(why);
  }

  /** Somebody was just changing the row, or the message was lost. */
  #again(why: SituError | undefined): void {
    const { clock } = this.#driver.endpoint;
    const timeoutMs = this.#timeoutMs;
    this.#retry ??= new RetryPolicy({ timeoutMs, clock });
    if (!this.#retry.mayRetry()) {
      this.#fail(why ?? locked(this.#table, timeoutMs));
      return;
    }
    // The first time at once: a commit takes as long as a message.
    if (this.#retry.attempts === 1) this.#send();
    else clock.after(this.#retry.longestPauseMs(FIRST_PAUSE_MS, RESEND_MAX_MS), () => this.#send());
  }
}

export async function getByVerb(
  driver: Driver,
  table: RemoteTable,
  key: unknown,
  timeoutMs: number,
): Promise<RowValues | undefined> {
  const { clock } = driver.endpoint;
  const retry = new RetryPolicy({ timeoutMs, clock });
  const partition = table.partitionOf(key);
  for (;;) {
    const node = table.primaryOf(partition);
    const store = table.storeAt(node);
    if (store === undefined) break;
    const lookup = lookupAll([{ node, reading: readAlone(store, key) }]);
    const { configurationId } = driver.endpoint;
    const leftMs = Math.max(retry.leftMs(), 1);
    const found = await driver.start(lookup, leftMs, configurationId).then(first, staleOrThrow);
    if (found.outcome === "absent") return undefined;
    if (found.outcome === "found") return table.codec.decode(found.views, found.at, found.words);
    if (found.outcome === "ask") break;
    if (!retry.mayRetry()) throw found.outcome === "stale" ? found.error : locked(table, timeoutMs);
    if (retry.attempts > 1) await sleep(retry.longestPauseMs(FIRST_PAUSE_MS, RESEND_MAX_MS), clock);
  }
  return new Promise((resolve, reject) => {
    new SingleGet(driver, table, key, timeoutMs, resolve, reject).start();
  });
}

/** The same for a row whose place is remembered; "ask" if it cannot be read by verb. */
export async function recallByVerb(
  driver: Driver,
  rows: RememberedRows,
  given: unknown,
  timeoutMs: number,
): Promise<Exclude<Recalled, { outcome: "locked" }>> {
  const { table } = rows;
  const key = table.keptKey(given);
  const { clock } = driver.endpoint;
  const retry = new RetryPolicy({ timeoutMs, clock });
  const partition = table.partitionOf(key);
  for (;;) {
    const node = table.primaryOf(partition);
    const store = table.storeAt(node);
    if (store === undefined) return { outcome: "ask" };
    const lookup = lookupAll([{ node, reading: rows.read(node, store, key) }]);
    const { configurationId } = driver.endpoint;
    const leftMs = Math.max(retry.leftMs(), 1);
    const found = await driver.start(lookup, leftMs, configurationId).then(first, staleOrThrow);
    if (found.outcome !== "locked" && found.outcome !== "stale") {
      return found as Exclude<Recalled, { outcome: "locked" }>;
    }
    if (!retry.mayRetry()) throw found.outcome === "stale" ? found.error : locked(table, timeoutMs);
    if (retry.attempts > 1) await sleep(retry.longestPauseMs(FIRST_PAUSE_MS, RESEND_MAX_MS), clock);
  }
}

function first<T>([found]: T[]): T {
  return found;
}

/** Another node may have the row by now; anything else is the caller's to know. */
function staleOrThrow(error: unknown): { readonly outcome: "stale"; readonly error: SituError } {
  if (!(error instanceof SituError) || error.code !== "SITU_STALE_CONFIGURATION") throw error;
  return { outcome: "stale", error };
}

function silent(node: NodeId): SituError {
  return new SituError("SITU_LOST", `node ${node} did not answer in time`);
}

export function locked({ table }: RemoteTable, timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `gave up after ${timeoutMs} ms: a row of table ${table.name} is locked by a transaction that ` +
      `does not end; is a node stopped?`,
  );
}
