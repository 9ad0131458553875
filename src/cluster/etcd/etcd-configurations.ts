/**
 * Configurations in etcd. etcd is asked when a node starts, when the configuration changes, and every few
 * seconds in the background; a cluster goes on without it as long as nothing has to change. A watch tells of
 * changes at once, but is only a hint: it may be late, or silent without an error. Whatever is read, the
 * number of `current` never goes back.
 */

import { every } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { ETCD_POLL_MS, ETCD_RETRY_MAX_MS } from "../../runtime/limits.ts";
import type { Configuration, Configurations } from "../configuration.ts";
import type { EtcdRecord, ReadRecord } from "./record.ts";

export class EtcdConfigurations implements Configurations {
  readonly #record: EtcdRecord;
  readonly #pollMs: number;
  readonly #listeners = new Set<(next: Configuration) => void>();
  readonly #identity: string;
  #current: Configuration;
  /** Of what has been read last: a watch begins behind it. */
  #revision: string;
  #reading: Promise<unknown> | undefined;
  #stop: (() => void) | undefined;

  /** Of a cluster that has been formed (forming.ts). */
  constructor(record: EtcdRecord, read: ReadRecord, pollMs = ETCD_POLL_MS) {
    const { configuration, identity = "" } = read.record ?? {};
    if (configuration === undefined) {
      throw new SituError("SITU_CONFIG", `there is no configuration at ${record.key}`);
    }
    this.#record = record;
    this.#revision = read.revision;
    this.#current = configuration;
    this.#identity = identity;
    this.#pollMs = pollMs;
  }

  get current(): Configuration {
    return this.#current;
  }

  async read(): Promise<Configuration> {
    this.#adopt((await this.#load()).configuration);
    return this.#current;
  }

  async swap(previous: Configuration, next: Configuration): Promise<boolean> {
    const [from, to] = [previous.configurationId, next.configurationId];
    if (to !== from + 1) {
      throw new SituError("SITU_CONFIG", `configuration ${to} cannot follow ${from}`);
    }
    const { read, configuration } = await this.#load();
    const there = configuration.configurationId;
    this.#adopt(configuration);
    if (there < this.#current.configurationId) {
      const seen = `has configuration ${there}, but ${this.#current.configurationId} was seen before`;
      throw this.#strange(`${seen}: etcd has lost what it had`);
    }
    if (there !== from) return false;
    const identity = this.#identity;
    const isDone = await this.#record.replace(read, { identity, configuration: next });
    if (isDone) this.#adopt(next);
    else await this.read();
    return isDone;
  }

  async #load(): Promise<{ read: ReadRecord; configuration: Configuration }> {
    const read = await this.#record.read();
    const { record, revision } = read;
    if (record === undefined) throw this.#strange("is gone");
    if (record.identity !== this.#identity) throw this.#strange("is of another cluster");
    if (record.configuration === undefined) throw this.#strange("has no configuration any more");
    this.#revision = revision;
    return { read, configuration: record.configuration };
  }

  watch(changed: (next: Configuration) => void): () => void {
    this.#listeners.add(changed);
    this.#stop ??= this.#follow();
    return () => {
      this.#listeners.delete(changed);
      if (this.#listeners.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  close(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.#record.gateway.close();
  }

  #adopt(next: Configuration): void {
    if (next.configurationId <= this.#current.configurationId) return;
    this.#current = next;
    for (const listener of this.#listeners) listener(next);
  }

  /** Watches and polls until it is stopped. */
  #follow(): () => void {
    const stopping = new AbortController();
    const { signal } = stopping;
    const look = (): void => {
      // One at a time. etcd may be gone, or the key damaged: what counts is still what was.
      this.#reading ??= this.read()
        .catch(() => {})
        .finally(() => {
          this.#reading = undefined;
        });
    };
    const polling = every(this.#pollMs, look);
    void this.#watchUntil(signal, look);
    return () => {
      polling.cancel();
      stopping.abort();
    };
  }

  async #watchUntil(signal: AbortSignal, look: () => void): Promise<void> {
    const { key, gateway } = this.#record;
    while (!signal.aborted) {
      await gateway.watch(key, this.#revision, look, signal);
      if (!signal.aborted) await quietly(ETCD_RETRY_MAX_MS, signal);
    }
  }

  #strange(what: string): SituError {
    const then = "if that was on purpose, start the nodes with empty folders";
    return new SituError("SITU_CONFIG", `the key ${this.#record.key} in etcd ${what}; ${then}`);
  }
}

/** A pause that ends early if it is not needed any more. */
function quietly(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = every(ms, end);
    function end(): void {
      timer.cancel();
      signal.removeEventListener("abort", end);
      resolve();
    }
    signal.addEventListener("abort", end);
  });
}
