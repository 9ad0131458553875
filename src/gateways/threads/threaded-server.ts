/**
 * Listens, and hands clients to the threads that serve them. With one thread that is the caller's own.
 * With more, this one only accepts: it gives each client to the worker thread that has the fewest, as an
 * open file that the worker goes on with.
 */

import { createServer, type Server, type Socket } from "node:net";
import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { COUNTER } from "../metrics/command-metrics.ts";
import { listen, listenOnSocket } from "./listen.ts";
import type { ClientThread, Peer, ThreadListener, WireProtocol } from "./wire-protocol.ts";
import { WorkerThread } from "./worker-thread.ts";

export interface ThreadedServerOptions<Options, Notice> {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** A Unix socket to listen on as well. */
  readonly socket: string | undefined;
  readonly threads: number;
  /** Clients at the same time, over all threads; asked for each client that comes. */
  maxClients(): number;
  /** What a thread is told; `isFirst` is one of them, for work that only one should do. */
  threadOptions(port: number, isFirst: boolean): Options;
  /** A thread has announced something to the others. */
  announced(notice: Notice): void;
  /** A thread has failed: without it the server must not go on. */
  failed(error: Error): void;
}

export class ThreadedServer<Options, Notice> {
  readonly #protocol: WireProtocol<Options, Notice>;
  readonly #options: ThreadedServerOptions<Options, Notice>;
  readonly #listening: Server[] = [];
  readonly #workers: WorkerThread<Notice>[] = [];
  /** The thread of the caller, if it serves clients itself. */
  #own: ClientThread<Notice> | undefined;
  #database: Database | undefined;
  #port = 0;
  #clients = 0;
  #nextId = 1;
  #isServing = false;
  /** Clients that came before they could be served. */
  readonly #early: Socket[] = [];
  #closing: Promise<void> | undefined;

  constructor(
    protocol: WireProtocol<Options, Notice>,
    options: ThreadedServerOptions<Options, Notice>,
  ) {
    this.#protocol = protocol;
    this.#options = options;
  }

  get port(): number {
    return this.#port;
  }

  /** The store, open in this thread; once `start` has returned. */
  get database(): Database {
    return this.#database!;
  }

  get isServing(): boolean {
    return this.#isServing;
  }

  /** Listens, opens the store and starts the threads. Clients wait until `serve`. */
  async start(): Promise<void> {
    const { host, port, socket, threads } = this.#options;
    const protocol = this.#protocol;
    this.#port = await listen(this.#listener(), host, port);
    const first = this.#options.threadOptions(this.#port, true);
    // Before the workers: so the store is created once, and its errors are thrown here.
    this.#database = await protocol.open(first);
    if (threads === 1) {
      this.#own = protocol.serve(this.#database, first, this.#listenerOf(0));
    } else {
      const starting = Array.from({ length: threads }, (_, index) => {
        const options = this.#options.threadOptions(this.#port, index === 0);
        return WorkerThread.start(protocol.script, options, this.#listenerOf(index));
      });
      const started = await Promise.allSettled(starting);
      for (const each of started) if (each.status === "fulfilled") this.#workers.push(each.value);
      throwFirst(started);
    }
    if (socket !== undefined) await listenOnSocket(this.#listener(), socket);
  }

  /** Serves clients from here on, those that came meanwhile first. */
  serve(): void {
    this.#isServing = true;
    for (const early of this.#early.splice(0)) this.#accept(early);
  }

  /** Takes no more clients, answers what has come, and leaves the store. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#isServing = false;
    for (const socket of this.#early.splice(0)) socket.destroy();
    const listening = this.#listening.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const threads = [this.#own, ...this.#workers].map((thread) => thread?.close());
    const ended = await Promise.allSettled([...threads, ...listening]);
    await this.#database?.close();
    throwFirst(ended);
  }

  #listenerOf(index: number): ThreadListener<Notice> {
    return {
      left: () => {
        this.#clients--;
      },
      announced: (notice) => {
        this.#options.announced(notice);
        for (let i = 0; i < this.#workers.length; i++) {
          if (i !== index) this.#workers[i].notice(notice);
        }
      },
      failed: (error) => this.#options.failed(error as Error),
    };
  }

  #listener(): Server {
    // Half open: a client that asks and closes its side is answered, even if the disk takes a while.
    const options = { noDelay: true, keepAlive: true, pauseOnConnect: true, allowHalfOpen: true };
    const server = createServer(options, (socket) => this.#accept(socket));
    this.#listening.push(server);
    return server;
  }

  #accept(socket: Socket): void {
    if (this.#closing !== undefined || socket.destroyed) {
      socket.destroy();
      return;
    }
    socket.on("error", () => socket.destroy());
    if (this.#clients >= this.#options.maxClients()) {
      this.#database?.executor.metrics.add(COUNTER.connectionsRejected, 1);
      socket.write(this.#protocol.tooManyClients);
      socket.destroySoon();
      return;
    }
    if (!this.#isServing) {
      this.#early.push(socket);
      return;
    }
    this.#clients++;
    const thread = this.#own ?? fewestClients(this.#workers);
    thread.adopt(socket, peerOf(socket, this.#nextId++, this.#options.socket));
  }
}

function throwFirst(settled: readonly PromiseSettledResult<unknown>[]): void {
  for (const each of settled) if (each.status === "rejected") throw each.reason;
}

function fewestClients<Notice>(workers: readonly WorkerThread<Notice>[]): WorkerThread<Notice> {
  let best = workers[0];
  for (const each of workers) if (each.clients < best.clients) best = each;
  return best;
}

function peerOf(socket: Socket, id: number, unix: string | undefined): Peer {
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  if (remoteAddress === undefined) {
    return { id, address: `${unix}:0`, localAddress: `${unix}:0` };
  }
  return {
    id,
    address: `${bracketed(remoteAddress)}:${remotePort}`,
    localAddress: `${bracketed(localAddress!)}:${localPort}`,
  };
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
