/** A memory server as a process runs it: its NIC worker, as something to talk to. The process's own thread has nothing to do. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { threadScript } from "../runtime/thread-script.ts";
import type { MemoryNodeConfiguration } from "./memory-configuration.ts";
import type { FromMemoryNic, MemoryStats, MemoryTask } from "./memory-nic.ts";

export class MemoryNode {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly configuration: MemoryNodeConfiguration;
  readonly #worker: Worker;
  #isClosed = false;

  private constructor(configuration: MemoryNodeConfiguration, worker: Worker, port: number) {
    this.id = configuration.id;
    this.host = configuration.cluster.nodes.find(({ id }) => id === configuration.id)!.host;
    this.port = port;
    this.configuration = configuration;
    this.#worker = worker;
  }

  static async start(
    configuration: MemoryNodeConfiguration,
    died: (error: Error) => void,
  ): Promise<MemoryNode> {
    const worker = new Worker(threadScript("situ-nic.js"), {
      workerData: { memory: configuration } satisfies MemoryTask,
      name: "situ memory",
      execArgv: [],
    });
    const first = await new Promise<FromMemoryNic>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    if (first.what !== "listening") {
      await worker.terminate();
      const { code, message } = first as { code: string; message: string };
      throw new SituError(code as SituErrorCode, message);
    }
    const node = new MemoryNode(configuration, worker, first.port);
    worker.on("error", died);
    worker.on("exit", () => {
      if (!node.#isClosed) died(new Error("the NIC worker has ended"));
    });
    return node;
  }

  async stats(): Promise<MemoryStats> {
    const answer = await this.#ask("stats", "stats");
    return (answer as { stats: MemoryStats }).stats;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ended = once(this.#worker, "exit");
    await this.#ask("close", "closed");
    await ended;
  }

  #ask(wanted: "stats" | "close", what: FromMemoryNic["what"]): Promise<FromMemoryNic> {
    return new Promise((resolve) => {
      const hear = (message: FromMemoryNic): void => {
        if (message.what !== what) return;
        this.#worker.off("message", hear);
        resolve(message);
      };
      this.#worker.on("message", hear);
      this.#worker.postMessage(wanted);
    });
  }
}
