/** Hash and set commands on a store of their own, without a socket. */

import type { LocalDatabase as Database } from "../../../src/database/local/local-database.ts";
import { Call } from "../../../src/gateways/redis/call.ts";
import { COMMANDS } from "../../../src/gateways/redis/commands/command-table.ts";
import { Keyspace } from "../../../src/gateways/redis/keyspace.ts";
import { ReplyError } from "../../../src/gateways/redis/reply-error.ts";
import type { Server } from "../../../src/gateways/redis/server.ts";
import type { SessionState } from "../../../src/gateways/redis/session-state.ts";
import {
  DEFAULT_SETTINGS,
  LiveSettings,
  type SettingChanges,
} from "../../../src/gateways/redis/settings.ts";
import {
  REDIS_TABLES,
  RedisGarbage,
  RedisKeys,
  RedisMembers,
} from "../../../src/gateways/redis/tables.ts";
import { Replies } from "../../../src/gateways/resp/replies.ts";
import { Request } from "../../../src/gateways/resp/request.ts";
import { MIB, type TemporaryStores } from "../../helpers/store.ts";

const commands = new Map(COMMANDS.map((each) => [each.name, each]));

export type Argument = string | number | Uint8Array;
/** A reply in RESP2, read: an error is an Error. */
export type Reply = string | number | null | Error | Reply[];

export class CollectionsWorld {
  readonly db: Database;
  readonly keys: Keyspace;
  readonly replies = new Replies();
  readonly #call: Call;

  constructor(db: Database, changes: SettingChanges = {}) {
    this.db = db;
    this.keys = new Keyspace(db);
    const values = { ...DEFAULT_SETTINGS, password: "", maxClients: 10, maxBulkBytes: MIB };
    const settings = new LiveSettings({ ...values, ...changes }, () => {});
    const server = { database: db, settings } as unknown as Server;
    const session = {} as SessionState;
    this.#call = new Call(this.keys, server, session, this.replies, new Request());
  }

  static async open(
    stores: TemporaryStores,
    changes: SettingChanges = {},
    options: { path?: string; memoryBytes?: number } = {},
  ): Promise<CollectionsWorld> {
    const db = await stores.open({ ...options, tables: REDIS_TABLES });
    return new CollectionsWorld(db, changes);
  }

  /** Runs a command in a transaction of its own. */
  run(name: string, ...args: Argument[]): Reply {
    const request = requestOf([name, ...args]);
    this.keys.run(() => {
      this.replies.clear();
      this.runInside(request);
    }, undefined);
    return new Reader(this.replies.take()).next();
  }

  /** For the body of a transaction. */
  runInside(request: Request): void {
    this.#call.request = request;
    try {
      commands.get(request.bytes.toString("latin1", 0, request.ends[0]))!.run(this.#call);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      this.replies.error(error.message);
    }
  }

  /** Runs something in a transaction that is not a command. */
  inside<T>(body: (call: Call) => T): T {
    let result: T | undefined;
    this.keys.run(() => {
      result = body(this.#call);
    }, undefined);
    return result as T;
  }

  /** Rows that there are, of all kinds. */
  rows(): { keys: number; members: number; garbage: number } {
    const { db } = this;
    return {
      keys: db.count(RedisKeys),
      members: db.count(RedisMembers),
      garbage: db.count(RedisGarbage),
    };
  }
}

export function requestOf(args: readonly Argument[]): Request {
  const request = new Request();
  const parts = args.map((each) =>
    each instanceof Uint8Array ? Buffer.from(each) : Buffer.from(String(each), "latin1"),
  );
  request.bytes = Buffer.concat(parts);
  while (request.starts.length < parts.length) request.grow();
  let at = 0;
  parts.forEach((part, i) => {
    request.starts[i] = at;
    at += part.length;
    request.ends[i] = at;
  });
  request.count = parts.length;
  return request;
}

/** Reads what RESP2 has. */
class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  next(): Reply {
    const end = this.#bytes.indexOf("\r\n", this.#at);
    const type = String.fromCharCode(this.#bytes[this.#at]);
    const line = this.#bytes.toString("latin1", this.#at + 1, end);
    this.#at = end + 2;
    if (type === "+") return line;
    if (type === "-") return new Error(line);
    if (type === ":") return Number(line);
    const length = Number(line);
    if (length < 0) return null;
    if (type === "*") return Array.from({ length }, () => this.next());
    if (type !== "$") throw new Error(`unknown type ${type} at ${this.#at}`);
    this.#at += length + 2;
    return this.#bytes.toString("latin1", this.#at - length - 2, this.#at - 2);
  }
}
