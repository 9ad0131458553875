/** Commands about all keys. Outside of MULTI they are not one transaction: see all-keys.ts. */

import { WALK_END } from "../../all-keys.ts";
import type { Call } from "../../call.ts";
import { parseCursor } from "../../collections/scan.ts";
import type { Command } from "../../command.ts";
import { matches, matchesAll } from "../../glob.ts";
import { countOutside } from "../../key-count.ts";
import { ReplyError, SYNTAX } from "../../reply-error.ts";
import { TYPE_NAMES } from "../../tables.ts";

const DEFAULT_COUNT = 10;
/** Cursors are places of a walk, and there are only so many. */
const PLACES = 2n ** 32n;
/** Walks over few keys in much room end after so many steps for each key that was asked for. */
const STEPS_PER_KEY = 10;

function keys(call: Call): void {
  const { reply, server } = call;
  const pattern = call.arg(1);
  const found: Buffer[] = [];
  const isAll = matchesAll(pattern);
  server.allKeys.each((key) => {
    if (isAll || matches(pattern, key)) found.push(key);
  });
  reply.array(found.length);
  for (const key of found) reply.bulk(key);
}

interface ScanOptions {
  count: number;
  pattern: Buffer | undefined;
  /** As the client wrote it, in lower case. */
  type: string | undefined;
}

function scan(call: Call): void {
  const { reply } = call;
  const cursor = parseCursor(call.text(1));
  const options = scanOptionsOf(call);
  const found: Buffer[] = [];
  const next = cursor < PLACES ? walk(call, Number(cursor), options, found) : WALK_END;
  reply.array(2);
  reply.text(String(next));
  reply.array(found.length);
  for (const key of found) reply.bulk(key);
}

/** Adds keys to `found`; where the next call goes on. */
function walk(
  { server }: Call,
  cursor: number,
  { count, pattern, type }: ScanOptions,
  found: Buffer[],
): number {
  let met = 0;
  const visit = (key: Buffer, of: number): void => {
    met++;
    if (type !== undefined && type !== TYPE_NAMES[of]) return;
    if (pattern === undefined || matches(pattern, key)) found.push(key);
  };
  let place = cursor;
  let steps = 0;
  do {
    place = server.allKeys.walk(place, visit);
    steps++;
  } while (place !== WALK_END && met < count && steps < count * STEPS_PER_KEY);
  return place;
}

function scanOptionsOf(call: Call): ScanOptions {
  const options: ScanOptions = { count: DEFAULT_COUNT, pattern: undefined, type: undefined };
  for (let i = 2; i < call.count; i += 2) {
    if (i + 1 === call.count) throw new ReplyError(SYNTAX);
    if (call.is(i, "COUNT")) options.count = countAt(call, i + 1);
    else if (call.is(i, "MATCH")) options.pattern = patternAt(call, i + 1);
    else if (call.is(i, "TYPE")) options.type = call.text(i + 1).toLowerCase();
    else throw new ReplyError(SYNTAX);
  }
  return options;
}

function countAt(call: Call, index: number): number {
  const count = Number(call.bigInteger(index));
  if (count < 1) throw new ReplyError(SYNTAX);
  return count;
}

function patternAt(call: Call, index: number): Buffer | undefined {
  const pattern = call.arg(index);
  return matchesAll(pattern) ? undefined : pattern;
}

function randomkey({ reply, server }: Call): void {
  const key = server.allKeys.random();
  if (key === undefined) reply.nil();
  else reply.bulk(key);
}

function dbsize({ keys, reply, server }: Call): void {
  reply.integer(keys.isInside ? server.allKeys.size() : countOutside(server.database).keys);
}

function flush(call: Call): void {
  const isKnown = call.count === 1 || call.is(1, "SYNC") || call.is(1, "ASYNC");
  if (!isKnown || call.count > 2) throw new ReplyError(SYNTAX);
  call.server.allKeys.flush();
  call.reply.ok();
}

export const ALL_KEYS_COMMANDS: readonly Command[] = [
  {
    name: "keys",
    arity: 2,
    flags: ["readonly"],
    group: "generic",
    since: "1.0.0",
    summary: "Find all keys matching the given pattern",
    complexity:
      "O(N) with N being the number of keys in the database, under the assumption that the key " +
      "names in the database and the given pattern have limited length.",
    runs: "session",
    run: keys,
  },
  {
    name: "scan",
    arity: -2,
    flags: ["readonly"],
    group: "generic",
    since: "2.8.0",
    summary: "Incrementally iterate the keys space",
    complexity:
      "O(1) for every call. O(N) for a complete iteration, including enough command calls for " +
      "the cursor to return back to 0. N is the number of elements inside the collection.",
    runs: "session",
    run: scan,
  },
  {
    name: "randomkey",
    arity: 1,
    flags: ["readonly"],
    group: "generic",
    since: "1.0.0",
    summary: "Return a random key from the keyspace",
    complexity: "O(1)",
    runs: "session",
    run: randomkey,
  },
  {
    name: "dbsize",
    arity: 1,
    flags: ["readonly", "fast"],
    group: "server",
    since: "1.0.0",
    summary: "Return the number of keys in the selected database",
    complexity: "O(1)",
    runs: "session",
    run: dbsize,
  },
  {
    name: "flushdb",
    arity: -1,
    flags: ["write"],
    group: "server",
    since: "1.0.0",
    summary: "Remove all keys from the current database",
    complexity: "O(N) where N is the number of keys in the selected database",
    runs: "session",
    run: flush,
  },
  {
    name: "flushall",
    arity: -1,
    flags: ["write"],
    group: "server",
    since: "1.0.0",
    summary: "Remove all keys from all databases",
    complexity: "O(N) where N is the total number of keys in all databases",
    runs: "session",
    run: flush,
  },
];
