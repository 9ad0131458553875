/**
 * With a secret and without TLS, nobody in between can change what is said after the handshake: the
 * connection ends with a code, which is counted, and nothing of what was changed is served.
 */

import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { afterEach, expect, test } from "vitest";
import { CLIENT } from "../../src/fabric/fabric.ts";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { TLS } from "../helpers/fabric-certificates.ts";
import { RawConnection } from "../helpers/fabric-raw.ts";
import { type Asked, ECHO, echo, TestService } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

const SECRETS = { secret: "for clients", nodeSecret: "for nodes" };

type Change = (chunk: Buffer, count: number) => Buffer[];
const asIs: Change = (chunk) => [chunk];

/** One in between, who sees all chunks of both directions and may do with them what it likes. */
class Between {
  readonly seen: Buffer[] = [];
  forth: Change = asIs;
  back: Change = asIs;
  readonly #sockets: Socket[] = [];
  readonly #server: Server;

  constructor(port: number) {
    this.#server = createServer((near) => {
      const far = tcpConnect({ host: "127.0.0.1", port, noDelay: true });
      near.setNoDelay(true);
      let forth = 0;
      let back = 0;
      near.on("data", (chunk) => {
        this.seen.push(chunk);
        for (const each of this.forth(chunk, ++forth)) far.write(each);
      });
      far.on("data", (chunk) => {
        for (const each of this.back(chunk, ++back)) near.write(each);
      });
      for (const [one, other] of [
        [near, far],
        [far, near],
      ]) {
        this.#sockets.push(one);
        one.on("error", () => {});
        one.on("close", () => other.destroy());
      }
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as { port: number }).port;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

const endpoints: TcpEndpoint[] = [];
const between: Between[] = [];

afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
  for (const each of between.splice(0)) each.close();
});

interface Trio {
  readonly node: TcpEndpoint;
  readonly client: TcpEndpoint;
  readonly middle: Between;
  readonly service: TestService;
}

/** A client, or a node, that reaches a node by way of one in between. */
async function trio(self = CLIENT, options: object = SECRETS): Promise<Trio> {
  const service = new TestService();
  const node = await openNode(0, { service: service.serve, ...options });
  endpoints.push(node);
  const middle = new Between(node.address().port);
  between.push(middle);
  const nodes = new Map([[0, { host: "127.0.0.1", port: await middle.listen() }]]);
  const client = await openClient([], { self, nodes, ...options });
  endpoints.push(client);
  return { node, client, middle, service };
}

async function ask(from: TcpEndpoint, request: Asked): Promise<string[]> {
  from.send(0, request);
  await eventually(() => request.isOver);
  return request.ends;
}

/** HELLO and PROOF, CHALLENGE and READY: what is later is in batches. */
const HANDSHAKE = 2;

function later(change: (chunk: Buffer) => Buffer[]): Change {
  return (chunk, count) => (count <= HANDSHAKE ? [chunk] : change(chunk));
}

function flipped(chunk: Buffer, at: number): Buffer {
  const changed = Buffer.from(chunk);
  changed[at] ^= 1;
  return changed;
}

const CHANGES: [string, Change][] = [
  ["a request that was changed", later((chunk) => [flipped(chunk, chunk.length - 8)])],
  ["a tag that was changed", later((chunk) => [flipped(chunk, 6)])],
  ["a length that was changed", later((chunk) => [flipped(chunk, 3)])],
  ["a request that comes twice", later((chunk) => [chunk, chunk])],
  ["something added", later((chunk) => [Buffer.alloc(40, 7), chunk])],
  ["frames without a tag", later((chunk) => [chunk.subarray(20)])],
];

test.each([CLIENT, 1])("nothing is changed: everything arrives (from %i)", async (self) => {
  const { client, middle } = await trio(self);
  for (let i = 0; i < 20; i++) expect(await ask(client, echo(i))).toEqual(["replied"]);
  const long = echo(...Array.from({ length: 40_000 }, (_, i) => i));
  expect(await ask(client, long)).toEqual(["replied"]);
  expect(long.words).toHaveLength(40_000);
  expect(middle.seen.length).toBeGreaterThan(20);
});

test.each(CHANGES)("to the node: %s", async (_what, change) => {
  const { node, client, middle } = await trio();
  expect(await ask(client, echo(1))).toEqual(["replied"]);
  const { requestsServed } = node.counters;
  middle.forth = change;
  const ends = await ask(client, echo(2));
  await eventually(() => (node.counters.refused.SITU_SECRET ?? 0) > 0);
  // What came before the change was served; the connection was lost with it or after it.
  expect(["SITU_LOST", "replied"]).toContain(ends[0]);
  expect(node.counters.requestsServed - requestsServed).toBeLessThanOrEqual(1);
  middle.forth = asIs;
  expect(await ask(client, echo(3))).toEqual(["replied"]);
  expect(node.counters.refused).toEqual({ SITU_SECRET: 1 });
});

test.each(CHANGES)("back from the node: %s", async (_what, change) => {
  const { client, middle } = await trio();
  expect(await ask(client, echo(1))).toEqual(["replied"]);
  middle.back = change;
  const request = echo(2);
  const ends = await ask(client, request);
  await eventually(() => (client.counters.refused.SITU_SECRET ?? 0) > 0);
  if (ends[0] === "replied") expect(request.words[0]).toBe(2);
  else expect(ends).toEqual(["SITU_LOST"]);
  middle.back = asIs;
  expect(await ask(client, echo(3))).toEqual(["replied"]);
});

test("what was said on one connection is worth nothing on another", async () => {
  const { node, client, middle } = await trio();
  await ask(client, echo(1));
  const batch = middle.seen[HANDSHAKE];
  expect(batch).toBeDefined();
  const other = new RawConnection(node.address().port);
  try {
    await other.handshake({ secret: SECRETS.secret });
    other.socket.write(batch);
    await eventually(() => other.isClosed);
    expect(node.counters.refused).toEqual({ SITU_SECRET: 1 });
  } finally {
    other.socket.destroy();
  }
});

test("one who knows the secret and sends frames without tags", async () => {
  const { node } = await trio();
  const bad = new RawConnection(node.address().port);
  try {
    await bad.handshake({ secret: SECRETS.secret });
    bad.frame(ECHO, 1, (out) => out.word(5));
    await eventually(() => bad.isClosed);
    expect(node.counters.refused).toEqual({ SITU_SECRET: 1 });
    expect(node.counters.requestsServed).toBe(0);
  } finally {
    bad.socket.destroy();
  }
});

test("a role, a name or a version that is changed on the way", async () => {
  // Magic and version are the words 4 and 5 of HELLO; then, with its length, the name; role and node.
  for (const word of [7, 8, 10, 14]) {
    const { client, node, middle } = await trio(1);
    middle.forth = (chunk, count) => [count === 1 ? flipped(chunk, word * 4) : chunk];
    const ends = await ask(client, echo(1));
    expect(["SITU_SECRET", "SITU_CONFIG", "SITU_PROTOCOL"]).toContain(ends[0]);
    expect(node.counters.connections).toBe(0);
    expect(node.counters.requestsServed).toBe(0);
  }
});

test("a proof is not passed on from one TLS session to another", async () => {
  // The one in between has a certificate that the client trusts: it ends one session and begins another.
  const { createServer: createTls, connect: connectTls } = await import("node:tls");
  const node = await openNode(0, { tls: TLS, ...SECRETS, service: new TestService().serve });
  endpoints.push(node);
  const sockets: Socket[] = [];
  const server = createTls(TLS, (near) => {
    const far = connectTls({ ...TLS, host: "127.0.0.1", port: node.address().port });
    near.pipe(far);
    far.pipe(near);
    for (const socket of [near, far]) {
      sockets.push(socket);
      socket.on("error", () => {});
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    const { port } = server.address() as { port: number };
    const nodes = new Map([[0, { host: "127.0.0.1", port }]]);
    const client = await openClient([], { nodes, tls: TLS, ...SECRETS });
    endpoints.push(client);
    expect(await ask(client, echo(1))).toEqual(["SITU_SECRET"]);
    expect(node.counters.refused.SITU_SECRET).toBeGreaterThan(0);
    const direct = await openClient([node], { tls: TLS, ...SECRETS });
    endpoints.push(direct);
    expect(await ask(direct, echo(1))).toEqual(["replied"]);
  } finally {
    for (const socket of sockets) socket.destroy();
    server.close();
  }
});
