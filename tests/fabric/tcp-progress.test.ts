/** Connections that stall, break and come again (FaSST §4.3: a lost reply is found by its absence). */

import { afterEach, describe, expect, test } from "vitest";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import type { TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { sleep, sleepSync, turn } from "../../src/runtime/clock.ts";
import { NetworkProxy } from "../helpers/fabric-proxy.ts";
import { Asked, DEFER, echo, sendAll, TestService } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

const TIMEOUT_MS = 200;
const endpoints: TcpEndpoint[] = [];
const proxies: NetworkProxy[] = [];

afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
});

async function startNode(options: Partial<TcpOptions> = {}): Promise<TcpEndpoint> {
  const node = await openNode(0, options);
  endpoints.push(node);
  return node;
}

/** A client that reaches node 0 at the end of a stretch of network. */
async function setUp() {
  const service = new TestService();
  const node = await startNode({ service: service.serve });
  const proxy = await NetworkProxy.start(node.address().port);
  proxies.push(proxy);
  const nodes = new Map([[0, { host: "127.0.0.1", port: proxy.port }]]);
  const client = await openClient([], { nodes, progressTimeoutMs: TIMEOUT_MS });
  endpoints.push(client);
  const ask = async (request: Asked): Promise<Asked> => {
    client.send(0, request);
    await eventually(() => request.isOver);
    return request;
  };
  expect((await ask(echo(1))).ends).toEqual(["replied"]);
  return { service, node, proxy, client, ask };
}

describe("a connection that says nothing", () => {
  test("has lost its requests; they are not sent again, and the next finds a new one", async () => {
    const { service, node, proxy, client, ask } = await setUp();
    const requests = [new Asked(DEFER), new Asked(DEFER)];
    sendAll(client, 0, requests);
    await eventually(() => service.tickets.length === 2);
    proxy.stall();
    await eventually(() => requests.every(({ isOver }) => isOver));
    expect(requests.map(({ ends }) => ends.join())).toEqual(["SITU_LOST", "SITU_LOST"]);
    expect(client.counters.lost).toBe(2);
    expect(client.isConnected(0)).toBe(false);
    // The node replies, too late, and to nobody.
    for (const ticket of service.tickets) ticket.reply((out) => out.word(1));
    proxy.resume();
    expect((await ask(echo(2))).words[0]).toBe(2);
    expect(service.served).toBe(4);
    expect(requests.every(({ ends }) => ends.length === 1)).toBe(true);
    await eventually(() => node.counters.connections === 1);
  });

  test("is kept while the node is there, however long the reply takes", async () => {
    const { service, proxy, client } = await setUp();
    const request = new Asked(DEFER);
    client.send(0, request);
    await sleep(5 * TIMEOUT_MS);
    expect(request.ends).toEqual([]);
    service.tickets[0].reply((out) => out.word(6));
    await eventually(() => request.isOver);
    expect(request.words[0]).toBe(6);
    expect(proxy.connections).toBe(1);
  });

  test("is kept while there is nothing to wait for", async () => {
    const { proxy, ask } = await setUp();
    await sleep(3 * TIMEOUT_MS);
    expect((await ask(echo(2))).words[0]).toBe(2);
    expect(proxy.connections).toBe(1);
  });

  test("is not given up because this process was stopped", async () => {
    const { service, client, proxy } = await setUp();
    const request = new Asked(DEFER);
    client.send(0, request);
    await eventually(() => service.tickets.length === 1);
    // Nothing is read, no timer fires, and then all that is late comes at once; many times.
    for (let i = 0; i < 30; i++) {
      sleepSync(TIMEOUT_MS / 4);
      await turn();
    }
    service.tickets[0].reply((out) => out.word(6));
    await eventually(() => request.isOver);
    expect(request.ends).toEqual(["replied"]);
    expect(proxy.connections).toBe(1);
  });

  test("is given up before the handshake is over, too", async () => {
    const { proxy, client, ask } = await setUp();
    proxy.cut();
    await eventually(() => !client.isConnected(0));
    proxy.stall();
    expect((await ask(echo(2))).ends).toEqual(["SITU_LOST"]);
    proxy.resume();
    expect((await ask(echo(3))).ends).toEqual(["replied"]);
  });
});

describe("a connection that breaks", () => {
  test("loses what was under way at once, and comes again", async () => {
    const { service, proxy, client, ask } = await setUp();
    for (let round = 1; round <= 5; round++) {
      const request = new Asked(DEFER);
      client.send(0, request);
      await eventually(() => service.tickets.length === round);
      proxy.cut();
      await eventually(() => request.isOver);
      expect(request.ends).toEqual(["SITU_LOST"]);
      expect((await ask(echo(round))).words[0]).toBe(round);
    }
    expect(proxy.connections).toBe(6);
  });

  test("requests wait for the next one; those that wait too long are lost", async () => {
    const { service, proxy, client, ask } = await setUp();
    proxy.isClosed = true;
    proxy.cut();
    await eventually(() => !client.isConnected(0));
    const served = service.served;
    expect((await ask(echo(2))).ends).toEqual(["SITU_LOST"]);
    expect(proxy.connections).toBeGreaterThan(1);
    const waiting = Array.from({ length: 100 }, (_, i) => echo(i));
    sendAll(client, 0, waiting);
    proxy.isClosed = false;
    await eventually(() => waiting.every(({ isOver }) => isOver));
    // The time of a pause between two attempts is a matter of luck: most often they get through.
    const replied = waiting.filter(({ ends }) => ends[0] === "replied").length;
    expect(service.served).toBe(served + replied);
    expect(waiting.every(({ ends }) => ends.length === 1)).toBe(true);
    await eventually(() => client.isConnected(0) || proxy.connections > 1);
  });

  test("a node that comes back is known as another instance", async () => {
    const { node, proxy, client, ask } = await setUp();
    const before = client.instanceOf(0);
    expect(before).toBe(node.instance);
    proxy.cut();
    await ask(echo(1));
    expect(client.instanceOf(0)).toBe(before);
    await node.close();
    const again = await startNode({ service: new TestService().serve });
    proxy.targetPort = again.address().port;
    const ends: string[] = [];
    while (ends.at(-1) !== "replied") ends.push(...(await ask(echo(2))).ends);
    expect(client.instanceOf(0)).toBe(again.instance);
    expect(again.instance).not.toBe(before);
  });

  test("nodes that move, and nodes that are no more", async () => {
    const { client, ask, service } = await setUp();
    const other = await startNode({ service: service.serve });
    const request = new Asked(DEFER);
    client.send(0, request);
    await eventually(() => service.tickets.length === 1);
    client.setNodes(new Map());
    await eventually(() => request.isOver);
    // It may have been served, and nobody will hear of it; what is sent now leaves for nowhere.
    expect(request.ends).toEqual(["SITU_LOST"]);
    expect((await ask(echo(1))).ends).toEqual(["SITU_UNREACHABLE"]);
    client.setNodes(new Map([[0, { host: "127.0.0.1", port: other.address().port }]]));
    expect((await ask(echo(1))).ends).toEqual(["replied"]);
    expect(client.instanceOf(0)).toBe(other.instance);
  });

  test("to listen where somebody else does is an error of the one who opens", async () => {
    const node = await startNode();
    const { port } = node.address();
    await expect(openNode(1, { listen: { host: "127.0.0.1", port } })).rejects.toThrow(
      "EADDRINUSE",
    );
  });
});
