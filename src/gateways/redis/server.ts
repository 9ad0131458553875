/** What commands know of the gateway around them. */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import type { Command } from "./command.ts";
import type { SessionState } from "./session-state.ts";
import type { ServerSettings } from "./settings.ts";
import type { Whole } from "./whole.ts";

export interface Server {
  readonly database: Database;
  readonly settings: ServerSettings;
  /** For commands about all keys. */
  readonly whole: Whole;
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

export interface ServerFigures {
  readonly clients: number;
  readonly connectionsReceived: number;
  readonly connectionsRejected: number;
  readonly commandsProcessed: number;
  readonly keyspaceHits: number;
  readonly keyspaceMisses: number;
  readonly keysExpired: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
}
