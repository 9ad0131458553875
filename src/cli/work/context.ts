/** What a command gets beside its options, and what it is: a function that says its exit code. */

import type { COMMANDS, CommandName } from "../commands.ts";
import type { ValuesOf } from "../option-kinds.ts";
import type { Origin } from "../read-options.ts";
import type { Screen } from "../screen.ts";

export interface Context {
  readonly screen: Screen;
  /** Aborted by SIGINT and SIGTERM; a second one ends the process at once. */
  readonly signal: AbortSignal;
  readonly origins: Readonly<Record<string, Origin>>;
}

export type OptionValues<Name extends CommandName> = ValuesOf<(typeof COMMANDS)[Name]["options"]>;

/** Comes to the exit code. */
export type Run<Name extends CommandName> = (
  values: OptionValues<Name>,
  context: Context,
) => Promise<number>;

/** Until a signal comes; for commands that only a signal ends. */
export function untilStopped(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
