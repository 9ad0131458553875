/**
 * Starts a gateway: listens, and hands clients to the threads that serve them. With one thread that
 * is the caller's own. With more, this one only accepts: it gives each client to the thread that has
 * the fewest, as an open file that the other thread goes on with.
 */

import { createServer, type Server, type Socket } from "node:net";
import type { LocalDatabase as Database } from "../database/local/local-database.ts";
import { openLocal as open } from "../database/open.ts";
import { listen, listenOnSocket } from "./listen.ts";
import { type MetricsEndpoint, startMetrics } from "./metrics/endpoint.ts";
import {
  type CheckedOptions,
  checkedOptions,
  type Gateway,
  type GatewayOptions,
} from "./options.ts";
import type { Peer } from "./redis/session.ts";
import { DEFAULT_SETTINGS, LiveSettings, type SettingChanges } from "./redis/settings.ts";
import { REDIS_TABLES } from "./redis/tables.ts";
import {
  GatewayThread,
  registry,
  type ThreadListener,
  type ThreadOptions,
} from "./redis/thread.ts";
import { WorkerThread } from "./worker-thread.ts";

const TOO_MANY = "-ERR max number of clients reached\r\n";

/** Opens the store and serves it until `close`. */
export async function serve(
  options: GatewayOptions,
  failed: (error: Error) => void = crash,
): Promise<Gateway> {
  const gateway = new RunningGateway(checkedOptions(options), failed);
  try {
    await gateway.start();
  } catch (error) {
    await gateway.close().catch(() => {});
    throw error;
  }
  return gateway;
}

/** Where nobody listens: a gateway that has lost a thread must not go on as if it had not. */
function crash(error: Error): void {
  throw error;
}

class RunningGateway implements Gateway {
  readonly threads: number;
  readonly host: string;
  readonly socket: string | undefined;
  readonly #options: CheckedOptions;
  readonly #failed: (error: Error) => void;
  readonly #settings: LiveSettings;
  readonly #listeners: Server[] = [];
  readonly #workers: WorkerThread[] = [];
  #port = 0;
  #own: GatewayThread | undefined;
  /** With several threads: open here as well, to speak for all of them. */
  #database: Database | undefined;
  #metrics: MetricsEndpoint | undefined;
  #clients = 0;
  #nextId = 1;
  #isReady = false;
  #closing: Promise<void> | undefined;

  constructor(options: CheckedOptions, failed: (error: Error) => void) {
    this.#options = options;
    this.#failed = failed;
    this.threads = options.threads;
    this.host = options.host;
    this.socket = options.socket;
    const { password, maxClients, maxBulkBytes } = options;
    const values = { ...DEFAULT_SETTINGS, password, maxClients, maxBulkBytes };
    this.#settings = new LiveSettings(values, () => {});
  }

  get port(): number {
    return this.#port;
  }

  get metricsPort(): number | undefined {
    return this.#metrics?.port;
  }

  async start(): Promise<void> {
    const { host, port, socket, threads, metricsPort } = this.#options;
    const server = this.#listener();
    this.#port = await listen(server, host, port);
    if (threads === 1) this.#own = await GatewayThread.start(this.#threadOptions(0), this.#ears());
    else await this.#startWorkers();
    if (socket !== undefined) await listenOnSocket(this.#listener(), socket);
    if (metricsPort !== undefined) {
      this.#metrics = await startMetrics({
        host,
        port: metricsPort,
        database: this.#own?.database ?? this.#database!,
        commandNames: registry.all.map(({ fullName }) => fullName),
        isReady: () => this.#isReady,
      });
    }
    this.#isReady = true;
    for (const early of this.#early.splice(0)) this.#accept(early);
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    this.#isReady = false;
    for (const socket of this.#early.splice(0)) socket.destroy();
    const listeners = this.#listeners.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    );
    const threads = [this.#own, ...this.#workers].map((thread) => thread?.close());
    const ended = await Promise.allSettled([...threads, ...listeners, this.#metrics?.close()]);
    await this.#database?.close();
    const failure = ended.find(({ status }) => status === "rejected");
    if (failure !== undefined) throw (failure as PromiseRejectedResult).reason;
  }

  async #startWorkers(): Promise<void> {
    const { path, memoryBytes, durability, threads } = this.#options;
    // First, so that the store is made once, and its errors are told here.
    this.#database = await open({
      path,
      tables: REDIS_TABLES,
      ...(memoryBytes === undefined ? {} : { memoryBytes }),
      ...(durability === undefined ? {} : { durability }),
    });
    const starting = Array.from({ length: threads }, (_, index) =>
      WorkerThread.start(this.#threadOptions(index), this.#ears(index)),
    );
    const started = await Promise.allSettled(starting);
    for (const each of started) if (each.status === "fulfilled") this.#workers.push(each.value);
    const failure = started.find(({ status }) => status === "rejected");
    if (failure !== undefined) throw (failure as PromiseRejectedResult).reason;
  }

  #threadOptions(index: number): ThreadOptions {
    const { path, memoryBytes, durability, threads } = this.#options;
    const { maxRequestBytes, maxPipeline, maxOutputBytes } = this.#options;
    return {
      path,
      memoryBytes,
      durability,
      settings: this.#settings.values,
      maxRequestBytes,
      maxPipeline,
      maxOutputBytes,
      port: this.#port,
      threads,
      sweeps: index === 0,
    };
  }

  #ears(index = 0): ThreadListener {
    return {
      left: () => {
        this.#clients--;
      },
      changed: (changes: SettingChanges) => {
        this.#settings.take(changes);
        for (let i = 0; i < this.#workers.length; i++) {
          if (i !== index) this.#workers[i].take(changes);
        }
      },
      failed: (error) => this.#failed(error as Error),
    };
  }

  #listener(): Server {
    // Half open: one who asks and hangs up is answered, also when that takes a turn of the disk.
    const options = { noDelay: true, keepAlive: true, pauseOnConnect: true, allowHalfOpen: true };
    const server = createServer(options, (socket) => this.#accept(socket));
    this.#listeners.push(server);
    return server;
  }

  /** Clients that came before the store was open. */
  readonly #early: Socket[] = [];

  #accept(socket: Socket): void {
    if (this.#closing !== undefined || socket.destroyed) {
      socket.destroy();
      return;
    }
    socket.on("error", () => socket.destroy());
    if (this.#clients >= this.#settings.maxClients) {
      (this.#own?.database ?? this.#database)?.metrics.commands.connectionRejected();
      socket.write(TOO_MANY);
      socket.destroySoon();
      return;
    }
    if (!this.#isReady) {
      this.#early.push(socket);
      return;
    }
    this.#clients++;
    const peer = peerOf(socket, this.#nextId++, this.#options.socket);
    if (this.#own !== undefined) this.#own.adopt(socket, peer);
    else if (!fewest(this.#workers).adopt(socket, peer)) this.#clients--;
  }
}

function fewest(workers: readonly WorkerThread[]): WorkerThread {
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
