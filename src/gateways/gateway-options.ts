/** The options of a gateway: the store, where to listen, the password and the limits. */

import type { DurabilityMode } from "../attach/settings.ts";
import { whyNoProcesses } from "../memory/libc.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import {
  DEFAULT_MAX_CLIENTS,
  DEFAULT_MAX_OUTPUT_BYTES,
  DEFAULT_MAX_PIPELINE,
  DEFAULT_MAX_REQUEST_BYTES,
  MAX_GATEWAY_THREADS,
  MAX_VALUE_BYTES,
} from "../runtime/limits.ts";
import { isLoopback } from "../runtime/loopback-address.ts";
import { show } from "../runtime/show.ts";

/** What `serve` takes. */
export interface GatewayOptions {
  /** The store's folder; created if it does not exist. */
  readonly path: string;
  /** The address to listen on. Default 127.0.0.1; one that others can reach requires a password. */
  readonly host?: string;
  /** The port to listen on. Default 6379; 0 picks a free one. */
  readonly port?: number;
  /** A Unix socket to listen on as well. */
  readonly socket?: string;
  /** Threads that serve clients. Default 1: the calling thread. */
  readonly threads?: number;
  /** The password for AUTH. Default: none. */
  readonly password?: string;
  /** The port for /metrics, /healthz and /readyz, on the same host. Default: not served. */
  readonly metricsPort?: number;
  /** As for `open`. */
  readonly memoryBytes?: number | "auto";
  readonly durability?: DurabilityMode;
  /** The most clients at the same time, over all threads. Default 10,000, as in Redis. */
  readonly maxClients?: number;
  /** The longest argument of a request. Default 1 MiB, which is the limit of a value in a row. */
  readonly maxBulkBytes?: number;
  /** The longest request. Default 8 MiB. */
  readonly maxRequestBytes?: number;
  /** The most commands that a client may queue with MULTI. Default 65,536. */
  readonly maxPipeline?: number;
  /** The most bytes of replies that a client has not read. Default 64 MiB. */
  readonly maxOutputBytes?: number;
}

/** A running gateway. */
export interface Gateway {
  readonly host: string;
  readonly port: number;
  readonly socket: string | undefined;
  readonly metricsPort: number | undefined;
  readonly threads: number;
  /** Accepts no more clients, answers pending requests, and closes the store. */
  close(): Promise<void>;
}

/** With all defaults, and known to make sense. */
export interface CheckedOptions {
  readonly path: string;
  readonly host: string;
  readonly port: number;
  readonly socket: string | undefined;
  readonly threads: number;
  readonly password: string;
  readonly metricsPort: number | undefined;
  readonly memoryBytes: number | "auto" | undefined;
  readonly durability: DurabilityMode | undefined;
  readonly maxClients: number;
  readonly maxBulkBytes: number;
  readonly maxRequestBytes: number;
  readonly maxPipeline: number;
  readonly maxOutputBytes: number;
}

const KNOWN: readonly string[] = [
  "path",
  "host",
  "port",
  "socket",
  "threads",
  "password",
  "metricsPort",
  "memoryBytes",
  "durability",
  "maxClients",
  "maxBulkBytes",
  "maxRequestBytes",
  "maxPipeline",
  "maxOutputBytes",
] satisfies (keyof GatewayOptions)[];

const DEFAULT_PORT = 6_379;
const MAX_PORT = 65_535;

/** SITU_CONFIG says what is wrong. */
export function checkedOptions(options: GatewayOptions): CheckedOptions {
  refuseUnknownOptions("serve", options, KNOWN);
  const { path, host = "127.0.0.1", socket, password = "", metricsPort } = options;
  const { memoryBytes, durability } = options;
  const number = (name: keyof GatewayOptions, from: number, to: number, otherwise: number) => {
    const value = options[name] ?? otherwise;
    if (Number.isInteger(value) && (value as number) >= from && (value as number) <= to) {
      return value as number;
    }
    throw wrong(`${name} must be an integer from ${from} to ${to}, not ${show(value)}`);
  };
  const text = (name: string, value: unknown, optional: boolean): void => {
    if (optional && value === undefined) return;
    if (typeof value !== "string" || value === "")
      throw wrong(`${name} must be a non-empty string`);
  };
  text("path", path, false);
  text("host", host, false);
  text("socket", socket, true);
  if (typeof password !== "string") throw wrong("password must be a string");
  if (!isLoopback(host) && password === "") {
    throw wrong(
      `${host} is reachable from other machines: set a password, or listen on 127.0.0.1 (the default)`,
    );
  }
  const threads = number("threads", 1, MAX_GATEWAY_THREADS, 1);
  const why = threads > 1 ? whyNoProcesses() : undefined;
  if (why !== undefined) {
    throw new SituError("SITU_UNSUPPORTED", `several threads are not supported here: ${why}`);
  }
  return {
    path,
    host,
    port: number("port", 0, MAX_PORT, DEFAULT_PORT),
    socket,
    threads,
    password,
    metricsPort: metricsPort === undefined ? undefined : number("metricsPort", 0, MAX_PORT, 0),
    memoryBytes,
    durability,
    maxClients: number("maxClients", 1, 1_000_000, DEFAULT_MAX_CLIENTS),
    maxBulkBytes: number("maxBulkBytes", 1, MAX_VALUE_BYTES, MAX_VALUE_BYTES),
    maxRequestBytes: number("maxRequestBytes", 1_024, 2 ** 30, DEFAULT_MAX_REQUEST_BYTES),
    maxPipeline: number("maxPipeline", 1, 1_000_000, DEFAULT_MAX_PIPELINE),
    maxOutputBytes: number("maxOutputBytes", 1_024, 2 ** 30, DEFAULT_MAX_OUTPUT_BYTES),
  };
}

function wrong(why: string): SituError {
  return new SituError("SITU_CONFIG", why);
}
