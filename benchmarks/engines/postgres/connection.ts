// Connections to PostgreSQL. Every transaction of the workloads is one statement, prepared once,
// and commits by itself. So many of them can be in flight on one connection, in node-postgres's
// pipeline mode; what a turn of the event loop asks for leaves in one write. This is two to four
// times as fast as a pool that gives each transaction a connection of its own, as it spares the
// system calls, the switches between 64 server processes, and most conflicts.
//
// A commit that waits for the disk is another matter: what comes behind it on its connection waits,
// too. Then there are more connections, whose commits share a sync.
import { Socket } from "node:net";
import { OneWrite } from "../../harness/one-write.ts";
import { superuser } from "../../harness/postgres-server.ts";
import type { PgClient, PgModule, PgResult, PgTypes } from "./module.ts";

export interface Statement {
  readonly name: string;
  readonly text: string;
}

export type Values = readonly (string | number | boolean)[];

const serializationFailure = "40001";
const deadlockDetected = "40P01";

/** Numbers of these types in pg_type; all numbers here are exact in a double. */
const bool = 16;
const numeric = [20, 21, 23, 701];
const types: PgTypes = {
  getTypeParser(oid) {
    if (oid === bool) return isTrue;
    return numeric.includes(oid) ? Number : identity;
  },
};

export function plainClient({ Client }: PgModule, host: string): PgClient {
  return newClient(Client, host, "", false);
}

/** Connections that take turns; counts what had to be run again. */
export class Lanes {
  readonly #clients: readonly PgClient[];
  readonly #writes: readonly (OneWrite | undefined)[];
  #turn = 0;
  retries = 0;

  private constructor(clients: readonly PgClient[], writes: readonly (OneWrite | undefined)[]) {
    this.#clients = clients;
    this.#writes = writes;
  }

  static async open(
    { Client }: PgModule,
    host: string,
    { count, inFlight, options }: { count: number; inFlight: number; options: string },
  ): Promise<Lanes> {
    const sockets = Array.from({ length: count }, () => new Socket());
    const clients = sockets.map((socket) => newClient(Client, host, options, true, socket));
    await Promise.all(clients.map((client) => client.connect()));
    // One after the other needs no gathering.
    const writes = sockets.map((socket) => (inFlight > 1 ? new OneWrite(socket) : undefined));
    return new Lanes(clients, writes);
  }

  async run(statement: Statement, values: Values): Promise<PgResult> {
    const { name, text } = statement;
    const query = { name, text, values };
    for (;;) {
      const turn = this.#turn;
      this.#turn = turn + 1 === this.#clients.length ? 0 : turn + 1;
      this.#writes[turn]?.gather();
      try {
        return await this.#clients[turn].query(query);
      } catch (error) {
        if (!isConflict(error)) throw error;
        this.retries++;
      }
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.end()));
  }
}

function newClient(
  Client: PgModule["Client"],
  host: string,
  options: string,
  pipeline: boolean,
  socket?: Socket,
): PgClient {
  const stream = socket && { stream: () => socket };
  const server = { host, user: superuser, database: "postgres" };
  const client = new Client({ ...server, options, pipeline, types, ...stream });
  // The pending request rejects as well; without a listener the process would end.
  client.on("error", () => {});
  return client;
}

function isConflict(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === serializationFailure || code === deadlockDetected;
}

function isTrue(text: string): boolean {
  return text === "t";
}

function identity(text: string): string {
  return text;
}
