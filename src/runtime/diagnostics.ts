/**
 * Events for those who trace: `node:diagnostics_channel` tells subscribers of this process, and
 * without any it costs one look at `hasSubscribers`. An event comes at the end of what it is about,
 * with attributes that have the names of OpenTelemetry's semantic conventions for database clients
 * (stable since 1.33), and Situ's own under `situ.`. docs/METRICS.md turns them into spans.
 */

import { channel } from "node:diagnostics_channel";
import { SituError } from "./errors.ts";

export const transactionChannel = channel("situ:transaction");
export const commandChannel = channel("situ:command");

interface OperationEvent {
  readonly "db.system.name": "situ";
  /** The folder of the store. */
  readonly "db.namespace": string;
  /** "transactSync", "transact", or the command in capitals. */
  readonly "db.operation.name": string;
  /** In seconds. */
  readonly "db.client.operation.duration": number;
  /** Of what failed: a code, as SITU_CONFLICT, or else the name of what was thrown. */
  readonly "error.type"?: string;
  /** Of what failed with a code. */
  readonly "db.response.status_code"?: string;
}

/** How a transaction ended. */
export type TransactionOutcome =
  | "committed"
  /** Committed, but not known to be on disk. */
  | "not_durable"
  | "conflict"
  | "timeout"
  | "full"
  | "too_large"
  /** Its body threw, or called an operation that failed. */
  | "rolled_back"
  | "other";

/** On `situ:transaction`, for each `transactSync` and `transact`. */
export interface TransactionEvent extends OperationEvent {
  readonly "situ.transaction.kind": "sync" | "async";
  readonly "situ.transaction.isolation": "strict-serializable" | "snapshot";
  readonly "situ.transaction.outcome": TransactionOutcome;
  /** How often its body was run. */
  readonly "situ.transaction.attempts": number;
}

/** On `situ:command`, for each command of a gateway's client. */
export interface CommandEvent extends OperationEvent {
  /** Of the connection, as CLIENT ID tells it. */
  readonly "situ.client.id": number;
}

/** Only where there are subscribers: makes the event, and tells them. */
export function publishTransaction(
  namespace: string,
  isSync: boolean,
  isSnapshot: boolean,
  durationMs: number,
  attempts: number,
  outcome: TransactionOutcome,
  error: unknown,
): void {
  const event: TransactionEvent = {
    "db.system.name": "situ",
    "db.namespace": namespace,
    "db.operation.name": isSync ? "transactSync" : "transact",
    "db.client.operation.duration": durationMs / 1e3,
    ...(outcome === "committed" ? {} : describe(error)),
    "situ.transaction.kind": isSync ? "sync" : "async",
    "situ.transaction.isolation": isSnapshot ? "snapshot" : "strict-serializable",
    "situ.transaction.outcome": outcome,
    "situ.transaction.attempts": attempts,
  };
  transactionChannel.publish(event);
}

/**
 * For gateways: a command was answered. Costs nothing where nobody listens; whoever has to look at
 * a clock for it asks `commandChannel.hasSubscribers` first. `errorPrefix` is the first word of the
 * error that the client got, such as WRONGTYPE, or "".
 */
export function publishCommand(
  namespace: string,
  command: string,
  durationMs: number,
  clientId: number,
  errorPrefix: string,
): void {
  if (!commandChannel.hasSubscribers) return;
  const failed = { "error.type": errorPrefix, "db.response.status_code": errorPrefix };
  const event: CommandEvent = {
    "db.system.name": "situ",
    "db.namespace": namespace,
    "db.operation.name": command.toUpperCase(),
    "db.client.operation.duration": durationMs / 1e3,
    ...(errorPrefix === "" ? {} : failed),
    "situ.client.id": clientId,
  };
  commandChannel.publish(event);
}

function describe(error: unknown): Pick<OperationEvent, "error.type" | "db.response.status_code"> {
  if (error instanceof SituError) {
    return { "error.type": error.code, "db.response.status_code": error.code };
  }
  // OpenTelemetry's name for what has none.
  return { "error.type": error instanceof Error ? error.name : "_OTHER" };
}
