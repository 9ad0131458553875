/**
 * Memory servers and compute servers of NAM-DB on the simulated fabric: the project's own coroutines (src/protocols/nam/)
 * over simulated NICs. Memory servers are nodes; compute servers are clients of theirs, or share a machine
 * with one of them (locality).
 */

import type { Incoming, NodeId } from "../../src/fabric/fabric.ts";
import type { VerbMemory } from "../../src/fabric/verbs.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { NAM_CLAIM, NAM_MEMBERS, NAM_ORACLE_DONE } from "../../src/protocols/kinds.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { claimPair, serveClaim } from "../../src/protocols/nam/claim.ts";
import { ComputeThread, type NamDirectory } from "../../src/protocols/nam/compute-thread.ts";
import type { NamTableOptions } from "../../src/protocols/nam/layout.ts";
import { Members } from "../../src/protocols/nam/members.ts";
import { ServerMembership } from "../../src/protocols/nam/membership.ts";
import { MemoryServer } from "../../src/protocols/nam/memory-server.ts";
import { OracleKeeper } from "../../src/protocols/nam/oracle.ts";
import { tablesOf } from "../../src/protocols/nam/segments.ts";
import { settle } from "../../src/protocols/nam/settle.ts";
import { type TimestampOptions, Timestamps } from "../../src/protocols/nam/timestamps.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { SimulatedEndpoint } from "../fabric/endpoint.ts";
import { SimulatedFabric, type SimulatedFabricOptions } from "../fabric/fabric.ts";

export interface NamClusterOptions extends SimulatedFabricOptions {
  readonly memoryServers: number;
  readonly computeServers: number;
  /** Of each range, at so many memory servers; 1 if not given. */
  readonly copies?: number;
  readonly threadsPerServer: number;
  readonly timestamps: TimestampOptions;
  readonly tables: readonly NamTableOptions[];
  /** Compute server i is on the machine of memory server i, and reads and writes its memory directly. */
  readonly isLocal?: boolean;
  /** Compute servers share machines with memory servers, with or without using that. */
  readonly sharesMachines?: boolean;
  /** The vector has a server of its own. */
  readonly hasTimestampServer?: boolean;
  /** The vector is cut in parts, one at each memory server. */
  readonly isVectorCut?: boolean;
  readonly isBatching?: boolean;
  readonly journalWords?: number;
  readonly journalCopies?: number;
  readonly overflowWords?: number;
  readonly longestTransactionMs?: number;
  /** How often each mover looks, and at how many cells. */
  readonly moverEveryUs?: number;
  readonly moverCells?: number;
}

const SETTLE_MS = 1_000;

/** A compute server: a process with so many threads, and the timestamps that they share. */
export interface ComputeServer {
  readonly number: number;
  /** Its end of the fabric. */
  readonly id: number;
  readonly endpoint: SimulatedEndpoint;
  readonly driver: Driver;
  readonly timestamps: Timestamps;
  /** Of one slot each; threads that share one are in one group. */
  readonly groups: readonly (readonly ComputeThread[])[];
}

export class NamCluster {
  readonly fabric: SimulatedFabric;
  readonly options: NamClusterOptions;
  readonly directory: NamDirectory;
  readonly servers: readonly MemoryServer[];
  /** By the number of the node. */
  readonly #endpoints: SimulatedEndpoint[] = [];
  #claimants = 0;
  readonly #ids: readonly NodeId[];

  constructor(options: NamClusterOptions) {
    this.options = options;
    this.fabric = new SimulatedFabric(options);
    const { memoryServers, computeServers, threadsPerServer, timestamps } = options;
    const ids = Array.from({ length: memoryServers }, (_, id) => id);
    const isShared = timestamps.layout === "compressed" || timestamps.layout === "both";
    const timestampServers = options.isVectorCut
      ? ids
      : [options.hasTimestampServer ? memoryServers : 0];
    this.#ids = ids;
    const members = new Members(ids, options.copies);
    this.directory = {
      servers: ids,
      // A vector with a server of its own, or in parts, has no copies.
      ...(options.copies === undefined ? {} : { members }),
      tables: tablesOf(options.tables, ids, members),
      pairs: computeServers * threadsPerServer,
      pairsPerSlot: isShared ? threadsPerServer : 1,
      journalWords: options.journalWords ?? 1_024,
      overflowWords: options.overflowWords ?? 1 << 14,
      journalCopies: options.journalCopies ?? Math.max(2, options.copies ?? 1),
      timestampServers,
    };
    const nodes = options.hasTimestampServer ? [...ids, memoryServers] : ids;
    this.servers = nodes.map((id) => this.#memoryServer(id));
  }

  /** Of an earlier life of the same process nothing is known but its numbers. */
  computeServer(number: number, directory = this.directory): ComputeServer {
    const { threadsPerServer, isLocal, isBatching, timestamps } = this.options;
    const isAtNode = isLocal || this.options.sharesMachines;
    const id = isAtNode ? number : -1 - number;
    const endpoint = isAtNode
      ? this.#endpoints[number]
      : this.fabric.endpoint({ self: id, configurationId: 1 });
    const localMemory = new Map<NodeId, VerbMemory>(isLocal ? [[id, this.servers[number]]] : []);
    const threads = Array.from(
      { length: threadsPerServer },
      (_, i) =>
        new ComputeThread(number * threadsPerServer + i, directory, {
          localMemory,
          ...(isBatching === undefined ? {} : { isBatching }),
        }),
    );
    const { pairsPerSlot } = this.directory;
    const groups =
      pairsPerSlot === 1 ? threads.map((thread) => [thread]) : [threads as ComputeThread[]];
    return {
      number,
      id,
      endpoint,
      driver: new Driver(endpoint),
      timestamps: new Timestamps(directory, timestamps),
      groups,
    };
  }

  /** What a compute server knows that learns of changes of the members by itself. */
  ownDirectory(): NamDirectory & { readonly members: Members } {
    const { members: known = new Members(this.#ids) } = this.directory;
    const members = new Members(this.#ids, known.copies);
    members.become(known.epoch, known.alive);
    return {
      ...this.directory,
      members,
      tables: tablesOf(this.options.tables, this.#ids, members),
    };
  }

  /** Claims a server's threads and settles what earlier lives of it have left. */
  *open({ groups, timestamps }: ComputeServer): Routine<void> {
    for (const group of groups) {
      // The oracle knows no dead threads.
      if (timestamps.layout !== "oracle") yield* settle(group, timestamps, this.claimant());
      else for (const thread of group) yield* claimPair(thread, this.claimant());
    }
  }

  /** The same at once, for a cluster that has just begun: nothing is left by anybody. */
  openAtOnce({ groups, timestamps }: ComputeServer, published = 0): void {
    for (const thread of groups.flat()) {
      for (const { guard } of this.servers) guard.claim(thread.pair, 1, this.claimant());
      thread.claimed(1);
      timestamps.resume(thread, published);
    }
  }

  /** The threads of a slot, for one who settles them. */
  threadsOf(slot: number): ComputeThread[] {
    const { pairsPerSlot } = this.directory;
    return Array.from(
      { length: pairsPerSlot },
      (_, i) => new ComputeThread(slot * pairsPerSlot + i, this.directory),
    );
  }

  /** Verbs and messages that memory servers have served. */
  served(): number {
    return this.#endpoints.reduce((sum, { counters }) => sum + counters.requestsServed, 0);
  }

  claimant(): number {
    return ++this.#claimants;
  }

  /** Runs a coroutine at a compute server and lets time pass until it is over. */
  run<T>({ driver }: ComputeServer, routine: Routine<T>, timeoutMs = SETTLE_MS): T {
    let result: { readonly value: T } | undefined;
    let failure: { readonly error: unknown } | undefined;
    driver.run(
      routine,
      timeoutMs,
      (value) => {
        result = { value };
      },
      (error) => {
        failure = { error };
      },
    );
    while (result === undefined && failure === undefined && this.fabric.step());
    if (failure !== undefined) throw failure.error;
    if (result === undefined) throw new Error("a coroutine has not come to its end");
    return result.value;
  }

  #memoryServer(id: NodeId): MemoryServer {
    const { directory, options, fabric } = this;
    const { longestTransactionMs = 1_000, moverEveryUs, moverCells = 1_000 } = options;
    const server = new MemoryServer({
      id,
      servers: directory.servers,
      ...(options.copies === undefined ? {} : { copies: options.copies }),
      tables: options.tables,
      pairs: directory.pairs,
      pairsPerSlot: directory.pairsPerSlot,
      journalWords: directory.journalWords,
      overflowWords: directory.overflowWords,
      longestTransactionMs,
    });
    const oracle = new OracleKeeper(server);
    const membership = new ServerMembership(server);
    const serve = (incoming: Incoming): void => {
      if (incoming.kind === NAM_CLAIM) serveClaim(server, incoming);
      else if (incoming.kind === NAM_MEMBERS) membership.serve(incoming);
      else if (incoming.kind === NAM_ORACLE_DONE) oracle.serve(incoming);
      else throw new SituError("SITU_PROTOCOL", `no kind of message ${incoming.kind}`);
    };
    this.#endpoints[id] = fabric.endpoint({
      self: id,
      configurationId: 1,
      memory: server,
      service: serve,
    });
    if (moverEveryUs !== undefined) {
      fabric.every(moverEveryUs, id, () => server.mover.round(fabric.nowUs / 1e3, moverCells));
    }
    return server;
  }
}
