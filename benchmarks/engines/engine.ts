// What the suite asks of an engine: Situ, or someone whom people would use instead. An engine is
// started once, in the suite's process: its server, its folder. Each worker process then opens it.
import type { Table } from "situ";
import type { LinkStore } from "../../workloads/linkbench/store.ts";
import type { ObjectStore, ObjectTable } from "../../workloads/objects/store.ts";
import type { SmallBankStore } from "../../workloads/smallbank/store.ts";
import type { TatpStore } from "../../workloads/tatp/store.ts";
import type { TpccStore } from "../../workloads/tpcc/store.ts";
import type { InitialRow, ReadRows } from "../../workloads/workload.ts";
import type { YcsbStore, YcsbTable } from "../../workloads/ycsb/store.ts";
import type { Peer } from "../harness/peers.ts";

export const engineNames = ["situ", "cluster", "lmdb", "sqlite", "redis", "postgres"] as const;
export type EngineName = (typeof engineNames)[number];

/**
 * What is left of a commit that was acknowledged. Only engines with the same are compared.
 * "none": nothing needs to survive the machine; processes still share it. "lazy": all but the last
 * moments (20 ms to a second, each engine's own idea of it). "sync": all of it.
 */
export type Durability = "none" | "lazy" | "sync";

export const clusterProtocols = ["rpc", "one-sided", "xenic"] as const;
export type ClusterProtocol = (typeof clusterProtocols)[number];

export interface StartOptions {
  readonly durability: Durability;
  /** Worker processes that will open it. */
  readonly processes: number;
  /** Transactions in flight in each of them: 1 is one after the other. */
  readonly inFlight: number;
  /** User data at the beginning. */
  readonly bytes: number;
  /** Records, accounts: what the workloads call their size. For engines whose tables have a size. */
  readonly size?: number | undefined;
  /** Of a cluster: how its nodes find rows, or that their NICs commit; "rpc" unless it is given. */
  readonly protocol?: ClusterProtocol | undefined;
  /** Of a cluster whose NICs commit: techniques that are left out. */
  readonly techniques?: Readonly<Record<string, boolean>> | undefined;
  /** Of a cluster: whether transactions are procedures at the nodes. */
  readonly calls?: boolean | undefined;
}

/** Where a worker finds the engine; travels as JSON. */
export type Place = Readonly<Record<string, unknown>>;

export interface EngineHost {
  /** The settings that matter, in one line: durability, client, what is pipelined or pooled. */
  readonly settings: string;
  readonly place: Place;
  /** Ends the server and removes everything. */
  stop(): Promise<void>;
}

/** One of these per engine: `lmdb/driver.ts` exports `lmdbDriver`. */
export interface EngineDriver {
  readonly name: EngineName;
  /** Says why, if it cannot be had here. */
  start(options: StartOptions): Promise<Peer<EngineHost>>;
  /** In a worker. The first one creates the tables; the others find them, and the rows in them. */
  open(place: Place, options: OpenOptions): Promise<Engine>;
}

export interface OpenOptions extends StartOptions {
  readonly tables: readonly Table[];
  readonly isFirst: boolean;
}

/** An engine in a worker. Stores are made for the tables that it was opened with. */
export interface Engine {
  /** Bulk, as fast as the engine can; only the first worker does it, before the others open. */
  load(rows: Iterable<InitialRow>): Promise<void>;
  /** All rows of a table, with the fields and types of the table, for the invariant. */
  readonly rows: ReadRows;
  ycsb(table: YcsbTable): YcsbStore;
  smallbank(): SmallBankStore;
  tatp(): TatpStore;
  /** Only engines that have indexes and ranges of their own (`enginesOf`). */
  tpcc?(): TpccStore;
  /** Only engines that have graphs, or lists in the order of their times (`enginesOf`). */
  linkbench?(): LinkStore;
  objects(table: ObjectTable): ObjectStore;
  /** Attempts that conflicts with others have undone so far, if the engine tells. */
  retries(): number;
  close(): Promise<void>;
}
