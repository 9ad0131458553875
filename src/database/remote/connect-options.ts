/** What `open` takes in order to connect to a cluster, checked. */

import type { NodeAddress, TlsOptions } from "../../fabric/tcp/options.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Table } from "../../tables/table.ts";

export interface ConnectOptions {
  /** Nodes of the cluster, as "host:port". One that answers is enough: it knows the others. */
  readonly connect: string | readonly string[];
  readonly tables?: readonly Table[];
  /** The name of the cluster, if its configuration has one. */
  readonly cluster?: string;
  /** What the nodes' configurations have as their secret. */
  readonly secret?: string;
  /** For connections that are encrypted: see `tls.connect` of Node. */
  readonly tls?: TlsOptions;
  /** How long transactions retry and wait for others, unless they say otherwise. */
  readonly timeoutMs?: number;
}

export interface ConnectSettings {
  readonly seeds: readonly NodeAddress[];
  readonly tables: readonly Table[];
  readonly cluster: string;
  readonly secret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly timeoutMs: number;
}

const KNOWN = ["connect", "tables", "cluster", "secret", "tls", "timeoutMs"];

export function connectSettingsOf(options: ConnectOptions): ConnectSettings {
  refuseUnknownOptions("open({ connect })", options, KNOWN);
  const { connect, tables = [], cluster = "situ", secret, tls } = options;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const list = typeof connect === "string" ? [connect] : connect;
  if (!Array.isArray(list) || list.length === 0) {
    throw new SituError("SITU_CONFIG", `connect is a list of nodes, as in ["10.0.0.1:7000"]`);
  }
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0 || timeoutMs > MAX_TIMEOUT_MS) {
    throw new SituError(
      "SITU_CONFIG",
      `timeoutMs is a number of milliseconds, not ${show(timeoutMs)}`,
    );
  }
  if (secret !== undefined && (typeof secret !== "string" || secret === "")) {
    throw new SituError("SITU_CONFIG", "secret is a text");
  }
  return { seeds: list.map(addressOf), tables, cluster, secret, tls, timeoutMs };
}

/** "host:port", with an IPv6 address in brackets. */
export function addressOf(text: unknown): NodeAddress {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(String(text));
  const port = Number(found?.[3]);
  if (found === null || port < 1 || port > 65535) {
    throw new SituError("SITU_CONFIG", `a node is written as "host:port", not ${show(text)}`);
  }
  return { host: found[1] ?? found[2], port };
}
