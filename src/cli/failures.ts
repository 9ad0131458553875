/**
 * How a command ends: the exit codes that scripts can rely on, and one line on stderr that says
 * what went wrong. What a command throws comes from another bundle than this file, so errors are
 * told by their `code`, not by their class.
 */

import { SituError } from "../runtime/errors.ts";

export const EXIT_OK = 0;
/** The work failed. */
export const EXIT_FAILED = 1;
/** The command line, the environment or a configuration is wrong: the same again fails again. */
export const EXIT_USAGE = 2;
/** `verify` has found faults. */
export const EXIT_FAULTS = 3;
/** As shells count: 128 and the number of the signal. */
export const EXIT_INTERRUPTED = 130;
export const EXIT_TERMINATED = 143;

export const EXIT_CODES: readonly (readonly [number, string])[] = [
  [EXIT_OK, "success; also for serve, node and watch when a signal stopped them"],
  [EXIT_FAILED, "failure; the error code says why"],
  [EXIT_USAGE, "wrong usage or configuration (SITU_CONFIG): do not retry"],
  [EXIT_FAULTS, "verify found faults"],
  [EXIT_INTERRUPTED, "stopped by SIGINT, such as Ctrl-C (143: by SIGTERM)"],
];

/** A wrong command line, environment or situ.config.json. */
export class UsageError extends SituError {
  override readonly name = "UsageError";

  constructor(message: string) {
    super("SITU_CONFIG", message);
  }
}

/** Why the signal of a command was aborted. */
export class Interrupted extends SituError {
  override readonly name = "Interrupted";
  readonly exitCode: number;

  constructor(signal: "SIGINT" | "SIGTERM") {
    super("SITU_ABORTED", signal === "SIGINT" ? "interrupted" : "terminated");
    this.exitCode = signal === "SIGINT" ? EXIT_INTERRUPTED : EXIT_TERMINATED;
  }
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly exitCode: number;
}

/** What to tell of an error, whatever it is; `signal` is that of the command. */
export function failureOf(error: unknown, signal?: AbortSignal): Failure {
  const { code, message, name } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  const reason = signal?.reason as Partial<Interrupted> | undefined;
  const isOver = name === "AbortError" || code === "SITU_ABORTED" || error === reason;
  if (reason?.exitCode !== undefined && isOver) {
    return { code: reason.code!, message: reason.message!, exitCode: reason.exitCode };
  }
  const text = typeof message === "string" && message !== "" ? message : String(error);
  return {
    code: typeof code === "string" ? code : UNEXPECTED,
    message: text,
    exitCode: code === "SITU_CONFIG" ? EXIT_USAGE : EXIT_FAILED,
  };
}

/** Of an error that nobody has foreseen: a fault in Situ, most likely. */
const UNEXPECTED = "SITU_UNEXPECTED";

/** One line, or one line of JSON; the stack only for those who look for a fault in Situ. */
export function tellFailure(who: string, error: unknown, failure: Failure, isJson: boolean): void {
  const { code, message } = failure;
  const hint = code === UNEXPECTED ? "; set SITU_DEBUG=1 for the stack trace" : "";
  const lines = isJson
    ? JSON.stringify({ error: { code, message } })
    : `${who}: ${message} (${code})${hint}`;
  process.stderr.write(`${lines}\n`);
  if (process.env.SITU_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`);
}
