/** What a gateway is told: which store, where to listen, who may enter and how much of all. */

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
import { show } from "../runtime/show.ts";
import { isLoopback } from "./threads/listen.ts";

export interface GatewayOptions {
  /** The store's folder; it is made if it does not exist. */
  readonly path: string;
  /** Where to listen. Default 127.0.0.1; an address that others can reach needs a password. */
  readonly host?: string;
  /** Default 6379; 0 takes a free one. */
  readonly port?: number;
  /** A Unix socket to listen on as well. */
  readonly socket?: string;
  /** Threads that serve clients, each with the store open. Default 1: the thread that calls. */
  readonly threads?: number;
  /** What AUTH must say. Default: nobody is asked. */
  readonly password?: string;
  /** Where /metrics, /healthz and /readyz are served, on the same host. Default: nowhere. */
  readonly metricsPort?: number;
  /** As in `open`. */
  readonly memoryBytes?: number;
  readonly durability?: DurabilityMode;
  /** Clients at the same time, over all threads. Default 10,000, as Redis. */
  readonly maxClients?: number;
  /** The longest single argument of a request. Default 1 MiB, the longest value of a row. */
  readonly maxBulkBytes?: number;
  /** All of one request that has not come to its end. Default 8 MiB. */
  readonly maxRequestBytes?: number;
  /** Commands that a client may queue with MULTI. Default 65,536. */
  readonly maxPipeline?: number;
  /** Replies that a client has not taken. Default 64 MiB. */
  readonly maxOutputBytes?: number;
}

/** A gateway that runs. */
export interface Gateway {
  readonly host: string;
  readonly port: number;
  readonly socket: string | undefined;
  readonly metricsPort: number | undefined;
  readonly threads: number;
  /** Takes no more clients, answers what has come, and leaves the store. */
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
  readonly memoryBytes: number | undefined;
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
    throw wrong(`${name} is a whole number from ${from} to ${to}, not ${show(value)}`);
  };
  const text = (name: string, value: unknown, optional: boolean): void => {
    if (optional && value === undefined) return;
    if (typeof value !== "string" || value === "") throw wrong(`${name} is a text`);
  };
  text("path", path, false);
  text("host", host, false);
  text("socket", socket, true);
  if (typeof password !== "string") throw wrong("password is a text");
  if (!isLoopback(host) && password === "") {
    throw wrong(
      `others can reach ${host}: give a password, or listen on 127.0.0.1, which is the default`,
    );
  }
  const threads = number("threads", 1, MAX_GATEWAY_THREADS, 1);
  const why = threads > 1 ? whyNoProcesses() : undefined;
  if (why !== undefined) {
    throw new SituError("SITU_UNSUPPORTED", `several threads cannot be had here: ${why}`);
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
