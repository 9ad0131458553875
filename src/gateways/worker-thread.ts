/** A thread that serves clients, seen from the one that accepts them. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { Worker } from "node:worker_threads";
import { libc } from "../memory/libc.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { threadScript } from "../runtime/thread-script.ts";
import type { Peer } from "./redis/session.ts";
import type { SettingChanges } from "./redis/settings.ts";
import type { ThreadListener, ThreadOptions } from "./redis/thread.ts";

export type ToThread =
  | { readonly what: "client"; readonly fd: number; readonly peer: Peer }
  | { readonly what: "settings"; readonly changes: SettingChanges }
  | { readonly what: "close" };

export type FromThread =
  | { readonly what: "ready" | "closed" }
  | { readonly what: "left"; readonly id: number }
  | { readonly what: "changed"; readonly changes: SettingChanges }
  | { readonly what: "failed"; readonly code: string | undefined; readonly message: string };

export class WorkerThread {
  readonly #worker: Worker;
  readonly #listener: ThreadListener;
  #clients = 0;
  #isClosing = false;

  private constructor(worker: Worker, listener: ThreadListener) {
    this.#worker = worker;
    this.#listener = listener;
    worker.on("message", (message: FromThread) => this.#hear(message));
    worker.on("error", (error) => listener.failed(error));
    worker.on("exit", () => {
      if (!this.#isClosing) listener.failed(new Error("a thread of the gateway has ended"));
    });
  }

  static async start(options: ThreadOptions, listener: ThreadListener): Promise<WorkerThread> {
    const worker = new Worker(threadScript("situ-gateway.js"), {
      workerData: options,
      name: "situ gateway",
      execArgv: [],
    });
    const first = await new Promise<FromThread>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("a thread of the gateway ended at once")));
    });
    if (first.what === "ready") return new WorkerThread(worker, listener);
    await worker.terminate();
    throw errorOf(first);
  }

  get clients(): number {
    return this.#clients;
  }

  /**
   * Gives a client to the thread: it goes on with a copy of the open file, this one is closed. False
   * if the client has gone, or this process may open no more files.
   */
  adopt(socket: Socket, peer: Peer): boolean {
    const fd = (socket as unknown as { _handle: { fd: number } | null })._handle?.fd ?? -1;
    const copy = fd < 0 ? -1 : libc().duplicate(fd);
    socket.destroy();
    if (copy < 0) return false;
    this.#clients++;
    this.#send({ what: "client", fd: copy, peer });
    return true;
  }

  take(changes: SettingChanges): void {
    this.#send({ what: "settings", changes });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const ended = once(this.#worker, "exit");
    this.#send({ what: "close" });
    await ended;
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #hear(message: FromThread): void {
    if (message.what === "left") {
      this.#clients--;
      this.#listener.left(message.id);
    } else if (message.what === "changed") {
      this.#listener.changed(message.changes);
    } else if (message.what === "failed") {
      this.#listener.failed(errorOf(message));
    }
  }
}

function errorOf(message: FromThread): Error {
  const { code, message: text } = message as { code?: string; message: string };
  return code === undefined ? new Error(text) : new SituError(code as SituErrorCode, text);
}
