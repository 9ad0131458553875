/** The options of `open` for a cluster, checked. */

import type { NodeAddress, TlsOptions } from "../../fabric/tcp/tcp-options.ts";
import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import {
  DEFAULT_MAX_SNAPSHOT_MS,
  DEFAULT_TIMEOUT_MS,
  MAX_TIMEOUT_MS,
  MAX_VERB_WORDS,
  NAM_CELLS_PER_ROW,
  NAM_MAX_CELLS,
} from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Table } from "../../tables/table.ts";

/** What `open` takes for a cluster. */
export interface ConnectOptions<Tables extends readonly Table[] = readonly Table[]> {
  /** Nodes of the cluster, as "host:port". It is enough if one of them answers: it knows the others. */
  readonly connect: string | readonly string[];
  /** The tables that this client uses. A table that the cluster does not have yet is created. */
  readonly tables?: Tables;
  /** The name of the cluster, if its configuration has one. */
  readonly cluster?: string;
  /** The secret of the nodes' configuration. */
  readonly secret?: string;
  /** Encrypts connections, with these options of Node's `tls.connect`. */
  readonly tls?: TlsOptions;
  /** How long transactions retry and wait for others, unless they have their own. Default: 5 s. */
  readonly timeoutMs?: number;
  /** A snapshot that is open for longer is released. Default: 60 s. */
  readonly maxSnapshotMs?: number;
  /** For clusters of memory servers (protocol "nam"): how much room tables get that do not exist yet, by their names. */
  readonly extents?: Readonly<Record<string, ExtentHints>>;
}

/** How large a table of memory servers becomes. It does not grow later. */
export interface ExtentHints {
  /** Rows that it has room for; keys that were deleted count, too. Default: 16,384. */
  readonly rows?: number;
  /** The longest row of a table whose rows have no fixed size. Default: 256 bytes. */
  readonly rowBytes?: number;
}

export interface ConnectSettings {
  readonly seeds: readonly NodeAddress[];
  readonly tables: readonly Table[];
  readonly cluster: string;
  readonly secret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly timeoutMs: number;
  /** For those who make tables of memory servers. */
  readonly extents?: Readonly<Record<string, ExtentHints>>;
  /** For those who take snapshots. */
  readonly maxSnapshotMs?: number;
}

const KNOWN = [
  "connect",
  "tables",
  "cluster",
  "secret",
  "tls",
  "timeoutMs",
  "maxSnapshotMs",
  "extents",
];
const KNOWN_HINTS = ["rows", "rowBytes"];
/** A record, with its key and its header, is read by one verb. */
const MAX_HINTED_ROW_BYTES = 2 * MAX_VERB_WORDS;

export function connectSettingsOf(options: ConnectOptions): ConnectSettings {
  refuseUnknownOptions("open({ connect })", options, KNOWN);
  const { connect, tables = [], cluster = "situ", secret, tls } = options;
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxSnapshotMs = DEFAULT_MAX_SNAPSHOT_MS } = options;
  const list = typeof connect === "string" ? [connect] : connect;
  if (!Array.isArray(list) || list.length === 0) {
    throw new SituError("SITU_CONFIG", `connect must be a list of nodes, as in ["10.0.0.1:7000"]`);
  }
  for (const [name, value] of Object.entries({ timeoutMs, maxSnapshotMs })) {
    if (Number.isFinite(value) && value > 0 && value <= MAX_TIMEOUT_MS) continue;
    throw new SituError(
      "SITU_CONFIG",
      `${name} must be a number of milliseconds, not ${show(value)}`,
    );
  }
  if (secret !== undefined && (typeof secret !== "string" || secret === "")) {
    throw new SituError("SITU_CONFIG", "secret must be a string");
  }
  const seeds = list.map(addressOf);
  const extents = hintsOf(options.extents);
  return { seeds, tables, cluster, secret, tls, timeoutMs, maxSnapshotMs, extents };
}

function hintsOf(given: ConnectOptions["extents"] = {}): Readonly<Record<string, ExtentHints>> {
  const most = { rows: NAM_MAX_CELLS / NAM_CELLS_PER_ROW, rowBytes: MAX_HINTED_ROW_BYTES };
  for (const [table, hints] of Object.entries(given)) {
    refuseUnknownOptions(`open({ extents }) for table ${table}`, hints, KNOWN_HINTS);
    for (const name of ["rows", "rowBytes"] as const) {
      const value = hints[name];
      if (value === undefined) continue;
      if (Number.isInteger(value) && value > 0 && value <= most[name]) continue;
      throw new SituError(
        "SITU_CONFIG",
        `extents: ${name} of table ${table} must be a whole number from 1 to ${most[name]}, not ${show(value)}`,
      );
    }
  }
  return given;
}

/** "host:port", with an IPv6 address in brackets. */
export function addressOf(text: unknown): NodeAddress {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(String(text));
  const port = Number(found?.[3]);
  if (found === null || port < 1 || port > 65535) {
    throw new SituError("SITU_CONFIG", `write a node as "host:port", not ${show(text)}`);
  }
  return { host: found[1] ?? found[2], port };
}
