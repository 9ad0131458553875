/**
 * Operating errors: each has a stable `code` that a caller can react to, says what to do, and says
 * whether the same call may succeed later. A broken invariant is not one of these: see assert.ts.
 */

/** The codes of all errors; docs/ERRORS.md says what each means. */
export type SituErrorCode =
  | "SITU_ABORTED"
  | "SITU_ARITHMETIC"
  | "SITU_ASYNC_BODY"
  | "SITU_CLOSED"
  | "SITU_CONFIG"
  | "SITU_CONFLICT"
  | "SITU_CORRUPT"
  | "SITU_DISK_FULL"
  | "SITU_EXISTS"
  | "SITU_FREED"
  | "SITU_FULL"
  | "SITU_GAP"
  | "SITU_IN_USE"
  | "SITU_LAYOUT"
  | "SITU_LOG_FAILED"
  | "SITU_LOST"
  | "SITU_MEMORY_LOST"
  | "SITU_MISSING"
  | "SITU_NESTED"
  | "SITU_NOT_DURABLE"
  | "SITU_NO_MEMORY"
  | "SITU_OTHER_MEMORY"
  | "SITU_OVERLOADED"
  | "SITU_PERMISSION"
  | "SITU_PROCEDURE"
  | "SITU_PROTOCOL"
  | "SITU_SCHEMA"
  | "SITU_SECRET"
  | "SITU_SNAPSHOT_TOO_OLD"
  | "SITU_STALE_CONFIGURATION"
  | "SITU_TIMEOUT"
  | "SITU_TOO_LARGE"
  | "SITU_TYPE"
  | "SITU_UNIQUE"
  | "SITU_UNKNOWN_INDEX"
  | "SITU_UNKNOWN_OUTCOME"
  | "SITU_UNKNOWN_PROCEDURE"
  | "SITU_UNKNOWN_TABLE"
  | "SITU_UNREACHABLE"
  | "SITU_UNSUPPORTED";

const RETRYABLE: ReadonlySet<SituErrorCode> = new Set([
  "SITU_CONFLICT",
  "SITU_DISK_FULL",
  "SITU_LOST",
  "SITU_OVERLOADED",
  "SITU_SNAPSHOT_TOO_OLD",
  "SITU_TIMEOUT",
  "SITU_UNREACHABLE",
]);

/** Every error that Situ throws. `retryable` says whether the same call may succeed later. */
export class SituError extends Error {
  override readonly name: string = "SituError";
  readonly code: SituErrorCode;
  readonly retryable: boolean;

  constructor(code: SituErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.retryable = RETRYABLE.has(code);
  }
}

/** A key that a conflict was about, as the caller wrote it. */
export interface ConflictKey {
  readonly table: string;
  readonly key: unknown;
}

/** The transaction was retried as often as it may be and met another each time. */
export class ConflictError extends SituError {
  override readonly name = "ConflictError";
  readonly keys: readonly ConflictKey[];

  constructor(message: string, keys: readonly ConflictKey[]) {
    super("SITU_CONFLICT", message);
    this.keys = keys;
  }
}

/** A store cannot be made so small: `smallestBytes` is the smallest size that is possible now. */
export class ResizeError extends SituError {
  override readonly name = "ResizeError";
  readonly smallestBytes: number;

  constructor(message: string, smallestBytes: number) {
    super("SITU_FULL", message);
    this.smallestBytes = smallestBytes;
  }
}

/**
 * A row is there, or is not, against what the call needs: SITU_EXISTS, SITU_MISSING, SITU_UNIQUE. The
 * row in the way is what `get(table, error.key, { index: error.index })` finds.
 */
export class RowError extends SituError {
  override readonly name = "RowError";
  /** The name of the table. */
  readonly table: string;
  /** For SITU_UNIQUE: the name of the index. */
  readonly index: string | undefined;
  /** The key that exists or is missing; for SITU_UNIQUE the values that another row has. */
  readonly key: unknown;

  constructor(
    code: "SITU_EXISTS" | "SITU_MISSING" | "SITU_UNIQUE",
    message: string,
    where: { readonly table: string; readonly index?: string | undefined; readonly key: unknown },
    options?: { cause?: unknown },
  ) {
    super(code, message, options);
    this.table = where.table;
    this.index = where.index;
    this.key = where.key;
  }
}

/** Who holds what a timed-out caller waited for. */
export interface Holder {
  readonly pid: number;
  readonly threadId: number;
  readonly slot: number;
}

/** A callback or a wait took longer than `timeoutMs`; `holder` is the process that was waited for, if any. */
export class TimeoutError extends SituError {
  override readonly name = "TimeoutError";
  readonly holder: Holder | undefined;

  constructor(message: string, holder?: Holder) {
    super("SITU_TIMEOUT", message);
    this.holder = holder;
  }
}
