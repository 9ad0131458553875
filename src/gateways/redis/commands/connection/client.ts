/** CLIENT: what is known about connections. CLIENT LIST shows those of the thread that is asked. */

import { wallClockMs } from "../../../../runtime/clock.ts";
import type { Call } from "../../call.ts";
import type { Command } from "../../command.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import type { SessionState } from "../../session-state.ts";
import { noSubcommand, replyHelp } from "../server/help.ts";
import { printable, setName } from "./client-name.ts";

const TYPES = ["normal", "slave", "replica", "pubsub", "master"];

const HELP = [
  "GETNAME",
  "    Return the name of the current connection.",
  "ID",
  "    Return the ID of the current connection.",
  "INFO",
  "    Return information about the current client connection.",
  "LIST [options ...]",
  "    Return information about client connections. Options:",
  "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB)",
  "      Return clients of specified type.",
  "SETNAME <name>",
  "    Assign the name <name> to the current connection.",
  "SETINFO <option> <value>",
  "    Set client meta attr. Options are:",
  "    * LIB-NAME: the client lib name.",
  "    * LIB-VER: the client lib version.",
];

function id({ reply, session }: Call): void {
  reply.integer(session.id);
}

function getname({ reply, session }: Call): void {
  if (session.name === "") reply.nil();
  else reply.text(session.name);
}

function setname(call: Call): void {
  setName(call, 2);
  call.reply.ok();
}

/** Of Redis 7.2; clients of today send it without waiting for its reply. */
function setinfo(call: Call): void {
  const { session } = call;
  if (call.is(2, "LIB-NAME")) session.libraryName = printable(call, 3, "lib-name");
  else if (call.is(2, "LIB-VER")) session.libraryVersion = printable(call, 3, "lib-ver");
  else throw new ReplyError(`ERR Unrecognized option '${call.text(2)}'`);
  call.reply.ok();
}

function info({ reply, session }: Call): void {
  reply.verbatim("txt", `${lineOf(session, wallClockMs())}\n`);
}

function list(call: Call): void {
  const { sessions } = call.server;
  const nowMs = wallClockMs();
  let text = "";
  for (const session of wanted(call, sessions)) text += `${lineOf(session, nowMs)}\n`;
  call.reply.verbatim("txt", text);
}

function wanted(call: Call, all: ReadonlyMap<number, SessionState>): Iterable<SessionState> {
  const { count } = call;
  if (count === 2) return all.values();
  if (count === 4 && call.is(2, "TYPE")) {
    const type = call.text(3);
    if (!TYPES.includes(type.toLowerCase())) {
      throw new ReplyError(`ERR Unknown client type '${type}'`);
    }
    return call.is(3, "NORMAL") ? all.values() : [];
  }
  if (count === 3 || !call.is(2, "ID")) throw new ReplyError(SYNTAX);
  const found: SessionState[] = [];
  for (let i = 3; i < count; i++) {
    const session = all.get(Number(call.bigInteger(i, "ERR Invalid client ID")));
    if (session !== undefined) found.push(session);
  }
  return found;
}

/** What a thread cannot know, such as the descriptor, is 0 or −1. */
function lineOf(session: SessionState, nowMs: number): string {
  const { connectedMs, lastMs, queued, inputBytes, outputBytes } = session;
  const fields = {
    id: session.id,
    addr: session.address,
    laddr: session.localAddress,
    fd: -1,
    name: session.name,
    age: seconds(nowMs - connectedMs),
    idle: seconds(nowMs - lastMs),
    flags: flagsOf(session),
    db: 0,
    sub: 0,
    psub: 0,
    ssub: 0,
    multi: queued,
    qbuf: inputBytes,
    "qbuf-free": 0,
    "argv-mem": 0,
    "multi-mem": 0,
    rbs: 0,
    rbp: 0,
    obl: outputBytes,
    oll: 0,
    omem: outputBytes,
    "tot-mem": inputBytes + outputBytes,
    events: outputBytes > 0 ? "rw" : "r",
    cmd: session.lastCommand,
    user: "default",
    redir: -1,
    resp: session.protocol,
    "lib-name": session.libraryName,
    "lib-ver": session.libraryVersion,
  };
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

function seconds(ms: number): number {
  return Math.max(0, Math.floor(ms / 1000));
}

function flagsOf({ queued, localAddress }: SessionState): string {
  const flags = `${queued >= 0 ? "x" : ""}${localAddress.startsWith("/") ? "U" : ""}`;
  return flags === "" ? "N" : flags;
}

function help(call: Call): void {
  replyHelp(call, "CLIENT", HELP);
}

const SUBCOMMANDS: readonly Command[] = [
  {
    name: "getname",
    arity: 2,
    flags: ["noscript", "loading", "stale"],
    group: "connection",
    since: "2.6.9",
    summary: "Get the current connection name",
    complexity: "O(1)",
    runs: "session",
    run: getname,
  },
  {
    name: "help",
    arity: 2,
    flags: ["loading", "stale"],
    group: "connection",
    since: "5.0.0",
    summary: "Show helpful text about the different subcommands",
    complexity: "O(1)",
    runs: "session",
    run: help,
  },
  {
    name: "id",
    arity: 2,
    flags: ["noscript", "loading", "stale"],
    group: "connection",
    since: "5.0.0",
    summary: "Returns the client ID for the current connection",
    complexity: "O(1)",
    runs: "session",
    run: id,
  },
  {
    name: "info",
    arity: 2,
    flags: ["noscript", "loading", "stale"],
    group: "connection",
    since: "6.2.0",
    summary: "Returns information about the current client connection.",
    complexity: "O(1)",
    runs: "session",
    run: info,
  },
  {
    name: "list",
    arity: -2,
    flags: ["admin", "noscript", "loading", "stale"],
    group: "connection",
    since: "2.4.0",
    summary: "Get the list of client connections",
    complexity: "O(N) where N is the number of client connections",
    runs: "session",
    run: list,
  },
  {
    name: "setinfo",
    arity: 4,
    flags: ["noscript", "loading", "stale"],
    group: "connection",
    since: "7.2.0",
    summary: "Set client or connection specific info",
    complexity: "O(1)",
    runs: "session",
    run: setinfo,
  },
  {
    name: "setname",
    arity: 3,
    flags: ["noscript", "loading", "stale"],
    group: "connection",
    since: "2.6.9",
    summary: "Set the current connection name",
    complexity: "O(1)",
    runs: "session",
    run: setname,
  },
];

export const CLIENT_COMMANDS: readonly Command[] = [
  {
    name: "client",
    arity: -2,
    flags: [],
    group: "connection",
    since: "2.4.0",
    summary: "A container for client connection commands",
    complexity: "Depends on subcommand.",
    runs: "session",
    run: noSubcommand,
    subcommands: SUBCOMMANDS,
  },
];
