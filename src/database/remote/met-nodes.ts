/**
 * The nodes that know a database's tables. Each is told of them when it is met first: at the beginning, or when
 * it comes later. One that does not answer is tried until it does, or has left, and keeps nobody from using
 * the others.
 */

import type { View } from "../../cluster/view.ts";
import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import type { RemoteTable } from "../../protocols/execute/remote-table.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { FOLLOW_MAX_MS, MAX_TIMEOUT_MS, MEET_PATIENCE_MS } from "../../runtime/limits.ts";
import { schemaOf } from "../../tables/schema.ts";
import { isPassing } from "./follower.ts";
import type { ClusterConnection } from "./remote-database.ts";

interface OpenTable {
  readonly remote: RemoteTable;
  readonly schema: string;
}

interface Met {
  /** The configuration that took in this life of the node. */
  readonly since: ConfigurationId;
  /** So many of the tables are open there. */
  opened: number;
  opening: Promise<void> | undefined;
}

export class MetNodes {
  readonly #options: ClusterConnection;
  #tables: readonly OpenTable[] = [];
  readonly #met = new Map<NodeId, Met>();
  /** The one whose nodes were met. */
  #view: View;
  #isClosed = false;

  constructor(options: ClusterConnection) {
    this.#options = options;
    this.#view = options.client.view.current;
  }

  /** Whether some node is not known to have all tables. */
  get isWaiting(): boolean {
    return this.#view.nodes.some((node) => this.#met.get(node)?.opened !== this.#tables.length);
  }

  /** Opens tables at all nodes that can be reached; fails if none can within the time. */
  async open(remotes: readonly RemoteTable[], timeoutMs: number): Promise<void> {
    const before = this.#tables;
    const more = remotes.map((remote) => ({
      remote,
      schema: JSON.stringify(schemaOf(remote.table)),
    }));
    this.#tables = [...before, ...more];
    try {
      await this.#openAll(timeoutMs);
    } catch (error) {
      this.#tables = this.#tables.filter((each) => !more.includes(each));
      for (const met of this.#met.values()) met.opened = Math.min(met.opened, before.length);
      throw error;
    }
  }

  /** Meets the nodes of a configuration that has changed. */
  look(): void {
    if (this.#options.client.view.current === this.#view) return;
    this.#view = this.#options.client.view.current;
    for (const node of this.#met.keys()) {
      if (!this.#view.nodes.includes(node)) this.#met.delete(node);
    }
    // What is wrong with a node is told to those who need it.
    for (const node of this.#view.nodes) this.#meet(node).catch(() => {});
  }

  close(): void {
    this.#isClosed = true;
  }

  #openAll(timeoutMs: number): Promise<void> {
    const { endpoint, client } = this.#options;
    this.look();
    return new Promise((resolve, reject) => {
      const silent = new Set(client.nodes);
      let isAnswered = false;
      const timers = [
        endpoint.clock.after(timeoutMs, () => end(isAnswered ? undefined : nobody(timeoutMs))),
        endpoint.clock.after(MEET_PATIENCE_MS, () => check(true)),
      ];
      let isPatient = true;
      const end = (error?: unknown): void => {
        for (const timer of timers) timer.cancel();
        if (error === undefined) resolve();
        else reject(error);
      };
      const check = (isOver = false): void => {
        if (isOver) isPatient = false;
        const isWorthIt = (node: NodeId): boolean =>
          isPatient || endpoint.isConnected === undefined || endpoint.isConnected(node);
        if (isAnswered && ![...silent].some(isWorthIt)) end();
      };
      for (const node of client.nodes) {
        this.#meet(node).then(() => {
          silent.delete(node);
          isAnswered ||= this.#met.get(node)?.opened === this.#tables.length;
          check();
        }, end);
      }
    });
  }

  /** Tells a node of the tables that it does not know yet. Returns, too, when it has left. */
  #meet(node: NodeId): Promise<void> {
    const since = this.#options.client.view.current.memberSince(node) ?? 0;
    let met = this.#met.get(node);
    if (met?.since !== since) {
      for (const { remote } of this.#tables) remote.closePlace(node);
      met = { since, opened: 0, opening: undefined };
      this.#met.set(node, met);
    }
    const found = met;
    found.opening ??= this.#open(node, found).finally(() => {
      found.opening = undefined;
    });
    return found.opening;
  }

  async #open(node: NodeId, met: Met): Promise<void> {
    const { driver, client, readsByVerb, follower, endpoint } = this.#options;
    while (met.opened < this.#tables.length && this.#met.get(node) === met && !this.#isClosed) {
      const wanted = this.#tables.slice(met.opened);
      const { configurationId } = client.view.current;
      const routine = client.openTables(
        node,
        wanted.map(({ schema }) => schema),
      );
      try {
        const places = await driver.start(routine, MAX_TIMEOUT_MS, configurationId);
        if (this.#met.get(node) !== met) return;
        if (readsByVerb) wanted.forEach(({ remote }, i) => void remote.openPlace(node, places[i]));
        met.opened += wanted.length;
      } catch (error) {
        if (this.#isClosed) return;
        if (!isPassing(error)) throw error;
        // The node has another configuration than this end.
        if (follower === undefined) await sleep(FOLLOW_MAX_MS, endpoint.clock);
        else await follower.later(configurationId, FOLLOW_MAX_MS);
        this.look();
      }
    }
  }
}

function nobody(timeoutMs: number): SituError {
  return new SituError(
    "SITU_UNREACHABLE",
    `no node of the cluster answers within ${timeoutMs} ms: are they running, and can they be reached?`,
  );
}
