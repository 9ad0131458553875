/**
 * The endpoint for those who watch a store, by HTTP:
 *
 *   /metrics   what was counted, as Prometheus reads it
 *   /healthz   200 if this process answers and the store can be read
 *   /readyz    200 if commits get through: the log has a writer that gets on; not shutting down
 *
 * It only reads, has no secret to tell, and is small: a few connections, short requests, no bodies.
 */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Database } from "../../database/database.ts";
import { type LocalDatabase, localDatabase } from "../../database/local/local-database.ts";
import { realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import {
  METRICS_CLOSE_MS,
  METRICS_CONNECTIONS,
  METRICS_HEADER_BYTES,
  METRICS_KEEP_ALIVE_MS,
  METRICS_REQUEST_MS,
} from "../../runtime/limits.ts";
import { writeMetrics } from "./families.ts";
import type { NodeFigures } from "./node-metrics.ts";
import { ProcessWatch } from "./process-figures.ts";
import { CONTENT_TYPE } from "./prometheus.ts";

/** Where `serveMetrics` listens. */
export interface ServeMetricsOptions {
  /** The address to listen on. Default 127.0.0.1; there is no password. */
  readonly host?: string;
  /** The port to listen on. Default 0: a free one. */
  readonly port?: number;
}

export interface MetricsOptions extends ServeMetricsOptions {
  readonly database: LocalDatabase;
  /** The commands of a gateway by their numbers, in lower case; "" for a number that has none. */
  readonly commandNames?: readonly string[];
  /** Of a node of a cluster: what it says of itself. */
  readonly node?: () => Promise<NodeFigures>;
  /** Whether the one who serves clients does. Default: yes. */
  readonly isReady?: () => boolean;
  /** Why not, for people. */
  readonly reasons?: () => readonly string[];
}

/** A running metrics endpoint. */
export interface MetricsEndpoint {
  readonly host: string;
  readonly port: number;
  /** Answers pending requests and stops listening. The database stays open. */
  close(): Promise<void>;
}

/** Serves the metrics of an open store, and of all processes that have it open. */
export function serveMetrics(
  database: Database,
  options: ServeMetricsOptions = {},
): Promise<MetricsEndpoint> {
  refuseUnknownOptions("serveMetrics", options, ["host", "port"]);
  return startMetrics({ ...options, database: localDatabase(database) });
}

export async function startMetrics(options: MetricsOptions): Promise<MetricsEndpoint> {
  // Most who open a store have no use for it, and it takes a while to load.
  const { createServer } = await import("node:http");
  const endpoint = new Endpoint(options);
  const server = createServer(
    {
      maxHeaderSize: METRICS_HEADER_BYTES,
      headersTimeout: METRICS_REQUEST_MS,
      requestTimeout: METRICS_REQUEST_MS,
      keepAliveTimeout: METRICS_KEEP_ALIVE_MS,
    },
    (request, response) => endpoint.answer(request, response),
  );
  server.maxConnections = METRICS_CONNECTIONS;
  // One who stops reading is not waited for.
  server.setTimeout(METRICS_KEEP_ALIVE_MS);
  try {
    await listening(server, options.host ?? "127.0.0.1", options.port ?? 0);
  } catch (error) {
    endpoint.stop();
    throw error;
  }
  const { address, port } = server.address() as AddressInfo;
  return {
    host: address,
    port,
    close: () => {
      endpoint.stop();
      return closed(server);
    },
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.removeListener("error", reject);
      resolve();
    });
  });
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    // To Node, one who has connected and said nothing is not idle.
    const rest = realClock.after(METRICS_CLOSE_MS, () => server.closeAllConnections());
    server.close(() => {
      rest.cancel();
      resolve();
    });
    server.closeIdleConnections();
  });
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const PLAIN = "text/plain; charset=utf-8";

class Endpoint {
  readonly #options: MetricsOptions;
  readonly #process = new ProcessWatch();

  constructor(options: MetricsOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#process.stop();
  }

  answer(request: IncomingMessage, response: ServerResponse): void {
    const isHead = request.method === "HEAD";
    if (!isHead && request.method !== "GET") {
      response.setHeader("Allow", "GET, HEAD");
      // Its body is of no interest: nobody reads it.
      response.setHeader("Connection", "close");
      send(
        response,
        { status: 405, type: PLAIN, text: "only GET and HEAD are supported\n" },
        isHead,
      );
      return;
    }
    void this.#at(pathOf(request.url ?? "")).then((answer) => send(response, answer, isHead));
  }

  async #at(path: string): Promise<Answer> {
    try {
      switch (path) {
        case "/metrics":
          return { status: 200, type: CONTENT_TYPE, text: await this.#metrics() };
        case "/healthz":
          return report(this.#sickness());
        case "/readyz":
          return report(this.#unreadiness());
        default:
          return {
            status: 404,
            type: PLAIN,
            text: "not found; the paths are /metrics, /healthz and /readyz\n",
          };
      }
    } catch (error) {
      return { status: 503, type: PLAIN, text: `${described(error)}\n` };
    }
  }

  async #metrics(): Promise<string> {
    const { database, commandNames = [], node } = this.#options;
    const ofNode = await node?.();
    return writeMetrics(database, commandNames, this.#process.figures(), ofNode);
  }

  /** What keeps the store from being read: `stats` reads the catalogue in a transaction. */
  #sickness(): string[] {
    try {
      this.#options.database.stats();
      return [];
    } catch (error) {
      return [described(error)];
    }
  }

  #unreadiness(): string[] {
    const { database, isReady, reasons } = this.#options;
    const sickness = this.#sickness();
    if (sickness.length > 0) return sickness;
    const found = [...(reasons?.() ?? [])];
    if (isReady?.() === false && found.length === 0) found.push("not serving clients");
    const problem = database.metrics.gauges().log?.problem;
    if (problem !== undefined) found.push(problem);
    return found;
  }
}

function pathOf(url: string): string {
  const query = url.indexOf("?");
  return query < 0 ? url : url.slice(0, query);
}

function report(problems: readonly string[]): Answer {
  if (problems.length === 0) return { status: 200, type: PLAIN, text: "ok\n" };
  return { status: 503, type: PLAIN, text: `${problems.join("\n")}\n` };
}

function described(error: unknown): string {
  if (error instanceof SituError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? error.message : String(error);
}

function send(response: ServerResponse, { status, type, text }: Answer, isHead: boolean): void {
  const body = Buffer.from(text);
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": body.length,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(isHead ? undefined : body);
}
