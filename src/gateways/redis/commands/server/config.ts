/** CONFIG: settings by name. CONFIG SET changes all that it is asked to, or none. */

import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { SETTINGS, type Setting } from "../../configuration.ts";
import { isLiteral, matches } from "../../glob.ts";
import { resetFigures } from "../../info.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import type { SettingChanges } from "../../settings.ts";
import { noSubcommand, replyHelp } from "./help.ts";

const HELP = [
  "GET <pattern>",
  "    Return parameters matching the glob-like <pattern> and their values.",
  "SET <directive> <value>",
  "    Set the configuration <directive> to <value>.",
  "RESETSTAT",
  "    Reset statistics reported by the INFO command.",
];

function get(call: Call): void {
  const { reply, server } = call;
  const found = new Map<string, Setting>();
  for (let i = 2; i < call.count; i++) addMatching(call, i, found);
  reply.map(found.size);
  for (const [name, setting] of found) {
    reply.text(name);
    reply.text(setting.get(server));
  }
}

/** One that is named in full is given under the name as it was written. */
function addMatching(call: Call, index: number, found: Map<string, Setting>): void {
  const text = call.text(index);
  const pattern = Buffer.from(text.toLowerCase(), "latin1");
  if (isLiteral(pattern)) {
    const setting = SETTINGS.get(text.toLowerCase());
    if (setting !== undefined) found.set(text, setting);
    return;
  }
  for (const [name, setting] of SETTINGS) {
    if (matches(pattern, Buffer.from(name, "latin1"))) found.set(name, setting);
  }
}

function set(call: Call): void {
  const { count, server } = call;
  if (count % 2 !== 0) throw new ReplyError(SYNTAX);
  const settings: Setting[] = [];
  for (let i = 2; i < count; i += 2) settings.push(settingAt(call, i));
  const problem = firstProblem(call, settings);
  if (problem !== undefined) throw problem;
  const changes: SettingChanges = {};
  for (let i = 2; i < count; i += 2) Object.assign(changes, changeAt(call, i, settings));
  server.settings.change(changes);
  call.reply.ok();
}

function settingAt(call: Call, index: number): Setting {
  const name = call.text(index);
  const setting = SETTINGS.get(name.toLowerCase());
  if (setting !== undefined) return setting;
  throw new ReplyError(`ERR Unknown option or number of arguments for CONFIG SET - '${name}'`);
}

/** What can be said before any value was looked at. */
function firstProblem(call: Call, settings: readonly Setting[]): ReplyError | undefined {
  for (let i = 0; i < settings.length; i++) {
    const index = 2 + 2 * i;
    if (settings[i].parse === undefined) return failed(call, index, "can't set immutable config");
    if (settings.indexOf(settings[i]) < i) return failed(call, index, "duplicate parameter");
  }
  return undefined;
}

function changeAt(call: Call, index: number, settings: readonly Setting[]): SettingChanges {
  const { parse } = settings[(index - 2) / 2];
  const change = parse!(call.arg(index + 1).toString("utf8"), call.server);
  if (typeof change === "string") throw failed(call, index, change);
  return change;
}

function failed(call: Call, index: number, why: string): ReplyError {
  const name = call.text(index);
  return new ReplyError(`ERR CONFIG SET failed (possibly related to argument '${name}') - ${why}`);
}

function resetstat({ reply, server }: Call): void {
  resetFigures(server);
  reply.ok();
}

function help(call: Call): void {
  replyHelp(call, "CONFIG", HELP);
}

const SUBCOMMANDS: readonly Command[] = [
  {
    name: "get",
    arity: -3,
    flags: ["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "2.0.0",
    summary: "Get the values of configuration parameters",
    complexity: "O(N) when N is the number of configuration parameters provided",
    runs: "session",
    run: get,
  },
  {
    name: "help",
    arity: 2,
    flags: ["loading", "stale"],
    group: "server",
    since: "5.0.0",
    summary: "Show helpful text about the different subcommands",
    complexity: "O(1)",
    runs: "session",
    run: help,
  },
  {
    name: "resetstat",
    arity: 2,
    flags: ["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "2.0.0",
    summary: "Reset the stats returned by INFO",
    complexity: "O(1)",
    runs: "session",
    run: resetstat,
  },
  {
    name: "set",
    arity: -4,
    flags: ["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "2.0.0",
    summary: "Set configuration parameters to the given values",
    complexity: "O(N) when N is the number of configuration parameters provided",
    runs: "session",
    run: set,
  },
];

export const CONFIG_COMMANDS: readonly Command[] = [
  {
    name: "config",
    arity: -2,
    flags: [],
    group: "server",
    since: "2.0.0",
    summary: "A container for server configuration commands",
    complexity: "Depends on subcommand.",
    runs: "session",
    run: noSubcommand,
    subcommands: SUBCOMMANDS,
  },
];
