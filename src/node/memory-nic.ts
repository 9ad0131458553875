/**
 * The NIC worker of a memory server: the thread that owns the sockets and the memory. It serves guarded verbs, and the
 * few messages by which compute servers come and go and tables are made. Nothing of a transaction runs here.
 */

import { parentPort } from "node:worker_threads";
import { packConfiguration } from "../cluster/configuration.ts";
import type { Description } from "../cluster/describe.ts";
import { DESCRIBE_KIND, type FabricCounters, type Incoming } from "../fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../fabric/tcp/endpoint.ts";
import { MemoryServer } from "../protocols/nam/memory-server.ts";
import { MemoryService } from "../protocols/nam/memory-service.ts";
import { every, nowMs } from "../runtime/clock.ts";
import { NAM_MOVER_MS } from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";
import type { MemoryNodeConfiguration } from "./memory-configuration.ts";
import { cannotListen } from "./nic.ts";

/** What a memory server tells of itself. */
export interface MemoryStats {
  readonly counters: FabricCounters;
  readonly usedBytes: number;
  /** Verbs that the guard has turned away. */
  readonly refusedVerbs: number;
  /** Old versions that were moved out of their rings. */
  readonly movedVersions: number;
  readonly overflowUsedWords: number;
}

export interface MemoryTask {
  readonly memory: MemoryNodeConfiguration;
}

export type FromMemoryNic =
  | { readonly what: "listening"; readonly port: number }
  | { readonly what: "failed"; readonly code: string; readonly message: string }
  | { readonly what: "stats"; readonly stats: MemoryStats }
  | { readonly what: "closed" };

export function isMemoryTask(task: unknown): task is MemoryTask {
  return typeof task === "object" && task !== null && "memory" in task;
}

export class MemoryNic {
  readonly #service: MemoryService;
  readonly #endpoint: TcpEndpoint;
  readonly #moving: { cancel(): void };

  private constructor(service: MemoryService, endpoint: TcpEndpoint) {
    this.#service = service;
    this.#endpoint = endpoint;
    this.#moving = every(NAM_MOVER_MS, () => service.tick(nowMs()));
    service.wakeBy(() => {
      setImmediate(() => service.moveNoted(nowMs()));
    });
  }

  static async open(configuration: MemoryNodeConfiguration): Promise<MemoryNic> {
    const { id, cluster, settings, secret, tls, maxConnections } = configuration;
    const servers = cluster.nodes.map((node) => node.id);
    const server = new MemoryServer({
      id,
      servers,
      copies: settings.copies,
      tables: [],
      pairs: settings.threads,
      pairsPerSlot: 1,
      journalWords: settings.journalWords,
      overflowWords: settings.overflowWords,
      longestTransactionMs: settings.longestTransactionMs,
      mostBytes: configuration.memoryBytes,
    });
    const instance = uniqueId();
    const service = new MemoryService(server, instance, settings);
    const description: { [Key in keyof Description]: unknown } = {
      node: id,
      instance,
      configuration: packConfiguration(cluster),
      protocol: "nam",
    };
    const endpoint = await openTcp({
      self: id,
      nodes: new Map(),
      configurationId: cluster.configurationId,
      cluster: cluster.cluster,
      memory: server,
      instance,
      service: (incoming: Incoming) => {
        if (incoming.kind === DESCRIBE_KIND) incoming.reply().text(JSON.stringify(description));
        else service.serve(incoming);
      },
      ...(secret === undefined ? {} : { secret }),
      ...(tls === undefined ? {} : { tls }),
      ...(maxConnections === undefined ? {} : { maxConnections }),
    });
    const { host, port } = cluster.nodes.find((node) => node.id === id)!;
    try {
      await endpoint.listen({ host, port });
    } catch (error) {
      await endpoint.close();
      throw cannotListen({ id, host, port }, error as NodeJS.ErrnoException);
    }
    return new MemoryNic(service, endpoint);
  }

  get port(): number {
    return this.#endpoint.address().port;
  }

  stats(): MemoryStats {
    const { guard, mover, usedBytes } = this.#service.server;
    return {
      counters: this.#endpoint.counters,
      usedBytes,
      refusedVerbs: guard.refused,
      movedVersions: mover.moved,
      overflowUsedWords: mover.usedWords,
    };
  }

  async close(): Promise<void> {
    this.#moving.cancel();
    await this.#endpoint.close();
  }
}

/** In the worker. */
export async function runMemoryNic({ memory }: MemoryTask): Promise<void> {
  const port = parentPort!;
  const tell = (message: FromMemoryNic): void => port.postMessage(message);
  let nic: MemoryNic;
  try {
    nic = await MemoryNic.open(memory);
  } catch (error) {
    const { code = "SITU_CONFIG", message } = error as { code?: string; message: string };
    tell({ what: "failed", code, message });
    port.close();
    return;
  }
  port.on("message", (wanted: "stats" | "close") => {
    if (wanted === "stats") {
      tell({ what: "stats", stats: nic.stats() });
      return;
    }
    void nic.close().then(() => {
      tell({ what: "closed" });
      port.close();
    });
  });
  tell({ what: "listening", port: nic.port });
}
