/** The NIC as a thread: what it is started with, and what it tells the host's thread. */

import { once } from "node:events";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Configuration } from "../cluster/configuration.ts";
import { LeaseGate } from "../cluster/membership/lease-gate.ts";
import type { ChannelEnd } from "../fabric/rings/channel.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { threadScript } from "../runtime/thread-script.ts";
import type { Candidate } from "./joining.ts";
import { Nic, type NicStats } from "./nic.ts";
import type { NodeConfiguration } from "./node-configuration.ts";
import { ServingGate } from "./serving-gate.ts";

type FromNic =
  | { readonly what: "listening"; readonly port: number; readonly instance: string }
  | { readonly what: "failed"; readonly code: string; readonly message: string }
  | { readonly what: "stats"; readonly stats: NicStats }
  | { readonly what: "serving"; readonly configuration: Configuration }
  | { readonly what: "removed"; readonly wasDrained: boolean }
  | { readonly what: "closed" };

type ToNic = "stats" | "close" | { readonly join: Candidate };

export interface NicTask {
  readonly configuration: NodeConfiguration;
  readonly life: number;
  readonly end: ChannelEnd;
  /** In a cluster whose configuration changes: that of the leases. */
  readonly gate: SharedArrayBuffer | undefined;
}

/** In the worker. */
export async function runNic(): Promise<void> {
  const port = parentPort!;
  const tell = (message: FromNic): void => port.postMessage(message);
  let nic: Nic;
  try {
    const { gate, ...rest } = workerData as NicTask;
    nic = await Nic.open({ ...rest, gate: gate && new ServingGate(new LeaseGate(gate)) });
  } catch (error) {
    tell(failureOf(error));
    port.close();
    return;
  }
  const join = (candidate: Candidate): void => {
    const fail = (error: unknown): void => tell(failureOf(error));
    const joining = nic.join(candidate, {
      serving: (configuration) => tell({ what: "serving", configuration }),
      removed: (_, wasDrained) => tell({ what: "removed", wasDrained }),
      refused: (why) => fail(new SituError("SITU_CONFIG", why)),
      died: (error) => {
        throw error;
      },
    });
    joining.catch(fail);
  };
  port.on("message", (wanted: ToNic) => {
    if (typeof wanted === "object") {
      join(wanted.join);
      return;
    }
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

function failureOf(error: unknown): FromNic {
  const { code = "SITU_CONFIG", message } = error as { code?: string; message: string };
  return { what: "failed", code, message };
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

  static async start(task: NicTask, died: (error: Error) => void): Promise<NicThread> {
    const worker = new Worker(threadScript("situ-nic.js"), {
      workerData: task,
      transferList: [task.end.port],
      name: "situ nic",
      execArgv: [],
    });
    const first = await new Promise<FromNic>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    if (first.what !== "listening") {
      await worker.terminate();
      throw errorOf(first);
    }
    const thread = new NicThread(worker, first.port, first.instance);
    worker.on("error", died);
    worker.on("exit", () => {
      if (!thread.#isClosed) died(new Error("the NIC worker has ended"));
    });
    return thread;
  }

  /** Becomes a member; resolves when the node serves. `removed` is told when it is none any more. */
  async join(candidate: Candidate, removed: (wasDrained: boolean) => void): Promise<Configuration> {
    const worker = this.#worker;
    worker.on("message", (message: FromNic) => {
      if (message.what === "removed") removed(message.wasDrained);
    });
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromNic) => {
        if (message.what === "serving") resolve(message.configuration);
        else if (message.what === "failed") reject(errorOf(message));
      });
      worker.postMessage({ join: candidate } satisfies ToNic);
    });
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

function errorOf(message: FromNic): SituError {
  const { code, message: why } = message as { code: string; message: string };
  return new SituError(code as SituErrorCode, why);
}
