/**
 * List-append on simulated Xenic, with faults: clients at all hosts read up to four lists and append to some of them, at the
 * host, at the NIC, in two shots, shipped to others, or locally, while messages are lost, late, doubled and out of order, hosts
 * stop applying their logs, and servers are killed and their shards recovered. The history must be strictly serializable;
 * in the end nothing is locked, and every list is read once more.
 */

import type { Work, XenicOutcome } from "../../src/protocols/xenic/coordinator.ts";
import type { XenicMessage } from "../../src/protocols/xenic/message.ts";
import type { Switches } from "../../src/protocols/xenic/ports.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { AnomalyKind } from "../checkers/anomalies.ts";
import type { Operation, Outcome, Transaction, Value } from "../checkers/history.ts";
import { checkListAppend } from "../checkers/list-append.ts";
import type { Fault } from "../fabric/faults.ts";
import { XenicCluster } from "./cluster.ts";
import {
  AT_HOST,
  AT_NIC,
  argsOf,
  LIST_PROCEDURES,
  LIST_WORDS,
  type ListAccess,
  listsOf,
  TWO_SHOTS,
  wantedBy,
} from "./list-procedures.ts";
import type { XenicServer } from "./server.ts";

const MOST_KEYS = 4;
/** A run that takes longer is stuck. */
const LONGEST_US = 2e6;

export interface XenicAppendOptions {
  readonly seed: number;
  readonly servers?: number;
  readonly clientsPerServer?: number;
  readonly transactions?: number;
  readonly keys?: number;
  readonly faults?: readonly Fault[];
  /** When servers are killed: after so many messages that were delivered; which one is chance. */
  readonly killsAt?: readonly number[];
  readonly switches?: Partial<Switches>;
  readonly memoryBytes?: number;
  readonly logRecords?: number;
  /** How often a host stops to apply its log, for a while. */
  readonly stalls?: number;
  /** How many of 100 transactions only touch rows of their own server, and of one remote one. */
  readonly localPercent?: number;
  readonly hopPercent?: number;
  /** A mistake that is planted: what is posted in place of a message. */
  readonly tamper?: ((message: XenicMessage) => XenicMessage) | undefined;
}

export interface XenicAppendReport {
  readonly problems: readonly string[];
  readonly anomalies: ReadonlyMap<AnomalyKind, number>;
  readonly committed: number;
  readonly conflicts: number;
  readonly busy: number;
  readonly unknown: number;
  readonly recoveries: number;
  readonly evictions: number;
  readonly longestLog: number;
  readonly delivered: number;
  readonly traceHash: string;
}

export function simulateXenicAppend(options: XenicAppendOptions): XenicAppendReport {
  return new AppendRun(options).run();
}

class AppendRun {
  readonly #options: XenicAppendOptions;
  readonly #cluster: XenicCluster;
  readonly #random: Random;
  readonly #history: Transaction[] = [];
  readonly #counts = { committed: 0, conflicts: 0, busy: 0, unknown: 0 };
  /** Of clients that have a transaction under way: how to record it as unknown. */
  readonly #working = new Map<number, { server: number; lose: () => void }>();
  readonly #keys: number;
  readonly #servers: number;
  #left: number;
  #value = 0;
  #delivered = 0;
  #longestLog = 0;
  #evictions = 0;

  constructor(options: XenicAppendOptions) {
    this.#options = options;
    const { servers = 5, keys = 15, transactions = 300 } = options;
    this.#keys = keys;
    this.#servers = servers;
    this.#left = transactions;
    const kills = new Set(options.killsAt ?? []);
    this.#cluster = new XenicCluster({
      seed: options.seed,
      servers,
      copies: Math.min(3, servers),
      shapes: [{ rows: keys, valueWords: LIST_WORDS }],
      procedures: LIST_PROCEDURES,
      faults: options.faults ?? [],
      ...(options.switches === undefined ? {} : { switches: options.switches }),
      ...(options.memoryBytes === undefined ? {} : { memoryBytes: options.memoryBytes }),
      ...(options.logRecords === undefined ? {} : { logRecords: options.logRecords }),
      tamper: options.tamper,
      trace: (event) => {
        if (event.what === "delivered" && kills.has(++this.#delivered)) this.#kill();
      },
    });
    this.#random = this.#cluster.fabric.random("append");
  }

  run(): XenicAppendReport {
    const { fabric } = this.#cluster;
    const { clientsPerServer = 2, stalls = 0 } = this.#options;
    for (const server of this.#cluster.servers) {
      for (let i = 0; i < clientsPerServer; i++) this.#next(server, server.id * 100 + i);
    }
    const random = fabric.random("stalls");
    for (let i = 0; i < stalls; i++) {
      const server = this.#cluster.servers[random.below(this.#servers)];
      const fromUs = random.below(5_000);
      fabric.at(fromUs, () => {
        server.isApplying = false;
      });
      fabric.at(fromUs + 2_000, () => {
        server.isApplying = true;
      });
    }
    const isBusy = (): boolean =>
      this.#left > 0 || this.#working.size > 0 || this.#cluster.isRecovering;
    while (isBusy() && fabric.nowUs < LONGEST_US && fabric.step()) this.#look();
    fabric.clearFaults();
    return this.#finish(isBusy());
  }

  #look(): void {
    for (const { host } of this.#cluster.living) {
      this.#longestLog = Math.max(this.#longestLog, host.logged.length, host.commits.length);
    }
  }

  #next(server: XenicServer, client: number): void {
    if (this.#left <= 0 || this.#cluster.isDead(server.id)) return;
    this.#left--;
    const procedures = [AT_NIC, AT_NIC, AT_HOST, TWO_SHOTS];
    this.#attempt(server, client, procedures[this.#random.below(4)], this.#pick(server.id), 0);
  }

  #pick(self: number): { key: number; isWritten: boolean }[] {
    const { localPercent = 15, hopPercent = 30 } = this.#options;
    const random = this.#random;
    const chance = random.below(100);
    const other = random.below(this.#servers);
    const servers =
      chance < localPercent
        ? [self]
        : chance < localPercent + hopPercent
          ? [self, other]
          : undefined;
    const isReader = random.below(4) === 0;
    const picked = new Map<number, { key: number; isWritten: boolean }>();
    for (let left = 1 + random.below(MOST_KEYS); left > 0; left--) {
      let key = random.below(this.#keys);
      if (servers !== undefined) {
        key -= key % this.#servers;
        key += servers[random.below(servers.length)];
        // Where there are not as many keys of each server.
        if (key >= this.#keys) key -= this.#servers;
      }
      picked.set(key, { key, isWritten: !isReader && random.below(2) === 0 });
    }
    return [...picked.values()];
  }

  #attempt(
    server: XenicServer,
    client: number,
    procedure: number,
    picked: readonly { key: number; isWritten: boolean }[],
    times: number,
  ): void {
    const { fabric } = this.#cluster;
    const accesses: ListAccess[] = picked.map(({ key, isWritten }) => ({
      key,
      value: isWritten ? ++this.#value : undefined,
    }));
    const start = fabric.nowUs;
    const record = (outcome: Outcome, lists?: readonly (readonly number[])[]): void => {
      const operations: Operation[] = accesses.flatMap(({ key, value }, i) => {
        const list = lists?.[i];
        const read: Operation[] = list === undefined ? [] : [{ kind: "read", key, list }];
        const isFull = list !== undefined && list.length >= LIST_WORDS - 1;
        if (value === undefined || isFull) return read;
        return [...read, { kind: "append", key, value } as const];
      });
      const isWriter = operations.some(({ kind }) => kind === "append");
      if (outcome !== "ok" && !isWriter) return;
      this.#history.push({ process: client, start, end: fabric.nowUs, operations, outcome });
    };
    const work: Work = { procedure, args: argsOf(accesses), ...wantedBy(procedure, accesses) };
    let isOver = false;
    this.#working.set(client, {
      server: server.id,
      lose: () => {
        isOver = true;
        this.#counts.unknown++;
        record("unknown");
      },
    });
    server.submit(work, (outcome: XenicOutcome) => {
      if (isOver) throw new Error("a transaction has two outcomes");
      isOver = true;
      if (outcome.kind === "committed") {
        this.#working.delete(client);
        // Recovery knows that a shipped one was committed, and not what it has read.
        const isKnown = outcome.result.length > 0;
        if (isKnown) {
          this.#counts.committed++;
          record("ok", listsOf(outcome.result));
        } else {
          this.#counts.unknown++;
          record("unknown");
        }
        this.#next(server, client);
        return;
      }
      record("failed");
      if (outcome.reason === "busy") this.#counts.busy++;
      else this.#counts.conflicts++;
      const pauseUs = (20 + this.#random.below(200)) * Math.min(2 ** times, 16);
      this.#working.set(client, { server: server.id, lose: () => {} });
      server.endpoint.clock.after(pauseUs / 1e3, () =>
        this.#attempt(server, client, procedure, picked, times + 1),
      );
    });
  }

  #kill(): void {
    const { living, fabric } = this.#cluster;
    const server = living[this.#random.below(living.length)];
    fabric.at(fabric.nowUs, () => {
      if (this.#cluster.isDead(server.id)) return;
      this.#evictions += evictionsOf(server);
      this.#cluster.kill(server.id);
      for (const [client, { server: id, lose }] of [...this.#working]) {
        if (id !== server.id) continue;
        this.#working.delete(client);
        lose();
      }
    });
  }

  #finish(isStuck: boolean): XenicAppendReport {
    const { fabric, living } = this.#cluster;
    const problems: string[] = [];
    if (isStuck) problems.push(`stuck: ${[...this.#working.keys()].join(", ")} have no outcome`);
    fabric.run(fabric.nowUs + 50_000);
    for (const { id, nic, host } of living) {
      const sum = (pick: "locked" | "pins"): number =>
        nic.rows.indexes.reduce((total, index) => total + index[pick], 0);
      if (sum("locked") > 0) problems.push(`server ${id} has ${sum("locked")} locks for ever`);
      if (sum("pins") > 0) problems.push(`server ${id} has ${sum("pins")} pins for ever`);
      if (host.commits.length > 0) problems.push(`server ${id} has not applied its log`);
      for (const _ of nic.held.states()) problems.push(`server ${id} holds a transaction for ever`);
      this.#evictions += evictionsOf(this.#cluster.servers[id]);
    }
    const finalReads = new Map<number, readonly Value[]>();
    const reader = living[0];
    for (let key = 0; key < this.#keys; key++) {
      const accesses = [{ key, value: undefined }];
      const work = { procedure: AT_NIC, args: argsOf(accesses), ...wantedBy(AT_NIC, accesses) };
      reader.submit(work, (outcome) => {
        if (outcome.kind === "committed") finalReads.set(key, listsOf(outcome.result)[0]);
        else problems.push(`list ${key} cannot be read: ${outcome.reason}`);
      });
    }
    fabric.run(fabric.nowUs + 50_000);
    const { ok, anomalies, counts } = checkListAppend(this.#history, {
      isolation: "strict-serializable",
      finalReads,
      explainedPerKind: 1,
    });
    if (!ok) problems.push(...anomalies.map((each) => `${each.kind}: ${each.explanation}`));
    return {
      problems,
      anomalies: counts,
      ...this.#counts,
      recoveries: this.#cluster.recoveries,
      evictions: this.#evictions,
      longestLog: this.#longestLog,
      delivered: this.#delivered,
      traceHash: fabric.traceHash(),
    };
  }
}

function evictionsOf({ nic }: XenicServer): number {
  return nic.rows.indexes.reduce((sum, { counters }) => sum + counters.evictions, 0);
}
