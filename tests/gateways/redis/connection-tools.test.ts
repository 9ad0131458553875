/** redis-cli and redis-benchmark, unmodified, as processes of their own. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import type { Gateway } from "../../../src/gateways/gateway-options.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { MIB, temporaryStores } from "../../helpers/store.ts";

const run = promisify(execFile);
const stores = temporaryStores();

async function start(password?: string): Promise<Gateway> {
  const path = stores.folder();
  const gateway = await serve({
    ...{ path, port: 0, durability: "none", memoryBytes: 64 * MIB },
    socket: join(stores.folder(), "gateway.sock"),
    ...(password === undefined ? {} : { password }),
  });
  stores.later(() => gateway.close());
  return gateway;
}

describe("redis-cli", () => {
  const ask = async (gateway: Gateway, ...args: string[]): Promise<string> => {
    const { stdout } = await run("redis-cli", ["-p", String(gateway.port), ...args]);
    return stdout.trimEnd();
  };

  test("sets and gets, in both protocols and by both doors", async () => {
    const gateway = await start();
    expect(await ask(gateway, "set", "a", "1")).toBe("OK");
    expect(await ask(gateway, "-3", "get", "a")).toBe("1");
    const { stdout } = await run("redis-cli", ["-s", gateway.socket!, "incr", "a"]);
    expect(stdout.trimEnd()).toBe("2");
    expect(await ask(gateway, "hset", "h", "f", "v")).toBe("1");
    expect(await ask(gateway, "--json", "-3", "hgetall", "h")).toBe('{"f":"v"}');
    expect(await ask(gateway, "--scan", "--pattern", "[ah]")).toMatch(/^(a\nh|h\na)$/);
    expect(await ask(gateway, "lpush", "l", "x")).toMatch(/^ERR unknown command 'lpush'/);
  });

  test("reads commands from a pipe, and sends many at once", async () => {
    const gateway = await start();
    const feed = async (args: string[], input: string): Promise<string> => {
      const running = run("redis-cli", ["-p", String(gateway.port), ...args]);
      running.child.stdin?.end(input);
      return (await running).stdout;
    };
    expect(await feed([], "multi\nset a 1\nincr a\nexec\n")).toBe("OK\nQUEUED\nQUEUED\nOK\n2\n");
    const sets = Array.from({ length: 1_000 }, (_, i) => `set k${i} ${i}\r\n`).join("");
    expect(await feed(["--pipe"], sets)).toContain("errors: 0, replies: 1000");
    expect(await ask(gateway, "dbsize")).toBe("1001");
  });

  test("gives a password, and is told if it is wrong", async () => {
    const gateway = await start("sesame");
    expect(await ask(gateway, "--no-auth-warning", "-a", "sesame", "ping")).toBe("PONG");
    expect(await ask(gateway, "ping")).toBe("NOAUTH Authentication required.");
  });
});

describe("redis-benchmark", () => {
  test.each([
    ["one request at a time", []],
    ["pipelines", ["-P", "16"]],
    ["random keys", ["-r", "1000"]],
  ])("%s", async (_, options) => {
    const gateway = await start();
    const tests = "ping,set,get,incr,sadd,hset,spop,mset";
    const args = ["-p", String(gateway.port), "-n", "2000", "-c", "10", "-t", tests, "--csv"];
    const { stdout } = await run("redis-benchmark", [...args, ...options]);
    const names = [...stdout.matchAll(/^"([^"]+)","\d/gm)].map(([, name]) => name.split(" ")[0]);
    expect(names).toEqual([
      ...["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR", "SADD", "HSET", "SPOP", "MSET"],
    ]);
    expect(stdout).not.toContain("rror");
  });
});
