/** The NIC as a thread: what it is started with, and what it tells the host's thread. */

import { once } from "node:events";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { threadScript } from "../runtime/thread-script.ts";
import { Nic, type NicStats } from "./nic.ts";
import type { NodeConfiguration } from "./node-configuration.ts";

type FromNic =
  | { readonly what: "listening"; readonly port: number; readonly instance: string }
  | { readonly what: "failed"; readonly code: string; readonly message: string }
  | { readonly what: "stats"; readonly stats: NicStats }
  | { readonly what: "closed" };

type ToNic = "stats" | "close";

interface NicTask {
  readonly configuration: NodeConfiguration;
  readonly life: number;
  readonly end: ChannelEnd;
}

/** In the worker. */
export async function runNic(): Promise<void> {
  const port = parentPort!;
  const tell = (message: FromNic): void => port.postMessage(message);
  let nic: Nic;
  try {
    const { configuration, life, end } = workerData as NicTask;
    nic = await Nic.open(configuration, life, end);
  } catch (error) {
    const { code = "SITU_CONFIG", message } = error as { code?: string; message: string };
    tell({ what: "failed", code, message });
    port.close();
    return;
  }
  port.on("message", (wanted: ToNic) => {
    if (wanted === "stats") {
      tell({ what: "stats", stats: nic.stats() });
      return;
    }
    void nic.close().then(() => {
      tell({ what: "closed" });
      port.close();
    });
  });
  const { instance } = nic.endpoint;
  tell({ what: "listening", port: nic.endpoint.address().port, instance });
}

/** In the host's thread: the worker, as something to talk to. */
export class NicThread {
  readonly port: number;
  /** Names this life of the node. */
  readonly instance: string;
  readonly #worker: Worker;
  #isClosed = false;

  private constructor(worker: Worker, port: number, instance: string) {
    this.#worker = worker;
    this.port = port;
    this.instance = instance;
  }

  static async start(
    configuration: NodeConfiguration,
    life: number,
    end: ChannelEnd,
    died: (error: Error) => void,
  ): Promise<NicThread> {
    const task: NicTask = { configuration, life, end };
    const worker = new Worker(threadScript("situ-nic.js"), {
      workerData: task,
      transferList: [end.port],
      name: "situ nic",
      execArgv: [],
    });
    const first = await new Promise<FromNic>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    if (first.what !== "listening") {
      await worker.terminate();
      const { code, message } = first as { code: string; message: string };
      throw new SituError(code as SituErrorCode, message);
    }
    const thread = new NicThread(worker, first.port, first.instance);
    worker.on("error", died);
    worker.on("exit", () => {
      if (!thread.#isClosed) died(new Error("the NIC worker has ended"));
    });
    return thread;
  }

  async stats(): Promise<NicStats> {
    const answer = await this.#ask("stats", "stats");
    return (answer as { stats: NicStats }).stats;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const ended = once(this.#worker, "exit");
    await this.#ask("close", "closed");
    await ended;
  }

  #ask(wanted: ToNic, what: FromNic["what"]): Promise<FromNic> {
    return new Promise((resolve) => {
      const hear = (message: FromNic): void => {
        if (message.what !== what) return;
        this.#worker.off("message", hear);
        resolve(message);
      };
      this.#worker.on("message", hear);
      this.#worker.postMessage(wanted);
    });
  }
}
