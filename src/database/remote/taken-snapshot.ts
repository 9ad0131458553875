/**
 * A snapshot of the cluster, as one client holds it: taken when something is first read from it, renewed while it is
 * held, and released at all nodes in the end. It belongs to one configuration; with the next one it is too old.
 */

import type { ClusterClient } from "../../cluster/client.ts";
import type { View } from "../../cluster/view.ts";
import type { Epoch } from "../../engine/epoch.ts";
import type { Timer } from "../../fabric/fabric.ts";
import type { Driver } from "../../protocols/driver.ts";
import { fetchRows } from "../../protocols/execute/fetch.ts";
import type { Entry, RemoteAccessSet } from "../../protocols/execute/remote-access-set.ts";
import type { RemoteTable } from "../../protocols/execute/remote-table.ts";
import { endSnapshot, renewSnapshot, takeSnapshot } from "../../protocols/execute/take-snapshot.ts";
import type { Routine } from "../../protocols/message.ts";
import type { AtSnapshot } from "../../protocols/phases/read.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import {
  MAX_ASYNC_PAUSE_MS,
  SNAPSHOT_END_MS,
  SNAPSHOT_RENEW_MS,
  SNAPSHOT_TAKE_ATTEMPTS,
} from "../../runtime/limits.ts";
import { RetryPolicy } from "../../runtime/retry-policy.ts";
import type { Table } from "../../tables/table.ts";
import type { Fetcher } from "./remote-transaction.ts";

const FIRST_PAUSE_MS = 0.25;

/** What a snapshot needs of its database. */
export interface SnapshotHost {
  readonly driver: Driver;
  readonly client: ClusterClient;
  readonly timeoutMs: number;
  readonly maxSnapshotMs: number;
  readonly view: View;
  /** The latest epoch of a snapshot: the next one begins there. */
  lastEpoch: Epoch;
  tableOf(table: Table): RemoteTable;
  /** Looks whether all nodes know the tables. */
  look(): void;
}

export class TakenSnapshot implements AtSnapshot, Fetcher {
  readonly view: View;
  readonly readsAt: AtSnapshot = this;
  /** Another one with each attempt to take it. */
  name: string;
  readonly #host: SnapshotHost;
  #epoch: Epoch = 0;
  #taken: Promise<void> | undefined;
  #isReleased = false;
  #timer: Timer | undefined;
  #takenMs = 0;

  constructor(host: SnapshotHost) {
    this.#host = host;
    this.view = host.view;
    this.name = host.client.newSnapshotName();
  }

  /** Takes it, unless that was done. */
  take(): Promise<void> {
    this.#taken ??= this.#take();
    return this.#taken;
  }

  async #take(): Promise<void> {
    const { driver, timeoutMs, client } = this.#host;
    const { clock } = driver.endpoint;
    const retry = new RetryPolicy({ timeoutMs, clock });
    for (;;) {
      try {
        await this.#takeOnce(Math.max(retry.leftMs(), 1));
        return;
      } catch (error) {
        void this.#end();
        // A node has settled what somebody left, and does not know who sees it.
        const isAgain = isTooOld(error) || isOverloaded(error);
        if (!isAgain || retry.attempts >= SNAPSHOT_TAKE_ATTEMPTS || !retry.mayRetry()) {
          throw explained(error, timeoutMs);
        }
        this.name = client.newSnapshotName();
        await sleep(retry.longestPauseMs(FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS), clock);
      }
    }
  }

  async #takeOnce(leftMs: number): Promise<void> {
    const host = this.#host;
    const { driver, maxSnapshotMs } = host;
    const { nodes, configurationId } = this.view;
    host.look();
    this.#takenMs = driver.endpoint.clock.nowMs();
    const request = { name: this.name, nodes, atLeast: host.lastEpoch, lifeMs: maxSnapshotMs };
    this.#epoch = await driver.start(takeSnapshot(request), leftMs, configurationId);
    host.lastEpoch = Math.max(host.lastEpoch, this.#epoch);
    if (this.#isReleased) void this.#end();
    else this.#renewLater();
  }

  #renewLater(): void {
    const { driver } = this.#host;
    const { nodes } = this.view;
    this.#timer = driver.endpoint.clock.after(SNAPSHOT_RENEW_MS, () => {
      if (this.#isReleased || driver.isClosed) return;
      driver.detach(renewSnapshot(nodes, this.name, this.#epoch));
      this.#renewLater();
    });
  }

  /** Whether it was kept for longer than it may be. */
  get isOverdue(): boolean {
    const { driver, maxSnapshotMs } = this.#host;
    return driver.endpoint.clock.nowMs() - this.#takenMs >= maxSnapshotMs;
  }

  /** Lets nodes forget it. Nobody needs to wait for that. */
  release(): Promise<void> {
    if (this.#isReleased) return Promise.resolve();
    this.#isReleased = true;
    this.#timer?.cancel();
    return this.#taken === undefined ? Promise.resolve() : this.#end();
  }

  async #end(): Promise<void> {
    const { driver } = this.#host;
    if (driver.isClosed) return;
    try {
      await driver.start(endSnapshot(this.view.nodes, this.name), SNAPSHOT_END_MS);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
    }
  }

  tableOf(table: Table): RemoteTable {
    return this.#host.tableOf(table);
  }

  async fetch(entries: readonly Entry[], accesses: RemoteAccessSet): Promise<boolean> {
    const again = this.patience();
    for (;;) {
      const wanted = entries.filter(({ isKnown }) => !isKnown);
      const way = { readsByVerb: false, locks: undefined, snapshot: this };
      if (await this.run(fetchRows(wanted, accesses, way))) return true;
      await again();
    }
  }

  /** Whether nobody has changed rows since: what they depend on becomes part of the access set. */
  confirm(entries: readonly Entry[], accesses: RemoteAccessSet): Promise<boolean> {
    const snapshot = new ForWrite(this);
    return this.run(
      fetchRows(entries, accesses, { readsByVerb: false, locks: undefined, snapshot }),
    );
  }

  async run<T>(routine: Routine<T>): Promise<T> {
    await this.take();
    const { driver, timeoutMs } = this.#host;
    return await driver.start(routine, timeoutMs, this.view.configurationId);
  }

  /** To be asked before something is tried again that met a commit which is being written to memory. */
  patience(): () => Promise<void> {
    const { timeoutMs, driver } = this.#host;
    const { clock } = driver.endpoint;
    const retry = new RetryPolicy({ timeoutMs, clock });
    return async () => {
      if (!retry.mayRetry()) throw stillCommitting(timeoutMs);
      await sleep(retry.longestPauseMs(FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS), clock);
    };
  }

  async pause(): Promise<void> {}
}

class ForWrite implements AtSnapshot {
  readonly isForWrite = true;
  readonly #taken: AtSnapshot;

  constructor(taken: AtSnapshot) {
    this.#taken = taken;
  }

  get name(): string {
    return this.#taken.name;
  }
}

export function isTooOld(error: unknown): error is SituError {
  return error instanceof SituError && error.code === "SITU_SNAPSHOT_TOO_OLD";
}

function isOverloaded(error: unknown): boolean {
  return error instanceof SituError && error.code === "SITU_OVERLOADED";
}

/** Why it could not be taken. */
function explained(error: unknown, timeoutMs: number): unknown {
  if (!(error instanceof SituError) || error.code !== "SITU_LOST") return error;
  return new TimeoutError(
    `took no snapshot within ${timeoutMs} ms: a node does not answer, or a transaction that was being committed ` +
      `does not end (${error.message})`,
  );
}

function stillCommitting(timeoutMs: number): TimeoutError {
  return new TimeoutError(
    `gave up after ${timeoutMs} ms: a commit that is being written to memory does not end; is a process stopped?`,
  );
}
