/**
 * OBJECT: how Redis would keep a value inside. Here it is kept otherwise, so this tells what Redis
 * says of such a value, which its clients and tests look at.
 */

import type { Call } from "../../call.ts";
import { encodingOf } from "../../collections/encoding.ts";
import type { Command } from "../../command.ts";
import type { Found } from "../../keyspace.ts";
import { parseInt64 } from "../../numbers.ts";
import { ReplyError } from "../../reply-error.ts";
import { STRING } from "../../tables.ts";
import { noSubcommand, replyHelp } from "../server/help.ts";

/** Longer strings are not embedded in their object (object.c). */
const MAX_EMBEDDED_BYTES = 44;
/** Numbers below this are shared by all keys, and have this many references (server.h). */
const SHARED_INTEGERS = 10_000;
const SHARED_REFERENCES = 2 ** 31 - 1;

const NO_FREQUENCY =
  "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that " +
  "when switching between policies at runtime LRU and LFU data will take some time to adjust.";

const HELP = [
  "ENCODING <key>",
  "    Return the kind of internal representation used in order to store the value",
  "    associated with a <key>.",
  "FREQ <key>",
  "    Return the access frequency index of the <key>. The returned integer is",
  "    proportional to the logarithm of the recent access frequency of the key.",
  "IDLETIME <key>",
  "    Return the idle time of the <key>, that is the approximated number of",
  "    seconds elapsed since the last access to the key.",
  "REFCOUNT <key>",
  "    Return the number of references of the value associated with the specified",
  "    <key>.",
];

function encoding(call: Call): void {
  const found = call.keys.find(call.arg(2));
  if (found === undefined) call.reply.nil();
  else call.reply.text(encodingOfFound(found));
}

function encodingOfFound({ type, value }: Found): string {
  if (type !== STRING) return encodingOf(value, type);
  if (parseInt64(value) !== undefined) return "int";
  return value.length <= MAX_EMBEDDED_BYTES ? "embstr" : "raw";
}

function refcount(call: Call): void {
  const found = call.keys.find(call.arg(2));
  if (found === undefined) call.reply.nil();
  else call.reply.integer(isShared(found) ? SHARED_REFERENCES : 1);
}

/** Redis has small numbers only once, for all keys. */
function isShared({ type, value }: Found): boolean {
  const number = type === STRING ? parseInt64(value) : undefined;
  return number !== undefined && number >= 0 && number < SHARED_INTEGERS;
}

/** Nobody writes down when a key was read. */
function idletime(call: Call): void {
  if (call.keys.typeOf(call.arg(2)) === 0) call.reply.nil();
  else call.reply.integer(0);
}

function freq(call: Call): void {
  if (call.keys.typeOf(call.arg(2)) !== 0) throw new ReplyError(NO_FREQUENCY);
  call.reply.nil();
}

function help(call: Call): void {
  replyHelp(call, "OBJECT", HELP);
}

const SUBCOMMANDS: readonly Command[] = [
  {
    name: "encoding",
    arity: 3,
    flags: ["readonly"],
    keys: [2, 2, 1],
    group: "generic",
    since: "2.2.3",
    summary: "Inspect the internal encoding of a Redis object",
    complexity: "O(1)",
    runs: "store",
    run: encoding,
  },
  {
    name: "freq",
    arity: 3,
    flags: ["readonly"],
    keys: [2, 2, 1],
    group: "generic",
    since: "4.0.0",
    summary: "Get the logarithmic access frequency counter of a Redis object",
    complexity: "O(1)",
    runs: "store",
    run: freq,
  },
  {
    name: "help",
    arity: 2,
    flags: ["loading", "stale"],
    group: "generic",
    since: "6.2.0",
    summary: "Show helpful text about the different subcommands",
    complexity: "O(1)",
    runs: "session",
    run: help,
  },
  {
    name: "idletime",
    arity: 3,
    flags: ["readonly"],
    keys: [2, 2, 1],
    group: "generic",
    since: "2.2.3",
    summary: "Get the time since a Redis object was last accessed",
    complexity: "O(1)",
    runs: "store",
    run: idletime,
  },
  {
    name: "refcount",
    arity: 3,
    flags: ["readonly"],
    keys: [2, 2, 1],
    group: "generic",
    since: "2.2.3",
    summary: "Get the number of references to the value of the key",
    complexity: "O(1)",
    runs: "store",
    run: refcount,
  },
];

export const OBJECT_COMMANDS: readonly Command[] = [
  {
    name: "object",
    arity: -2,
    flags: [],
    group: "generic",
    since: "2.2.3",
    summary: "A container for object introspection commands",
    complexity: "Depends on subcommand.",
    runs: "session",
    run: noSubcommand,
    subcommands: SUBCOMMANDS,
  },
];
