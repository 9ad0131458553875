/**
 * Clients that close their sending side right behind their last request, as `printf … | nc` does: all
 * that they asked is answered, also where replies wait for the disk or for a slow reader.
 */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Gateway, GatewayOptions } from "../../src/gateways/gateway-options.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { dial, endAll, endClients, enter, startGateway } from "./gateways.ts";

/** Sends all, hangs up, and returns how much came; reading begins after `delayMs`. */
function lastWords(gateway: Gateway, text: string, delayMs = 0): Promise<string> {
  const socket = dial(gateway, true);
  const parts: Buffer[] = [];
  return new Promise((resolve) => {
    socket.on("close", () => resolve(Buffer.concat(parts).toString("latin1")));
    socket.on("end", () => socket.destroy());
    socket.end(text);
    void sleep(delayMs).then(() => socket.on("data", (chunk: Buffer) => parts.push(chunk)));
  });
}

describe.each<[string, Partial<GatewayOptions>]>([
  ["lazy", { durability: "lazy" }],
  ["sync", { durability: "sync" }],
  ["lazy, two threads", { durability: "lazy", threads: 2 }],
])("%s", (_, options) => {
  let gateway: Gateway;
  beforeAll(async () => {
    gateway = await startGateway(options);
  });
  afterEach(endClients);
  afterAll(endAll);

  test.each([1, 10, 5_000])("%d requests and a hang-up are answered", async (count) => {
    for (const [request, reply] of [
      ["PING\r\n", "+PONG\r\n"],
      ["SET a b\r\n", "+OK\r\n"],
      ["GET a\r\n", "$1\r\nb\r\n"],
    ]) {
      const received = await lastWords(gateway, request.repeat(count));
      expect(received.length).toBe(reply.length * count);
      expect(received).toBe(reply.repeat(count));
    }
  });

  test("also to one who takes its time to read", async () => {
    const client = await enter(gateway);
    const value = "v".repeat(200_000);
    expect(await client.ask("SET", "large", value)).toBe("+OK\r\n");
    const received = await lastWords(gateway, `${"GET large\r\n".repeat(60)}INCR n\r\n`, 200);
    expect(received.length).toBe(60 * (value.length + 11) + 4);
    expect(received.slice(-4)).toBe(":1\r\n");
  });

  test("and what was not complete is not carried out", async () => {
    expect(await lastWords(gateway, "SET half 1\r\n*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$1\r\n")).toBe(
      "+OK\r\n",
    );
    expect(await (await enter(gateway)).ask("GET", "half")).toBe("$1\r\n1\r\n");
  });
});
