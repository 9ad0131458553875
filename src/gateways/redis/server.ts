/** What commands know of the gateway around them. */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import type { GatewayCounter } from "../metrics/command-metrics.ts";
import type { AllKeys } from "./all-keys.ts";
import type { Command } from "./command.ts";
import type { SessionState } from "./session-state.ts";
import type { ServerSettings } from "./settings.ts";

export interface Server {
  readonly database: Database;
  readonly settings: ServerSettings;
  /** For commands about all keys. */
  readonly allKeys: AllKeys;
  /** By their names in lower case. */
  readonly commands: ReadonlyMap<string, Command>;
  readonly startedMs: number;
  readonly port: number;
  readonly threads: number;
  /** Those of this thread. */
  readonly sessions: ReadonlyMap<number, SessionState>;
  /** What INFO's stats section says, for all threads. */
  readonly figures: ServerFigures;
}

export type ServerFigures = Readonly<
  Record<GatewayCounter | "clients" | "commandsProcessed", number>
>;
