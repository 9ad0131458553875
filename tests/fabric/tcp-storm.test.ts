/** Requests over connections that stall and break at random moments: each ends once. */

import { afterEach, expect, test } from "vitest";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { Random } from "../../src/runtime/random.ts";
import { NetworkProxy } from "../helpers/fabric-proxy.ts";
import { Asked, ECHO, MANY, TestService } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

const endpoints: TcpEndpoint[] = [];
const proxies: NetworkProxy[] = [];

afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
});

test.each([1, 2, 3])("every request ends once, and with its own reply (seed %i)", async (seed) => {
  const random = new Random(seed);
  const service = new TestService();
  const node = await openNode(0, { service: service.serve });
  endpoints.push(node);
  const proxy = await NetworkProxy.start(node.address().port);
  proxies.push(proxy);
  const nodes = new Map([[0, { host: "127.0.0.1", port: proxy.port }]]);
  const client = await openClient([], { nodes, progressTimeoutMs: 80 });
  endpoints.push(client);

  const requests: Asked[] = [];
  const more = (): void => {
    const number = requests.length;
    const words = 1 + random.below(random.below(10) === 0 ? 20_000 : 10);
    const request =
      random.below(4) === 0
        ? new Asked(MANY, (out) => out.word(words))
        : new Asked(ECHO, (out) => {
            for (let i = 0; i < words; i++) out.word(number);
          });
    requests.push(request);
    client.send(0, request);
  };
  for (let step = 0; step < 120; step++) {
    for (let i = random.below(40); i > 0; i--) more();
    const what = random.below(12);
    if (what === 0) proxy.cut();
    else if (what === 1) proxy.stall();
    else if (what < 5) proxy.resume();
    if (random.below(2) === 0) await sleep(random.below(20));
  }
  proxy.resume();
  await eventually(() => requests.every(({ isOver }) => isOver));
  const counts = { replied: 0, SITU_LOST: 0 };
  for (const [number, { kind, ends, words }] of requests.entries()) {
    expect(ends.length, `seed ${seed}, request ${number}`).toBe(1);
    expect(["replied", "SITU_LOST"], `seed ${seed}`).toContain(ends[0]);
    counts[ends[0] as keyof typeof counts]++;
    if (ends[0] === "replied" && kind === ECHO) expect(words[0], `seed ${seed}`).toBe(number);
  }
  expect(client.counters.lost).toBe(counts.SITU_LOST);
  expect(client.counters.repliesReceived).toBe(counts.replied);
  expect(service.served).toBeGreaterThanOrEqual(counts.replied);
  expect(service.served).toBeLessThanOrEqual(requests.length);
  expect(counts.replied).toBeGreaterThan(0);
  await eventually(() => node.counters.connections <= 1);
});
