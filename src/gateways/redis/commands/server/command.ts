/** COMMAND: what commands there are, for clients that look before they send. */

import type { Replies } from "../../../resp/replies.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { matches } from "../../glob.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import { categoriesOf } from "./categories.ts";
import { keysOf } from "./command-keys.ts";
import { replyHelp } from "./help.ts";

const HELP = [
  "(no subcommand)",
  "    Return details about all Redis commands.",
  "COUNT",
  "    Return the total number of commands in this Redis server.",
  "LIST",
  "    Return a list of all commands in this Redis server.",
  "INFO [<command-name> ...]",
  "    Return details about multiple Redis commands.",
  "    If no command names are given, documentation details for all",
  "    commands are returned.",
  "DOCS [<command-name> ...]",
  "    Return documentation details about multiple Redis commands.",
  "    If no command names are given, documentation details for all",
  "    commands are returned.",
  "GETKEYS <full-command>",
  "    Return the keys from a full Redis command.",
];

/** A command, and of which it is a part. */
interface Named {
  readonly name: string;
  readonly command: Command;
  readonly parent: Command | undefined;
}

function all({ server }: Call): Named[] {
  return [...server.commands.values()].map((command) => named(command, undefined));
}

function named(command: Command, parent: Command | undefined): Named {
  const name = parent === undefined ? command.name : `${parent.name}|${command.name}`;
  return { name, command, parent };
}

function find({ server }: Call, name: string): Named | undefined {
  const [first, second] = name.toLowerCase().split("|", 2);
  const parent = server.commands.get(first);
  if (parent === undefined || second === undefined) return parent && named(parent, undefined);
  const command = parent.subcommands?.find((each) => each.name === second);
  return command && named(command, parent);
}

function everything(call: Call): void {
  const commands = all(call);
  call.reply.array(commands.length);
  for (const each of commands) replyInfo(call.reply, each);
}

function info(call: Call): void {
  if (call.count === 2) {
    everything(call);
    return;
  }
  call.reply.array(call.count - 2);
  for (let i = 2; i < call.count; i++) {
    const found = find(call, call.text(i));
    if (found === undefined) call.reply.nil();
    else replyInfo(call.reply, found);
  }
}

function replyInfo(reply: Replies, { name, command, parent }: Named): void {
  const [first, last, step] = command.keys ?? [0, 0, 0];
  reply.array(10);
  reply.text(name);
  reply.integer(command.arity);
  replyTexts(reply, command.flags);
  reply.integer(first);
  reply.integer(last);
  reply.integer(step);
  replyTexts(reply, categoriesOf(command, parent));
  reply.set(0);
  replyKeySpecs(reply, command);
  const { subcommands = [] } = command;
  if (subcommands.length === 0) reply.set(0);
  else reply.array(subcommands.length);
  for (const each of subcommands) replyInfo(reply, named(each, command));
}

function replyTexts(reply: Replies, texts: readonly string[]): void {
  reply.set(texts.length);
  for (const text of texts) reply.simple(text);
}

/** The same as the three numbers, in the form that Redis has had since 7.0. */
function replyKeySpecs(reply: Replies, { keys, flags }: Command): void {
  reply.set(keys === undefined ? 0 : 1);
  if (keys === undefined) return;
  const [first, last, step] = keys;
  reply.map(3);
  reply.text("flags");
  replyTexts(reply, flags.includes("write") ? ["RW", "update"] : ["RO", "access"]);
  replyMap(reply, "begin_search", "index", { index: first });
  const lastkey = last < 0 ? last : last - first;
  replyMap(reply, "find_keys", "range", { lastkey, keystep: step, limit: 0 });
}

function replyMap(
  reply: Replies,
  name: string,
  type: string,
  spec: Readonly<Record<string, number>>,
): void {
  const entries = Object.entries(spec);
  reply.text(name);
  reply.map(2);
  reply.text("type");
  reply.text(type);
  reply.text("spec");
  reply.map(entries.length);
  for (const [key, value] of entries) {
    reply.text(key);
    reply.integer(value);
  }
}

function docs(call: Call): void {
  const { reply } = call;
  const found: Named[] = call.count === 2 ? all(call) : [];
  for (let i = 2; i < call.count; i++) {
    const each = find(call, call.text(i));
    if (each !== undefined) found.push(each);
  }
  reply.map(found.length);
  for (const each of found) replyDocs(reply, each);
}

function replyDocs(reply: Replies, { name, command }: Named): void {
  const { summary, since, group, complexity, subcommands } = command;
  const fields = { summary, since, group, complexity };
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  reply.text(name);
  reply.map(known.length + (subcommands === undefined ? 0 : 1));
  for (const [key, value] of known) {
    reply.text(key);
    reply.text(value!);
  }
  if (subcommands === undefined) return;
  reply.text("subcommands");
  reply.map(subcommands.length);
  for (const each of subcommands) replyDocs(reply, named(each, command));
}

function count({ reply, server }: Call): void {
  reply.integer(server.commands.size);
}

function list(call: Call): void {
  const chosen = chosenBy(call, all(call));
  call.reply.array(chosen.length);
  for (const { name } of chosen) call.reply.text(name);
}

/** FILTERBY MODULE, ACLCAT or PATTERN. */
function chosenBy(call: Call, commands: readonly Named[]): readonly Named[] {
  if (call.count === 2) return commands;
  if (call.count !== 5 || !call.is(2, "FILTERBY")) throw new ReplyError(SYNTAX);
  const parts = commands.flatMap(({ command }) =>
    (command.subcommands ?? []).map((each) => named(each, command)),
  );
  const both = [...commands, ...parts];
  if (call.is(3, "MODULE")) return [];
  if (call.is(3, "PATTERN")) {
    const pattern = Buffer.from(call.text(4).toLowerCase(), "latin1");
    return both.filter(({ name }) => matches(pattern, Buffer.from(name)));
  }
  if (!call.is(3, "ACLCAT")) throw new ReplyError(SYNTAX);
  const category = `@${call.text(4).toLowerCase()}`;
  return both.filter(({ command, parent }) => categoriesOf(command, parent).includes(category));
}

function getkeys(call: Call): void {
  const parent = call.server.commands.get(call.text(2).toLowerCase());
  const hasParts = parent?.subcommands !== undefined && call.count > 3;
  const found = hasParts ? find(call, `${call.text(2)}|${call.text(3)}`)?.command : parent;
  if (found === undefined) throw new ReplyError("ERR Invalid command specified");
  const args: Buffer[] = [];
  for (let i = 2; i < call.count; i++) args.push(call.arg(i));
  const keys = keysOf(found, args);
  call.reply.array(keys.length);
  for (const key of keys) call.reply.bulk(key);
}

function help(call: Call): void {
  replyHelp(call, "COMMAND", HELP);
}

const SUBCOMMANDS: readonly Command[] = [
  {
    name: "count",
    arity: 2,
    flags: ["loading", "stale"],
    group: "server",
    since: "2.8.13",
    summary: "Get total number of Redis commands",
    complexity: "O(1)",
    runs: "session",
    run: count,
  },
  {
    name: "docs",
    arity: -2,
    flags: ["loading", "stale"],
    group: "server",
    since: "7.0.0",
    summary: "Get array of specific Redis command documentation",
    complexity: "O(N) where N is the number of commands to look up",
    runs: "session",
    run: docs,
  },
  {
    name: "getkeys",
    arity: -4,
    flags: ["loading", "stale"],
    group: "server",
    since: "2.8.13",
    summary: "Extract keys given a full Redis command",
    complexity: "O(N) where N is the number of arguments to the command",
    runs: "session",
    run: getkeys,
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
    name: "info",
    arity: -2,
    flags: ["loading", "stale"],
    group: "server",
    since: "2.8.13",
    summary: "Get array of specific Redis command details, or all when no argument is given.",
    complexity: "O(N) where N is the number of commands to look up",
    runs: "session",
    run: info,
  },
  {
    name: "list",
    arity: -2,
    flags: ["loading", "stale"],
    group: "server",
    since: "7.0.0",
    summary: "Get an array of Redis command names",
    complexity: "O(N) where N is the total number of Redis commands",
    runs: "session",
    run: list,
  },
];

export const COMMAND_COMMANDS: readonly Command[] = [
  {
    name: "command",
    arity: -1,
    flags: ["loading", "stale"],
    group: "server",
    since: "2.8.13",
    summary: "Get array of Redis command details",
    complexity: "O(N) where N is the total number of Redis commands",
    runs: "session",
    run: everything,
    subcommands: SUBCOMMANDS,
  },
];
