/** Starts a gateway for Redis clients, with a metrics endpoint beside it if that is asked for. */

import {
  type CheckedOptions,
  checkedOptions,
  type Gateway,
  type GatewayOptions,
} from "./gateway-options.ts";
import { type MetricsEndpoint, startMetrics } from "./metrics/endpoint.ts";
import { REDIS } from "./redis/protocol.ts";
import { DEFAULT_SETTINGS, LiveSettings, type SettingChanges } from "./redis/settings.ts";
import { type RedisThreadOptions, registry } from "./redis/thread.ts";
import { ThreadedServer } from "./threads/threaded-server.ts";

/** Opens the store and serves it until `close`. */
export async function serve(
  options: GatewayOptions,
  failed: (error: Error) => void = crash,
): Promise<Gateway> {
  const gateway = new RedisGateway(checkedOptions(options), failed);
  try {
    await gateway.start();
  } catch (error) {
    // The first error is the one to tell; what was not started cannot be closed, either.
    await gateway.close().catch(() => {});
    throw error;
  }
  return gateway;
}

/** Where nobody listens: a gateway that has lost a thread must not go on as if it had not. */
function crash(error: Error): void {
  throw error;
}

class RedisGateway implements Gateway {
  readonly threads: number;
  readonly host: string;
  readonly socket: string | undefined;
  readonly #metricsPort: number | undefined;
  readonly #server: ThreadedServer<RedisThreadOptions, SettingChanges>;
  #metrics: MetricsEndpoint | undefined;

  constructor(options: CheckedOptions, failed: (error: Error) => void) {
    const { host, port, socket, threads, metricsPort, ...thread } = options;
    const { password, maxClients, maxBulkBytes } = options;
    this.threads = threads;
    this.host = host;
    this.socket = socket;
    this.#metricsPort = metricsPort;
    const values = { ...DEFAULT_SETTINGS, password, maxClients, maxBulkBytes };
    const settings = new LiveSettings(values, () => {});
    this.#server = new ThreadedServer(REDIS, {
      host,
      port,
      socket,
      threads,
      maxClients: () => settings.maxClients,
      threadOptions: (port, isFirst) => ({
        ...thread,
        settings: settings.values,
        port,
        threads,
        sweeps: isFirst,
      }),
      announced: (changes) => settings.take(changes),
      failed,
    });
  }

  get port(): number {
    return this.#server.port;
  }

  get metricsPort(): number | undefined {
    return this.#metrics?.port;
  }

  async start(): Promise<void> {
    const server = this.#server;
    await server.start();
    if (this.#metricsPort !== undefined) {
      this.#metrics = await startMetrics({
        host: this.host,
        port: this.#metricsPort,
        database: server.database,
        commandNames: registry.all.map(({ fullName }) => fullName),
        isReady: () => server.isServing,
      });
    }
    server.serve();
  }

  async close(): Promise<void> {
    const metrics = this.#metrics?.close();
    await this.#server.close();
    await metrics;
  }
}
