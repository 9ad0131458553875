/** The public face of Situ. */

export type { AsyncTransaction } from "./database/async-transaction.ts";
export type { Database } from "./database/database.ts";
export type { DurabilityStats } from "./database/durability.ts";
export {
  bool,
  bytes,
  type Field,
  f64,
  i32,
  i64,
  json,
  pointer,
  str,
  u8,
  u16,
  u32,
  u64,
} from "./database/fields.ts";
export type { IndexDefinition, IndexKind, IndexOptions } from "./database/indexes/definition.ts";
export type { CountOptions, GetOptions, ScanOptions } from "./database/indexes/options.ts";
export type { Recovered } from "./database/logged-store.ts";
export { destroy, open } from "./database/open.ts";
export type { DurabilityMode, OpenOptions } from "./database/options.ts";
export {
  type Procedure,
  type ProcedureBody,
  type ProcedureOptions,
  procedure,
} from "./database/procedure.ts";
export type { ConnectOptions } from "./database/remote/options.ts";
export type { CallOptions, RemoteDatabase } from "./database/remote/remote-database.ts";
export type { RemoteTransaction } from "./database/remote/remote-transaction.ts";
export type { AsyncScan, Scan } from "./database/scan.ts";
export type { TableStats } from "./database/schema.ts";
export type { Snapshot } from "./database/snapshot.ts";
export type { Stats } from "./database/stats.ts";
export type { RestoreOptions, ToolOptions, VerifiedStore } from "./database/store-tools.ts";
export { backup, inspect, restore, verify } from "./database/store-tools-on-demand.ts";
export { type InferRow, type Table, table } from "./database/table.ts";
export type {
  Isolation,
  TransactOptions,
  TransactSyncOptions,
} from "./database/transact-options.ts";
export type { Transaction } from "./database/transaction.ts";
export type { RecoveryProgress } from "./device/recovery/progress.ts";
export type { MetricsEndpoint, ServeMetricsOptions } from "./gateways/metrics/endpoint.ts";
export { serve, serveMetrics } from "./gateways/on-demand.ts";
export type { Gateway, GatewayOptions } from "./gateways/options.ts";
export { type RedisBytes, type RedisKeys, RedisKeyspace } from "./gateways/redis/in-process.ts";
export { REDIS_TABLES } from "./gateways/redis/tables.ts";
export { Pointer } from "./memory/pointer.ts";
export type {
  CommandEvent,
  TransactionEvent,
  TransactionOutcome,
} from "./runtime/diagnostics.ts";
export {
  ConflictError,
  type ConflictKey,
  type Holder,
  SituError,
  type SituErrorCode,
  TimeoutError,
} from "./runtime/errors.ts";
