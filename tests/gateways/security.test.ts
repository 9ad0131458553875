/**
 * Who may enter a gateway, how much of everything one client may have, and what is never told.
 * Whatever a client does, others are served, and memory stays bounded.
 */

import { existsSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Gateway } from "../../src/gateways/gateway-options.ts";
import { COMMANDS } from "../../src/gateways/redis/commands/command-table.ts";
import { sleep } from "../../src/runtime/clock.ts";
import {
  dial,
  endAll,
  endClients,
  enter,
  MIB,
  startGateway as start,
  talk,
  until,
} from "./gateways.ts";
import { encodeRequest } from "./redis/raw-client.ts";

const PASSWORD = "correct horse battery staple";

/** Where the system does not tell, none. */
function openFiles(): number {
  return existsSync("/proc/self/fd") ? readdirSync("/proc/self/fd").length : 0;
}

describe("where it listens", () => {
  afterEach(endAll);

  test("on loopback, unless told otherwise", async () => {
    const gateway = await start();
    expect(gateway.host).toBe("127.0.0.1");
    const others = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
    for (const { address, family } of others.filter(({ internal }) => !internal)) {
      if (family !== "IPv4") continue;
      const refused = await new Promise((resolve) => {
        const socket = connect(gateway.port, address);
        socket.on("connect", () => {
          socket.destroy();
          resolve(false);
        });
        socket.on("error", () => resolve(true));
      });
      expect(refused).toBe(true);
    }
  });

  test.each(["0.0.0.0", "::", "192.168.1.7", "example.org", "127.0.0.1.example.org"])(
    "not on %s without a password",
    async (host) => {
      const error = await start({ host }).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: "SITU_CONFIG" });
      expect(String(error)).toMatch(host);
      expect(String(error)).toMatch("password");
    },
  );

  test("on any address with one", async () => {
    const gateway = await start({ host: "0.0.0.0", password: PASSWORD });
    const client = await enter(gateway);
    expect(await client.ask("PING")).toBe("-NOAUTH Authentication required.\r\n");
  });
});

describe("the password", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await start({ password: PASSWORD, metricsPort: 0 });
  });
  afterEach(endClients);
  afterAll(endAll);

  const free = new Set(["auth", "hello", "quit", "reset"]);

  test("comes before every command but those that do without", async () => {
    const client = await enter(gateway);
    for (const { name, arity, subcommands = [] } of COMMANDS) {
      if (free.has(name)) continue;
      const args = [name, ...Array.from({ length: Math.abs(arity) - 1 }, () => "1")];
      if (subcommands.length > 0) {
        const { name: sub, arity: count } = subcommands[0];
        args.splice(1, args.length, sub, ...Array.from({ length: Math.abs(count) - 2 }, () => "1"));
      }
      const reply = await client.ask(...args);
      expect(`${args.join(" ")}: ${reply}`).toBe(
        `${args.join(" ")}: -NOAUTH Authentication required.\r\n`,
      );
    }
    expect(await client.ask("AUTH", PASSWORD)).toBe("+OK\r\n");
    expect(await client.ask("DBSIZE")).toBe(":0\r\n");
  });

  test("must be the right one, for the one user there is", async () => {
    const client = await enter(gateway);
    const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    const nearly = PASSWORD.slice(0, -1);
    for (const given of ["", nearly, `${PASSWORD} `, PASSWORD.toUpperCase(), "x".repeat(9_000)]) {
      expect(await client.ask("AUTH", given)).toBe(wrong);
    }
    expect(await client.ask("AUTH", "admin", PASSWORD)).toBe(wrong);
    expect(await client.ask("HELLO", "3", "AUTH", "default", nearly)).toBe(wrong);
    expect(await client.ask("SET", "a", "1")).toBe("-NOAUTH Authentication required.\r\n");
    expect(await client.ask("AUTH", "default", PASSWORD)).toBe("+OK\r\n");
    expect(await client.ask("GET", "a")).toBe("$-1\r\n");
    expect(await client.ask("AUTH", nearly)).toBe(wrong);
    // Who is in stays in, as in Redis.
    expect(await client.ask("GET", "a")).toBe("$-1\r\n");
    expect(await client.ask("RESET")).toBe("+RESET\r\n");
    expect(await client.ask("GET", "a")).toBe("-NOAUTH Authentication required.\r\n");
  });

  test("is asked of requests in the same pipeline, in their order", async () => {
    const client = await enter(gateway);
    const replies = await client.sendAll([
      ["SET", "a", "early"],
      ["MULTI"],
      ["AUTH", PASSWORD],
      ["GET", "a"],
      ["EXEC"],
    ]);
    expect(replies.map((reply) => reply.toString())).toEqual([
      "-NOAUTH Authentication required.\r\n",
      "-NOAUTH Authentication required.\r\n",
      "+OK\r\n",
      "$-1\r\n",
      "-ERR EXEC without MULTI\r\n",
    ]);
  });

  test("those without it may send little", async () => {
    expect(await talk(gateway, "*11\r\n")).toBe(
      "-ERR Protocol error: unauthenticated multibulk length\r\n",
    );
    expect(await talk(gateway, "*1\r\n$16385\r\n")).toBe(
      "-ERR Protocol error: unauthenticated bulk length\r\n",
    );
    const client = await enter(gateway);
    expect(await client.ask("AUTH", PASSWORD)).toBe("+OK\r\n");
    expect(await client.ask("ECHO", "x".repeat(16_385))).toMatch(/^\$16385\r\n/);
  });

  test("is in nothing that anybody can read", async () => {
    const client = await enter(gateway);
    const said: string[] = [process.title, process.argv.join(" ")];
    said.push(await client.ask("AUTH", PASSWORD));
    said.push(await client.ask("AUTH", "default", PASSWORD, "more"));
    said.push(await client.ask("HELLO", "3", "AUTH", "nobody", PASSWORD));
    said.push(await client.ask("HELLO", "9", "AUTH", "default", PASSWORD));
    said.push(await client.ask("INFO", "everything"));
    said.push(await client.ask("CLIENT", "LIST"));
    said.push(await client.ask("CLIENT", "INFO"));
    said.push(await client.ask("COMMAND", "DOCS"));
    const { metricsPort } = gateway;
    for (const page of ["metrics", "healthz", "readyz"]) {
      said.push(await (await fetch(`http://127.0.0.1:${metricsPort}/${page}`)).text());
    }
    for (const text of said) expect(text).not.toContain("correct horse");
    expect(said.length).toBe(13);
  });
});

describe("how much one client may have", () => {
  afterEach(endAll);

  test("of an argument, a request and a line", async () => {
    const gateway = await start({ maxBulkBytes: 1_000, maxRequestBytes: 5_000 });
    const client = await enter(gateway);
    expect(await client.ask("SET", "a", "x".repeat(1_000))).toBe("+OK\r\n");
    const tooLong = "-ERR string exceeds maximum allowed size (1000 bytes)\r\n";
    expect(await client.ask("SET", "a", "x".repeat(1_001))).toBe(tooLong);
    const many = encodeRequest(["DEL", ...Array.from({ length: 10 }, () => "x".repeat(900))]);
    expect(await talk(gateway, many.toString())).toBe(
      "-ERR Protocol error: too big request, at most 5000 bytes are taken\r\n",
    );
    expect(await talk(gateway, "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5001\r\n")).toBe(
      "-ERR Protocol error: too big request, at most 5000 bytes are taken\r\n",
    );
    expect(await talk(gateway, "x".repeat(65_537))).toBe(
      "-ERR Protocol error: too big inline request\r\n",
    );
    expect(await talk(gateway, "*1048577\r\n")).toBe(
      "-ERR Protocol error: invalid multibulk length\r\n",
    );
    expect(await client.ask("STRLEN", "a")).toBe(":1000\r\n");
  });

  test("a value that is too long is an error of its command only", async () => {
    const gateway = await start({});
    const client = await enter(gateway);
    const tooLong = "-ERR string exceeds maximum allowed size (1048576 bytes)\r\n";
    const value = "x".repeat(2 ** 20 + 1);
    const replies = await client.sendAll([
      ["SET", "a", "1"],
      ["SET", "a", value],
      ["INCR", "a"],
      ["MSET", "b", value, "c", value],
      ["GET", "b"],
      ["MULTI"],
      ["INCR", "a"],
      ["APPEND", "a", value],
      ["EXEC"],
      ["GET", "a"],
      ["SET", "a", "x".repeat(2 ** 20)],
      ["STRLEN", "a"],
    ]);
    expect(replies.map((reply) => reply.toString())).toEqual([
      "+OK\r\n",
      tooLong,
      ":2\r\n",
      tooLong,
      "$-1\r\n",
      "+OK\r\n",
      "+QUEUED\r\n",
      tooLong,
      "-EXECABORT Transaction discarded because of previous errors.\r\n",
      "$1\r\n2\r\n",
      "+OK\r\n",
      ":1048576\r\n",
    ]);
  });

  test("of commands that MULTI queues", async () => {
    const gateway = await start({ maxPipeline: 10 });
    const client = await enter(gateway);
    expect(await client.ask("MULTI")).toBe("+OK\r\n");
    for (let i = 0; i < 10; i++) expect(await client.ask("INCR", "a")).toBe("+QUEUED\r\n");
    expect(await client.ask("INCR", "a")).toMatch(/^-ERR /);
    expect(await client.ask("EXEC")).toMatch(/^-EXECABORT /);
    expect(await client.ask("GET", "a")).toBe("$-1\r\n");
    // A pipeline without MULTI may be as long as one likes.
    const replies = await client.sendAll(Array.from({ length: 1_000 }, () => ["INCR", "a"]));
    expect(replies.at(-1)?.toString()).toBe(":1000\r\n");
  });

  test("of keys that WATCH remembers", async () => {
    const gateway = await start();
    const client = await enter(gateway);
    const watched = async (from: number): Promise<string> =>
      client.ask("WATCH", ...Array.from({ length: 5_000 }, (_, i) => `key:${from + i}`));
    expect(await watched(0)).toBe("+OK\r\n");
    expect(await watched(5_000)).toBe("+OK\r\n");
    expect(await watched(10_000)).toMatch(/^-ERR /);
    expect(await client.ask("UNWATCH")).toBe("+OK\r\n");
    expect(await watched(10_000)).toBe("+OK\r\n");
  });

  test("of connections: one too many is told so and closed, and leaves nothing behind", async () => {
    const gateway = await start({ maxClients: 2 });
    const first = await enter(gateway);
    const second = await enter(gateway);
    expect(await first.ask("PING")).toBe("+PONG\r\n");
    expect(await second.ask("PING")).toBe("+PONG\r\n");
    await talk(gateway, "");
    const before = openFiles();
    for (let i = 0; i < 50; i++) {
      expect(await talk(gateway, "")).toBe("-ERR max number of clients reached\r\n");
    }
    await until(() => openFiles() <= before + 5, "rejected connections are closed");
    second.close();
    await until(async () => {
      const third = await enter(gateway);
      const reply = await third.ask("PING").catch(() => "closed");
      return reply === "+PONG\r\n";
    }, "a place becomes free");
    expect(await first.ask("PING")).toBe("+PONG\r\n");
  });

  test("of one reply", async () => {
    const gateway = await start({ maxOutputBytes: 2 * MIB });
    const client = await enter(gateway);
    const other = await enter(gateway);
    expect(await client.ask("SET", "a", "x".repeat(MIB - 100))).toBe("+OK\r\n");
    expect((await client.send("GET", "a")).length).toBeGreaterThan(MIB - 100);
    const greedy = client.ask("MGET", "a", "a", "a", "a").catch((error: Error) => error.message);
    expect(await greedy).toMatch(/closed/);
    expect(await other.ask("PING")).toBe("+PONG\r\n");
  });
});

/** With what connections and their buffers take outside of the heap. */
function memoryBytes(): number {
  const { external, heapUsed } = process.memoryUsage();
  return external + heapUsed;
}

describe("clients that do not play along", () => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await start({ maxOutputBytes: 16 * MIB });
  });
  afterEach(endClients);
  afterAll(endAll);

  test("one that asks and never reads is not served further, and others are", async () => {
    const other = await enter(gateway);
    const value = Buffer.alloc(100_000, "x");
    expect((await other.send("SET", "a", value)).toString()).toBe("+OK\r\n");
    const slow = dial(gateway);
    slow.pause();
    const asks = 1_000;
    const before = memoryBytes();
    for (let i = 0; i < asks; i++) {
      slow.write(encodeRequest(["GET", "a"]));
      slow.write(encodeRequest(["INCR", "served"]));
      if (i % 10 === 0) await sleep(1);
    }
    let served = -1;
    await until(async () => {
      const now = Number((await other.ask("GET", "served")).split("\r\n")[1]);
      const isStill = now === served;
      served = now;
      await sleep(50);
      return isStill;
    }, "the slow one comes to a halt");
    // 100 MB were asked for: the kernel takes some, the gateway its limit.
    expect(served).toBeLessThan(asks);
    expect(memoryBytes() - before).toBeLessThan(40 * MIB);
    // When it reads at last, all is there, in order.
    let received = 0;
    slow.on("data", (chunk) => {
      received += chunk.length;
    });
    slow.resume();
    const last = `:${asks}\r\n`.length;
    await until(() => received >= asks * (value.length + 11) + last, "all replies arrive");
    expect(await other.ask("GET", "served")).toBe(`$4\r\n${asks}\r\n`);
  });

  test("one that goes on after QUIT is closed, and nothing is kept for it", async () => {
    const socket = dial(gateway, true);
    const isClosed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
    const before = memoryBytes();
    socket.write("QUIT\r\n");
    const chunk = Buffer.alloc(MIB, "PING\r\n");
    for (let i = 0; i < 50 && !socket.destroyed; i++) {
      socket.write(chunk);
      await sleep(1);
    }
    await isClosed;
    expect(memoryBytes() - before).toBeLessThan(60 * MIB);
    expect(await (await enter(gateway)).ask("PING")).toBe("+PONG\r\n");
  });

  test("one that broke the protocol is closed although it keeps its side open", async () => {
    const strict = await start({ maxClients: 1 });
    const socket = dial(strict, true);
    socket.write("*x\r\n");
    await until(async () => {
      const client = await enter(strict);
      return (await client.ask("PING").catch(() => "closed")) === "+PONG\r\n";
    }, "its place becomes free");
  });

  test("a browser gets no answer", async () => {
    const page = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET evil 1\r\n";
    expect(await talk(gateway, page)).toBe("");
    expect(await talk(gateway, "Host: 127.0.0.1\r\nSET evil 1\r\n")).toBe("");
    expect(await (await enter(gateway)).ask("GET", "evil")).toBe("$-1\r\n");
  });

  test("keys that are too long are an error, and no more", async () => {
    const client = await enter(gateway);
    const key = "k".repeat(100_000);
    for (const command of [
      ["GET", key],
      ["SET", key, "1"],
      ["DEL", key],
      ["WATCH", key],
    ]) {
      expect(await client.ask(...command)).toMatch(/^-ERR /);
    }
    expect(await client.ask("PING")).toBe("+PONG\r\n");
  });
});
