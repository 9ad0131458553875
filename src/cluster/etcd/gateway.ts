/**
 * One key of etcd, over the JSON gateway of etcd 3.4 and newer. Three things are asked of it: the value,
 * always linearizable; to replace the value if it is still of a certain revision; and to hint at changes.
 * Members are asked in turn until one answers, each within its time, and all within the caller's.
 */

import { nowMs, sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  ETCD_CALL_MS,
  ETCD_PATIENCE_MS,
  ETCD_RETRY_MAX_MS,
  ETCD_RETRY_MIN_MS,
} from "../../runtime/limits.ts";
import { type EtcdOptions, membersOf } from "./endpoints.ts";
import { begin, call, EtcdError } from "./request.ts";

/** A value, and the revision of etcd that it is of. */
export interface Revised {
  readonly value: string;
  readonly revision: string;
}

/** Of a key that is not there. */
export const NO_REVISION = "0";

export interface GatewayTimes {
  readonly callMs: number;
  readonly patienceMs: number;
}

export class EtcdGateway {
  readonly options: EtcdOptions;
  readonly #times: GatewayTimes;
  readonly #closing = new AbortController();
  #at = 0;
  #token: string | undefined;

  constructor(options: EtcdOptions, times: Partial<GatewayTimes> = {}) {
    this.options = options;
    this.#times = { callMs: ETCD_CALL_MS, patienceMs: ETCD_PATIENCE_MS, ...times };
  }

  /** The value of the key, if there is one. */
  async get(key: string): Promise<Revised | undefined> {
    const answer = await this.#ask("/v3/kv/range", { key: base64(key) });
    const [found] = (answer as { kvs?: { value?: string; mod_revision?: string }[] }).kvs ?? [];
    if (found === undefined) return undefined;
    const value = Buffer.from(found.value ?? "", "base64").toString("utf8");
    return { value, revision: found.mod_revision ?? NO_REVISION };
  }

  /**
   * Sets the key if its value is still of `revision`; says whether it did. Sent again when an answer is
   * lost: then `isCertain` is false of a refusal, which an earlier attempt of ours may have caused.
   */
  async replace(
    key: string,
    value: string,
    revision: string,
  ): Promise<{ isDone: boolean; isCertain: boolean }> {
    const attempts = { count: 0 };
    const body = {
      compare: [{ key: base64(key), target: "MOD", result: "EQUAL", mod_revision: revision }],
      success: [{ request_put: { key: base64(key), value: base64(value) } }],
    };
    const answer = (await this.#ask("/v3/kv/txn", body, attempts)) as { succeeded?: boolean };
    const isDone = answer.succeeded === true;
    return { isDone, isCertain: isDone || attempts.count === 1 };
  }

  /**
   * Calls `hint` when the key may have changed, and after every interruption; returns when the watch is
   * over, for it never is for good: the caller begins another one. No more than a hint: what counts is
   * what `get` says.
   */
  async watch(key: string, after: string, hint: () => void, signal: AbortSignal): Promise<void> {
    const create = { key: base64(key), start_revision: String(BigInt(after) + 1n) };
    const all = AbortSignal.any([signal, this.#closing.signal]);
    const response = await this.#within(all, async (endpoint) =>
      begin({
        ...(await this.#to(endpoint)),
        path: "/v3/watch",
        body: { create_request: create },
        signal: all,
      }),
    );
    if (response === undefined) return;
    if (response.statusCode !== 200) this.#token = undefined;
    try {
      let seen = "";
      for await (const part of response as AsyncIterable<Buffer>) {
        // The end of a watch is a line of the stream, and the stream may stay open after it.
        seen = (seen + part.toString("latin1")).slice(-WATCHED_CHARACTERS);
        hint();
        if (/"(canceled":true|error":)/.test(seen)) break;
      }
    } catch {
      // The connection broke, or the caller has enough.
    } finally {
      response.destroy();
      this.#next();
    }
    hint();
  }

  close(): void {
    this.#closing.abort();
  }

  /** Until a member answers; `attempts` counts the requests whose outcome nobody knows, too. */
  async #ask(path: string, body: object, attempts = { count: 0 }): Promise<unknown> {
    const deadlineMs = nowMs() + this.#times.patienceMs;
    let pauseMs = ETCD_RETRY_MIN_MS;
    for (let failed = 0; ; ) {
      if (this.#closing.signal.aborted) throw closed();
      try {
        const to = await this.#to(this.#endpoint);
        attempts.count++;
        return await call({ ...to, path, body }, this.#times.callMs);
      } catch (error) {
        if (this.#closing.signal.aborted) throw closed();
        this.#judge(error);
        this.#next();
        failed++;
        if (nowMs() >= deadlineMs) throw this.#unreachable(error);
      }
      if (failed % this.options.endpoints.length > 0) continue;
      await sleep(pauseMs);
      pauseMs = Math.min(2 * pauseMs, ETCD_RETRY_MAX_MS);
    }
  }

  /** For a watch: one attempt, whatever it comes to. */
  async #within<T>(
    signal: AbortSignal,
    work: (endpoint: string) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await work(this.#endpoint);
    } catch {
      if (!signal.aborted) this.#next();
      return undefined;
    }
  }

  get #endpoint(): string {
    return this.options.endpoints[this.#at];
  }

  #next(): void {
    this.#at = (this.#at + 1) % this.options.endpoints.length;
  }

  /** With a token, if there is a user: tokens end after some minutes, or with the member. */
  async #to(endpoint: string): Promise<Omit<Parameters<typeof call>[0], "path" | "body">> {
    const { options } = this;
    const { signal } = this.#closing;
    const { user: name, password = "" } = options;
    if (name !== undefined) this.#token ??= await this.#authenticate(endpoint, name, password);
    return { options, endpoint, token: this.#token || undefined, signal };
  }

  async #authenticate(endpoint: string, name: string, password: string): Promise<string> {
    const { signal } = this.#closing;
    const request = { options: this.options, endpoint, token: undefined, signal };
    try {
      const answer = await call(
        { ...request, path: "/v3/auth/authenticate", body: { name, password } },
        this.#times.callMs,
      );
      return (answer as { token?: string }).token ?? "";
    } catch (error) {
      // Then nobody needs a token.
      if (error instanceof EtcdError && /not enabled/.test(error.message)) return "";
      throw error;
    }
  }

  /** Throws what will not pass. */
  #judge(error: unknown): void {
    const hadToken = this.#token !== undefined;
    // Some versions break the connection instead of saying that a token is invalid.
    this.#token = undefined;
    if (!(error instanceof EtcdError)) return;
    if (error.isPassing || (error.isTokenInvalid && hadToken)) return;
    const hint =
      error.status === 404
        ? "; Situ needs the JSON gateway of etcd 3.4 or newer there"
        : error.isTokenInvalid
          ? "; give a user and a password of etcd"
          : "";
    throw new SituError("SITU_CONFIG", `etcd refuses: ${error.message}${hint}`, { cause: error });
  }

  #unreachable(cause: unknown): SituError {
    const why = `etcd does not answer at ${membersOf(this.options)} within ${this.#times.patienceMs} ms`;
    const { message } = cause as Error;
    return new SituError("SITU_UNREACHABLE", `${why}: ${message}`, { cause });
  }
}

/** As much of a watch's stream as is looked at for its end. */
const WATCHED_CHARACTERS = 4_096;

function closed(): SituError {
  return new SituError("SITU_CLOSED", "the connection to etcd is closed");
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
