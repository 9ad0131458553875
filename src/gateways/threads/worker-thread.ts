/** A worker thread that serves clients, seen from the thread that accepts them. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { isAbsolute } from "node:path";
import { Worker } from "node:worker_threads";
import { libc } from "../../memory/libc.ts";
import { SituError, type SituErrorCode } from "../../runtime/errors.ts";
import { threadScript } from "../../runtime/thread-script.ts";
import type { FromThread, ToThread } from "./run-thread.ts";
import type { ClientThread, Peer, ThreadListener } from "./wire-protocol.ts";

export class WorkerThread<Notice> implements ClientThread<Notice> {
  readonly #worker: Worker;
  readonly #listener: ThreadListener<Notice>;
  #clients = 0;
  #isClosing = false;

  private constructor(worker: Worker, listener: ThreadListener<Notice>) {
    this.#worker = worker;
    this.#listener = listener;
    worker.on("message", (message: FromThread<Notice>) => this.#hear(message));
    worker.on("error", (error) => listener.failed(error));
    worker.on("exit", () => {
      if (!this.#isClosing) listener.failed(new Error("a gateway thread exited unexpectedly"));
    });
  }

  static async start<Notice>(
    script: string,
    options: unknown,
    listener: ThreadListener<Notice>,
  ): Promise<WorkerThread<Notice>> {
    const worker = new Worker(isAbsolute(script) ? script : threadScript(script), {
      workerData: options,
      name: "situ gateway",
      execArgv: [],
    });
    const first = await new Promise<FromThread<Notice>>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new Error("a gateway thread exited before it was ready")));
    });
    if (first.what === "ready") return new WorkerThread(worker, listener);
    await worker.terminate();
    throw errorOf(first);
  }

  get clients(): number {
    return this.#clients;
  }

  /**
   * Gives a client to the thread: it goes on with a copy of the open file, this one is closed. A client
   * that has gone, or for whom this process may open no more files, has left.
   */
  adopt(socket: Socket, peer: Peer): void {
    const fd = (socket as unknown as { _handle: { fd: number } | null })._handle?.fd ?? -1;
    const copy = fd < 0 ? -1 : libc().duplicate(fd);
    socket.destroy();
    if (copy < 0) {
      this.#listener.left(peer.id);
      return;
    }
    this.#clients++;
    this.#send({ what: "client", fd: copy, peer });
  }

  notice(notice: Notice): void {
    this.#send({ what: "notice", notice });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    const ended = once(this.#worker, "exit");
    this.#send({ what: "close" });
    await ended;
  }

  #send(message: ToThread<Notice>): void {
    this.#worker.postMessage(message);
  }

  #hear(message: FromThread<Notice>): void {
    if (message.what === "left") {
      this.#clients--;
      this.#listener.left(message.id);
    } else if (message.what === "announced") {
      this.#listener.announced(message.notice);
    } else if (message.what === "failed") {
      this.#listener.failed(errorOf(message));
    }
  }
}

function errorOf(message: FromThread<unknown>): Error {
  const { code, message: text } = message as { code?: string; message: string };
  return code === undefined ? new Error(text) : new SituError(code as SituErrorCode, text);
}
