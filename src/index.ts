/** The public face of Situ. */

export type { Opener } from "./attach/openers.ts";
export type { DurabilityMode } from "./attach/settings.ts";
export type {
  AsyncTransaction,
  InteractiveTransaction,
  LocalTransaction,
} from "./database/async-transaction.ts";
export type {
  AggregateResult,
  BulkDatabase,
  BulkReads,
  BulkSelect,
  BulkTransaction,
  Selected,
  SyncBulk,
} from "./database/bulk.ts";
export type {
  AnyDatabase,
  CallOptions,
  Database,
  RemoteDatabase,
} from "./database/database.ts";
export type {
  AssociationName,
  AsyncGraphReads,
  AsyncGraphTransaction,
  Edge,
  EdgeData,
  EdgeInput,
  Graph,
  GraphOptions,
  GraphReads,
  GraphTransaction,
  ObjAddOptions,
  ObjDeleteOptions,
  ObjectChanges,
  ObjectOf,
  RemoteGraph,
} from "./database/graph.ts";
export type { DurabilityStats } from "./database/local/database-durability.ts";
export { graph } from "./database/local/graph/open-graph.ts";
export type { Stats } from "./database/local/stats.ts";
export type { MigrateOptions } from "./database/migrate-options.ts";
export { destroy, open } from "./database/open.ts";
export type { OpenOptions } from "./database/open-options.ts";
export {
  type Procedure,
  type ProcedureBody,
  type ProcedureOptions,
  procedure,
} from "./database/procedure.ts";
export type { ConnectOptions } from "./database/remote/connect-options.ts";
export type { TransactionEnd } from "./database/run/interactive.ts";
export type { AsyncScan, Scan } from "./database/scan.ts";
export type { RemoteSnapshot, Snapshot } from "./database/snapshot.ts";
export type {
  Openers,
  RestoreOptions,
  ToolOptions,
  VerifiedStore,
} from "./database/store-tools.ts";
export { backup, inspect, openers, restore, verify } from "./database/store-tools-on-demand.ts";
export type {
  Isolation,
  SyncResult,
  TransactOptions,
  TransactSyncOptions,
} from "./database/transact-options.ts";
export type { AllocOptions, Transaction } from "./database/transaction.ts";
export type { Change, ChangeOf, Watch, WatchOptions } from "./database/watch.ts";
export type { Gateway, GatewayOptions } from "./gateways/gateway-options.ts";
export type { MetricsEndpoint, ServeMetricsOptions } from "./gateways/metrics/endpoint.ts";
export { serve, serveMetrics } from "./gateways/on-demand.ts";
export { type RedisBytes, type RedisKeys, RedisKeyspace } from "./gateways/redis/in-process.ts";
export { REDIS_TABLES } from "./gateways/redis/tables.ts";
export type { RecoveryProgress } from "./log/recovery/progress.ts";
export type { Recovered } from "./log/recovery/rebuild.ts";
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
  ResizeError,
  RowError,
  SituError,
  type SituErrorCode,
  TimeoutError,
} from "./runtime/errors.ts";
export type { Plan, PlanCandidate } from "./tables/bulk/plan.ts";
export type {
  AggregateOptions,
  AggregateValues,
  Assignments,
  DeleteWhereOptions,
  ExplainOptions,
  Place,
  SelectOptions,
  UpdateWhereOptions,
  Where,
} from "./tables/bulk/requests.ts";
export type { Deleted, Updated } from "./tables/bulk/runs.ts";
export { type Aggregate, avg, count, max, min, sum } from "./tables/expressions/aggregates.ts";
export type {
  ByteString,
  Comparable,
  Condition,
  Expression,
  FieldExpression,
  Numeric,
  Operand,
  RowExpressions,
  Text,
  Time,
  Value,
} from "./tables/expressions/expression.ts";
export {
  autoIncrement,
  bool,
  bytes,
  enumOf,
  type Field,
  f64,
  i32,
  i53,
  i64,
  json,
  nullable,
  pointer,
  str,
  type TimestampOptions,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
  uuid,
} from "./tables/fields.ts";
export type {
  AssociationOptions,
  AssociationTypes,
  ObjectKinds,
} from "./tables/graph/definition.ts";
export type { DeletedObject, EdgesOfDeleted } from "./tables/graph/operations.ts";
export type { IndexDefinition, IndexKind, IndexOptions } from "./tables/indexes/definition.ts";
export type { CountOptions, GetOptions, ScanOptions } from "./tables/indexes/read-options.ts";
export type { MigrationProgress } from "./tables/migrations/context.ts";
export type { MigrationPlan } from "./tables/migrations/run.ts";
export {
  addField,
  changeKey,
  dropField,
  dropIndex,
  dropTable,
  keepRows,
  type MigrationStep,
  narrowField,
  renameField,
  renameTable,
} from "./tables/migrations/steps.ts";
export type { MigrationStats, TableStats } from "./tables/schema.ts";
export { type InferInsert, type InferRow, type Table, table } from "./tables/table.ts";
export type { DumpOptions } from "./transfer/dump.ts";
export type { DumpFormat, DumpTableOptions, TransferProgress } from "./transfer/dump-table.ts";
export type { LoadedStore, LoadOptions } from "./transfer/load.ts";
export type { Loaded, LoadTableOptions, OnConflict } from "./transfer/load-table.ts";
export type { Dumped, DumpedGraph, DumpedTable } from "./transfer/manifest.ts";
export { dump, dumpTable, load, loadTable } from "./transfer/on-demand.ts";
