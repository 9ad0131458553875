/** Connection commands: as redis-server answers them, and what a password keeps out. */

import { describe, expect, test } from "vitest";
import { serve } from "../../../src/gateways/serve.ts";
import { isSecret } from "../../../src/runtime/secret.ts";
import { MIB, temporaryStores } from "../../helpers/store.ts";
import { SideBySide } from "./against-redis.ts";
import { connectionStep } from "./connection-commands.ts";
import { RawClient } from "./raw-client.ts";

const stores = temporaryStores();

async function start(password?: string): Promise<() => Promise<RawClient>> {
  const gateway = await serve({
    path: stores.folder(),
    port: 0,
    durability: "none",
    memoryBytes: 16 * MIB,
    ...(password === undefined ? {} : { password }),
  });
  stores.later(() => gateway.close());
  return async () => {
    const client = await RawClient.connect(gateway.port);
    stores.later(() => client.close());
    return client;
  };
}

describe("random commands about the connection", () => {
  test.each([2, 3] as const)("in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(connectionStep, 5_000, protocol);
  });
});

describe("a password", () => {
  const wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

  test("is asked for before anything else", async () => {
    const connect = await start("sesame");
    const client = await connect();
    const refused = "-NOAUTH Authentication required.\r\n";
    expect(await client.ask("get", "a")).toBe(refused);
    expect(await client.ask("ping")).toBe(refused);
    expect(await client.ask("multi")).toBe(refused);
    expect(await client.ask("config", "get", "requirepass")).toBe(refused);
    expect(await client.ask("auth", "other")).toBe(wrong);
    expect(await client.ask("auth", "sesame2")).toBe(wrong);
    expect(await client.ask("auth", "other", "sesame")).toBe(wrong);
    expect(await client.ask("get", "a")).toBe(refused);
    expect(await client.ask("auth", "sesame")).toBe("+OK\r\n");
    expect(await client.ask("get", "a")).toBe("$-1\r\n");
  });

  test("comes with HELLO as well, and is asked for again after RESET", async () => {
    const connect = await start("sesame");
    const client = await connect();
    expect(await client.ask("hello", "3")).toMatch(/^-NOAUTH HELLO must be called/);
    expect(await client.ask("hello", "3", "auth", "default", "x")).toBe(wrong);
    const hello = await client.ask("hello", "3", "auth", "default", "sesame", "setname", "me");
    expect(hello).toMatch(/^%7\r\n\$6\r\nserver\r\n\$5\r\nredis\r\n/);
    expect(await client.ask("client", "getname")).toBe("$2\r\nme\r\n");
    expect(await client.ask("get", "nosuch")).toBe("_\r\n");
    expect(await client.ask("reset")).toBe("+RESET\r\n");
    expect(await client.ask("get", "nosuch")).toBe("-NOAUTH Authentication required.\r\n");
  });

  test("can be set and taken away while clients are there", async () => {
    const connect = await start();
    const early = await connect();
    expect(await early.ask("auth", "x")).toMatch(/^-ERR AUTH <password> called without any/);
    expect(await early.ask("config", "set", "requirepass", "new")).toBe("+OK\r\n");
    expect(await early.ask("ping")).toBe("+PONG\r\n");
    const late = await connect();
    expect(await late.ask("ping")).toBe("-NOAUTH Authentication required.\r\n");
    expect(await late.ask("auth", "default", "new")).toBe("+OK\r\n");
    expect(await late.ask("config", "set", "requirepass", "")).toBe("+OK\r\n");
    expect(await (await connect()).ask("ping")).toBe("+PONG\r\n");
  });

  test("is compared as a whole", () => {
    expect(isSecret(Buffer.from("päss"), "päss")).toBe(true);
    for (const given of ["", "päs", "pässs", "Päss"]) {
      expect(isSecret(Buffer.from(given), "päss"), given).toBe(false);
    }
  });
});

describe("CLIENT", () => {
  test("LIST and INFO show the fields that tools read", async () => {
    const connect = await start();
    const first = await connect();
    const second = await connect();
    await second.sendAll([
      ["client", "setname", "second"],
      ["client", "setinfo", "lib-name", "raw"],
      ["client", "setinfo", "LIB-VER", "1.2"],
      ["hello", "3"],
      ["multi"],
      ["get", "a"],
    ]);
    const lines = (await first.ask("client", "list")).split("\r\n")[1].trim().split("\n");
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(
      /^id=\d+ addr=127\.0\.0\.1:\d+ laddr=127\.0\.0\.1:\d+ fd=-?\d+ name= /,
    );
    expect(lines[0]).toMatch(/ multi=-1 .* cmd=client\|list user=default redir=-1 resp=2 /);
    expect(lines[1]).toMatch(
      / name=second .* flags=x .* multi=1 .* resp=3 lib-name=raw lib-ver=1.2$/,
    );
    const id = /^id=(\d+)/.exec(lines[1])![1];
    expect(await first.ask("client", "list", "id", id)).toContain("name=second");
    expect(await first.ask("client", "info")).toContain(" cmd=client|info ");
  });

  test("SETINFO takes what Redis 7.2 takes", async () => {
    const client = await (await start())();
    expect(await client.ask("client", "setinfo", "lib-name", "a b")).toBe(
      "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n",
    );
    expect(await client.ask("client", "setinfo", "foo", "a")).toBe(
      "-ERR Unrecognized option 'foo'\r\n",
    );
  });
});

test("QUIT answers, and closes the connection", async () => {
  const client = await (await start())();
  expect(await client.ask("quit")).toBe("+OK\r\n");
  await client.closed();
});

test("RESET leaves MULTI, WATCH, the name and RESP3", async () => {
  const client = await (await start())();
  const replies = await client.sendAll([
    ["hello", "3"],
    ["client", "setname", "me"],
    ["watch", "a"],
    ["multi"],
    ["set", "a", "1"],
    ["reset"],
    ["get", "a"],
    ["client", "getname"],
    ["exec"],
  ]);
  expect(replies.slice(5).map(String)).toEqual([
    "+RESET\r\n",
    "$-1\r\n",
    "$-1\r\n",
    "-ERR EXEC without MULTI\r\n",
  ]);
});
