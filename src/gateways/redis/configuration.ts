/**
 * What CONFIG GET and CONFIG SET know: settings that can be changed while the server runs, and
 * others that clients ask for, which cannot. A name that does not apply here is unknown.
 */

import { memoryOf } from "./info.ts";
import { parseInt64 } from "./numbers.ts";
import type { Server } from "./server.ts";
import type { ServerSettings, SettingChanges } from "./settings.ts";

export interface Setting {
  get(server: Server): string;
  /** The change that a text asks for, or what is wrong with it; undefined: it cannot be changed. */
  readonly parse: ((text: string, server: Server) => SettingChanges | string) | undefined;
}

type NumberName = {
  [Name in keyof ServerSettings]: ServerSettings[Name] extends number ? Name : never;
}[keyof ServerSettings];

const MAX_INT = 2 ** 31 - 1;
const MAX_UINT = 2 ** 32 - 1;

const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  k: 1000,
  kb: 1024,
  m: 1000 ** 2,
  mb: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1024 ** 3,
};

const hashEntries = whole("hashMaxPackedEntries", 0, Number.MAX_SAFE_INTEGER);
const hashValue = bytes("hashMaxPackedValue");

/** By name; those that had another one before Redis 7 are there under both. */
export const SETTINGS: ReadonlyMap<string, Setting> = new Map<string, Setting>([
  ["hash-max-listpack-entries", hashEntries],
  ["hash-max-ziplist-entries", hashEntries],
  ["hash-max-listpack-value", hashValue],
  ["hash-max-ziplist-value", hashValue],
  ["set-max-intset-entries", whole("setMaxIntsetEntries", 0, Number.MAX_SAFE_INTEGER)],
  ["timeout", whole("timeoutSeconds", 0, MAX_INT)],
  ["maxclients", whole("maxClients", 1, MAX_UINT)],
  [
    "requirepass",
    { get: ({ settings }) => settings.password, parse: (password) => ({ password }) },
  ],
  ["proto-max-bulk-len", fixed(({ settings }) => String(settings.maxBulkBytes))],
  ["databases", immutable(() => "1")],
  ["maxmemory", fixed(({ database }) => String(memoryOf(database).limitBytes))],
  ["maxmemory-policy", fixed(() => "noeviction")],
  ["appendonly", fixed(({ database }) => (database.executor.durability.isLogged ? "yes" : "no"))],
  ["save", fixed(() => "")],
  ["dir", fixed(({ database }) => database.path)],
  ["port", fixed(({ port }) => String(port))],
  ["io-threads", immutable(({ threads }) => String(threads))],
  ["cluster-enabled", immutable(() => "no")],
]);

/** Cannot be changed in Redis either. */
function immutable(get: (server: Server) => string): Setting {
  return { get, parse: undefined };
}

/** Cannot be changed here, but may be set to what it is: tools do that to be sure. */
function fixed(get: (server: Server) => string): Setting {
  const parse = (text: string, server: Server): SettingChanges | string =>
    text === get(server) ? {} : "can't set immutable config";
  return { get, parse };
}

function whole(name: NumberName, least: number, most: number): Setting {
  return {
    get: ({ settings }) => String(settings[name]),
    parse: (text) => {
      const value = parseInt64(Buffer.from(text, "latin1"));
      if (value === undefined) return "argument couldn't be parsed into an integer";
      if (value >= least && value <= most) return { [name]: Number(value) };
      return `argument must be between ${least} and ${most} inclusive`;
    },
  };
}

/** An amount of memory, such as 64 or 1kb. */
function bytes(name: NumberName): Setting {
  return {
    get: ({ settings }) => String(settings[name]),
    parse: (text) => {
      const [, digits, unit] = /^(\d+)([a-z]*)$/i.exec(text) ?? [];
      const factor = digits === undefined ? undefined : UNITS[unit.toLowerCase()];
      if (factor === undefined) return "argument must be a memory value";
      return { [name]: Math.min(Number(digits) * factor, Number.MAX_SAFE_INTEGER) };
    },
  };
}
