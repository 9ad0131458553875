/** Gateways of several threads: one store behind them, and one set of rules for all of their clients. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { open } from "../../src/database/open.ts";
import { REDIS_TABLES, RedisKeys } from "../../src/gateways/redis/tables.ts";
import { dial, endAll, enter, newFolder, startGateway, until } from "./gateways.ts";
import type { RawClient } from "./redis/raw-client.ts";

afterEach(endAll);

/** The clients of the thread that serves this one: by number. */
async function neighbours(client: RawClient): Promise<number[]> {
  const list = await client.ask("CLIENT", "LIST");
  return [...list.matchAll(/^(?:\$\d+\r\n)?id=(\d+) /gm)].map(([, id]) => Number(id));
}

async function settle(client: RawClient, name: string, value: string): Promise<void> {
  await until(async () => {
    const reply = await client.ask("CONFIG", "GET", name);
    return reply.endsWith(`\r\n${value}\r\n`);
  }, `${name} is ${value}`);
}

describe.each([2, 3])("%d threads", (threads) => {
  test("share the clients evenly, each with a number of its own", async () => {
    const gateway = await startGateway({ threads });
    expect(gateway.threads).toBe(threads);
    const clients = await Promise.all(Array.from({ length: 4 * threads }, () => enter(gateway)));
    const ids = await Promise.all(clients.map((client) => client.ask("CLIENT", "ID")));
    expect(new Set(ids).size).toBe(clients.length);
    const lists = await Promise.all(clients.map(neighbours));
    for (const list of lists) expect(list.length).toBe(4);
    expect(new Set(lists.map((list) => list.join())).size).toBe(threads);
    // Those that leave make room where they were.
    const [leaving] = lists;
    for (let i = 0; i < clients.length; i++) {
      if (leaving.includes(Number(ids[i].slice(1)))) clients[i].close();
    }
    const staying = clients.filter((_, i) => !leaving.includes(Number(ids[i].slice(1))));
    await until(async () => {
      const newcomer = await enter(gateway);
      const list = await neighbours(newcomer);
      const others = await Promise.all(staying.map((client) => client.ask("CLIENT", "ID")));
      return !others.some((id) => list.includes(Number(id.slice(1))));
    }, "a newcomer goes where there is room");
  });

  test("have the same settings, whichever was told", async () => {
    const gateway = await startGateway({ threads });
    const clients = await Promise.all(Array.from({ length: threads }, () => enter(gateway)));
    for (const [i, client] of clients.entries()) {
      const value = String(100 + i);
      const reply = await client.ask("CONFIG", "SET", "hash-max-listpack-entries", value);
      expect(reply).toBe("+OK\r\n");
      for (const other of clients) await settle(other, "hash-max-listpack-entries", value);
    }
    expect(await clients[0].ask("CONFIG", "SET", "requirepass", "secret")).toBe("+OK\r\n");
    for (const client of clients) await settle(client, "requirepass", "secret");
    for (let i = 0; i < threads; i++) {
      const late = await enter(gateway);
      expect(await late.ask("PING")).toBe("-NOAUTH Authentication required.\r\n");
      expect(await late.ask("AUTH", "secret")).toBe("+OK\r\n");
    }
    expect(await clients[1].ask("CONFIG", "SET", "requirepass", "")).toBe("+OK\r\n");
    for (const client of clients) await settle(client, "requirepass", "");
    const max = String(2 * threads);
    expect(await clients[0].ask("CONFIG", "SET", "maxclients", max)).toBe("+OK\r\n");
    await until(async () => {
      const client = await enter(gateway);
      const reply = await client.ask("PING").catch(() => "closed");
      return reply.startsWith("-ERR max number of clients") || reply === "closed";
    }, "the new limit of clients holds");
  });

  test("close cleanly, and leave all that was said in the store", async () => {
    const path = join(newFolder(), "store");
    const gateway = await startGateway({ path, threads });
    const { port } = gateway;
    const clients = await Promise.all(Array.from({ length: 3 * threads }, () => enter(gateway)));
    for (const [i, client] of clients.entries()) await client.ask("SET", `key:${i}`, `value:${i}`);
    const silent = dial(gateway, true);
    await once(silent, "connect");
    const closed = Promise.all(clients.map((client) => client.closed()));
    await gateway.close();
    await closed;
    await gateway.close();
    await expect(enter(port)).rejects.toThrow();
    const db = await open({ path, tables: REDIS_TABLES });
    for (let i = 0; i < clients.length; i++) {
      const row = db.get(RedisKeys, Buffer.from(`key:${i}`));
      expect(Buffer.from(row!.value).toString()).toBe(`value:${i}`);
    }
    await db.close();
    const again = await startGateway({ path, threads, port });
    expect(again.port).toBe(port);
    expect(await (await enter(again)).ask("GET", "key:1")).toBe("$7\r\nvalue:1\r\n");
  });
});

describe("two threads", () => {
  const THREADS = 2;

  test("serve one store", async () => {
    const gateway = await startGateway({ threads: THREADS });
    const clients = await Promise.all(Array.from({ length: 2 * THREADS }, () => enter(gateway)));
    for (const [i, client] of clients.entries()) {
      expect(await client.ask("SET", `key:${i}`, `value:${i}`)).toBe("+OK\r\n");
      for (const other of clients) {
        expect(await other.ask("GET", `key:${i}`)).toBe(`$7\r\nvalue:${i}\r\n`);
      }
    }
    const rounds = 200;
    await Promise.all(
      clients.map((client) =>
        client.sendAll(Array.from({ length: rounds }, () => ["INCR", "counter"])),
      ),
    );
    const sum = String(rounds * clients.length);
    for (const client of clients) {
      expect(await client.ask("GET", "counter")).toBe(`$${sum.length}\r\n${sum}\r\n`);
      expect(await client.ask("DBSIZE")).toBe(`:${clients.length + 1}\r\n`);
    }
  });

  test("see each other's changes of what is watched", async () => {
    const gateway = await startGateway({ threads: THREADS });
    const clients = await Promise.all(Array.from({ length: THREADS }, () => enter(gateway)));
    for (const client of clients) {
      for (const other of clients.filter((each) => each !== client)) {
        expect(await client.ask("WATCH", "watched")).toBe("+OK\r\n");
        expect(await other.ask("INCR", "watched")).toMatch(/^:/);
        expect(await client.ask("MULTI")).toBe("+OK\r\n");
        expect(await client.ask("SET", "watched", "0")).toBe("+QUEUED\r\n");
        expect(await client.ask("EXEC")).toBe("*-1\r\n");
      }
    }
  });

  test("reply to GET once, while others write the key", async () => {
    const gateway = await startGateway({ threads: THREADS });
    const clients = await Promise.all(Array.from({ length: 2 * THREADS }, () => enter(gateway)));
    const values = clients.map((_, i) => String(i).repeat(50 + 400 * i));
    await clients[0].ask("SET", "hot", values[0]);
    const replies = await Promise.all(
      clients.map(async (client, i) => {
        const seen: string[] = [];
        for (let round = 0; round < 20; round++) {
          const requests = Array.from({ length: 100 }, (_, each) =>
            each % 4 === 0 && i % 2 === 0 ? ["SET", "hot", values[i]] : ["GET", "hot"],
          );
          const answers = await client.sendAll([...requests, ["ECHO", `${i}:${round}`]]);
          expect(answers.at(-1)?.toString()).toMatch(`${i}:${round}`);
          for (const [at, request] of requests.entries()) {
            if (request[0] === "GET") seen.push(answers[at].toString());
            else expect(answers[at].toString()).toBe("+OK\r\n");
          }
        }
        return seen;
      }),
    );
    const possible = new Set(values.map((value) => `$${value.length}\r\n${value}\r\n`));
    for (const reply of replies.flat()) expect(possible.has(reply)).toBe(true);
  });
});

test("a client that comes before the store is open is served when it is", async () => {
  const first = await startGateway({ threads: 2 });
  const { port } = first;
  await first.close();
  const starting = startGateway({ threads: 2, port });
  let early: RawClient | undefined;
  await until(async () => {
    early = await enter(port).catch(() => undefined);
    return early !== undefined;
  }, "another process is listening");
  const reply = early!.ask("PING");
  await starting;
  expect(await reply).toBe("+PONG\r\n");
});

describe.each([1, 2])("a Unix socket, with %d threads", (threads) => {
  test("is a door as good as the port, for this user only", async () => {
    const socket = join(newFolder(), "situ.sock");
    const gateway = await startGateway({ threads, socket });
    expect(gateway.socket).toBe(socket);
    expect(statSync(socket).mode & 0o077).toBe(0);
    const inside = await enter(socket);
    const outside = await enter(gateway);
    expect(await inside.ask("SET", "a", "1")).toBe("+OK\r\n");
    expect(await outside.ask("GET", "a")).toBe("$1\r\n1\r\n");
    expect(await inside.ask("CLIENT", "INFO")).toMatch(`addr=${socket}:0`);
    await gateway.close();
    expect(existsSync(socket)).toBe(false);
  });
});

describe("the path of a Unix socket", () => {
  test("that a dead gateway has left is replaced, one that answers is not", async () => {
    const socket = join(newFolder(), "situ.sock");
    const program = `require("node:net").createServer().listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const child = spawn(process.execPath, ["-e", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "exit");
    await once(child.stdout, "data");
    await expect(startGateway({ socket })).rejects.toMatchObject({ code: "SITU_IN_USE" });
    child.kill("SIGKILL");
    await ended;
    expect(existsSync(socket)).toBe(true);
    await startGateway({ socket });
    expect(await (await enter(socket)).ask("PING")).toBe("+PONG\r\n");
  });

  test("does not take the place of a file", async () => {
    const socket = join(newFolder(), "precious");
    writeFileSync(socket, "data");
    await expect(startGateway({ socket })).rejects.toMatchObject({ code: "SITU_IN_USE" });
    expect(statSync(socket).size).toBe(4);
  });
});

test("a port that is taken is an error that says so", async () => {
  const { port } = await startGateway();
  const error = await startGateway({ port }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "SITU_IN_USE" });
  expect(String(error)).toMatch(String(port));
});
