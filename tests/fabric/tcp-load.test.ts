/**
 * More than a node can take: clients that do not read, silent ones, crowds. Its memory stays
 * bounded, others are served, and who is refused is told and counted.
 */

import { execSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import type { TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { MAX_IN_FLIGHT, MAX_UNREAD_BYTES } from "../../src/runtime/limits.ts";
import { Crowd, handshakeLines } from "../helpers/fabric-crowd.ts";
import { RawConnection } from "../helpers/fabric-raw.ts";
import { type Asked, DEFER, ECHO, echo, MANY, TestService } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

const endpoints: TcpEndpoint[] = [];
const raws: RawConnection[] = [];
const crowds: Crowd[] = [];

afterEach(async () => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
  await Promise.all(crowds.splice(0).map((crowd) => crowd.leave()));
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
});

async function setUp(options: Partial<TcpOptions> = {}) {
  const service = new TestService();
  const node = await openNode(0, { service: service.serve, ...options });
  endpoints.push(node);
  const client = await openClient([node]);
  endpoints.push(client);
  const ask = async (request: Asked): Promise<Asked> => {
    client.send(0, request);
    await eventually(() => request.isOver);
    return request;
  };
  expect((await ask(echo(1))).ends).toEqual(["replied"]);
  return { node, client, service, ask };
}

function raw(to: TcpEndpoint): RawConnection {
  const connection = new RawConnection(to.address().port);
  raws.push(connection);
  return connection;
}

function crowd(to: TcpEndpoint, count: number, says: readonly Buffer[] = []): Crowd {
  const made = new Crowd(to.address().port, count, says);
  crowds.push(made);
  return made;
}

/** Until a number has not changed for a while. */
async function atRest(value: () => number): Promise<number> {
  for (;;) {
    const before = value();
    await sleep(100);
    if (value() === before) return before;
  }
}

describe("a client that sends and never reads", () => {
  test("is not read from, until it reads; then it gets everything", async () => {
    const { node, service, ask } = await setUp();
    const greedy = raw(node);
    await greedy.handshake();
    greedy.socket.pause();
    const replyWords = 16 * 1024;
    const count = 2_000;
    for (let id = 0; id < count; id++) greedy.frame(MANY, id, (out) => out.word(replyWords));
    const before = service.served;
    await eventually(() => service.served > before);
    const served = await atRest(() => service.served);
    // What the kernel buffers for a socket comes on top: some megabytes.
    const kernelBytes = 16 * 2 ** 20;
    expect((served - before) * replyWords * 4).toBeLessThan(MAX_UNREAD_BYTES + kernelBytes);
    expect((await ask(echo(2))).words[0]).toBe(2);
    greedy.socket.resume();
    await greedy.until(2 + count);
    expect(greedy.got.slice(2).map(({ id }) => id)).toEqual(
      Array.from({ length: count }, (_, id) => id),
    );
  });

  test("what waits for it is not overwritten by what comes after", async () => {
    const { node } = await setUp();
    const slow = raw(node);
    await slow.handshake();
    slow.socket.pause();
    const count = 300;
    const words = new Int32Array(15_000);
    for (let id = 0; id < count; id++) {
      slow.frame(ECHO, id, (out) => out.words(words.fill(id), 0, words.length));
      // Each in a turn of its own, so that the replies leave one by one.
      await sleep(0);
    }
    slow.socket.resume();
    await slow.until(2 + count);
    for (const { id, bytes } of slow.got.slice(2)) {
      const body = new Int32Array(bytes.buffer, 16);
      expect(body.length).toBe(words.length);
      expect(body.every((word) => word === id)).toBe(true);
    }
  });

  test("a handful of bytes cannot ask for a mountain of replies at once", async () => {
    const { node, service } = await setUp();
    const greedy = raw(node);
    await greedy.handshake();
    greedy.socket.pause();
    // All of them fit one chunk: reading stops in the middle of it.
    greedy.socket.cork();
    for (let id = 0; id < 1_000; id++) greedy.frame(MANY, id, (out) => out.word(250_000));
    greedy.socket.uncork();
    const before = service.served;
    await eventually(() => service.served > before);
    expect((await atRest(() => service.served)) - before).toBeLessThan(40);
    greedy.socket.destroy();
    await eventually(() => node.counters.connections === 1);
  });

  test("replies that will come later are bounded too", async () => {
    const { node, service, ask } = await setUp();
    const greedy = raw(node);
    await greedy.handshake();
    const count = 3 * MAX_IN_FLIGHT;
    for (let id = 0; id < count; id++) greedy.frame(DEFER, id);
    await eventually(() => service.tickets.length > MAX_IN_FLIGHT);
    expect(await atRest(() => service.tickets.length)).toBe(MAX_IN_FLIGHT + 1);
    expect((await ask(echo(2))).words[0]).toBe(2);
    for (let replied = 0; replied < count; replied++) {
      await eventually(() => service.tickets.length > replied);
      service.tickets[replied].reply((out) => out.word(replied));
    }
    await greedy.until(2 + count);
    expect(greedy.got.length).toBe(2 + count);
  });

  test("is cut off when the replies that came later are too many", async () => {
    const { node, service, ask } = await setUp();
    const greedy = raw(node);
    await greedy.handshake();
    greedy.socket.pause();
    for (let id = 0; id < 200; id++) greedy.frame(DEFER, id);
    await eventually(() => service.tickets.length === 200);
    const megabyte = new Int32Array(2 ** 18);
    for (const ticket of service.tickets) {
      ticket.reply((out) => out.words(megabyte, 0, megabyte.length));
    }
    expect(service.tickets.some(({ isWanted }) => isWanted)).toBe(false);
    expect(node.counters.refused).toEqual({ SITU_OVERLOADED: 1 });
    expect(node.counters.overloaded).toBe(1);
    expect((await ask(echo(2))).words[0]).toBe(2);
  });

  test("one that vanishes leaves nothing behind", async () => {
    const gone: number[] = [];
    const { node, service } = await setUp({ onConnectionClosed: (id) => gone.push(id) });
    const greedy = raw(node);
    await greedy.handshake();
    for (let id = 0; id < 100; id++) greedy.frame(DEFER, id);
    await eventually(() => service.tickets.length === 100);
    greedy.socket.destroy();
    await eventually(() => service.tickets.every(({ isWanted }) => !isWanted));
    for (const ticket of service.tickets) ticket.reply((out) => out.word(1));
    expect(gone.length).toBe(1);
  });
});

describe("those who take their time", () => {
  test("a handshake that does not come is given up, and counted", async () => {
    const { node, ask } = await setUp({ handshakeTimeoutMs: 300 });
    const silent = Array.from({ length: 50 }, () => raw(node));
    const slow = raw(node);
    const [hello] = handshakeLines();
    let sent = 0;
    const drip = setInterval(() => {
      if (!slow.isClosed) slow.socket.write(hello.subarray(sent, ++sent));
    }, 20);
    try {
      await eventually(() => [...silent, slow].every(({ isClosed }) => isClosed));
    } finally {
      clearInterval(drip);
    }
    expect(silent[0].refused).toBe("SITU_TIMEOUT");
    expect(node.counters.refused).toEqual({ SITU_TIMEOUT: 51 });
    expect(node.counters.connections).toBe(1);
    expect((await ask(echo(3))).ends).toEqual(["replied"]);
  });

  test("a frame that comes byte by byte is served", async () => {
    const { node } = await setUp({ handshakeTimeoutMs: 300 });
    const slow = raw(node);
    await slow.handshake();
    const scribe = raw(node);
    const bytes = scribe.frame(ECHO, 8, (out) => out.word(3));
    for (let i = 0; i < bytes.length; i++) {
      slow.socket.write(bytes.subarray(i, i + 1));
      await sleep(i % 8 === 0 ? 60 : 0);
    }
    await slow.until(3);
    expect(slow.got[2].id).toBe(8);
  });
});

describe("crowds", () => {
  const descriptors = Number(execSync("ulimit -n", { encoding: "utf8", shell: "/bin/sh" }));
  const many = Math.min(10_000, (Number.isNaN(descriptors) ? 10_000 : descriptors) - 500);

  test(`${many} connections are served, and others beside them`, async () => {
    const { node, ask } = await setUp({ maxConnections: many + 100 });
    const all = crowd(node, many, handshakeLines());
    const ends: string[] = [];
    while (all.report.ready < many && all.report.closed === 0) {
      ends.push(...(await ask(echo(1))).ends);
    }
    expect(all.report).toMatchObject({ ready: many, closed: 0 });
    expect(new Set(ends)).toEqual(new Set(["replied"]));
    expect(node.counters.connections).toBe(many + 1);
    await all.leave();
    await eventually(() => node.counters.connections === 1);
    expect(node.counters.overloaded).toBe(0);
  });

  test(`${many} connections where few are allowed: refused, counted, others see nothing`, async () => {
    const { node, ask } = await setUp({ maxConnections: 40 });
    const all = crowd(node, many, handshakeLines());
    const ends: string[] = [];
    while (all.report.ready + all.report.closed < many) ends.push(...(await ask(echo(1))).ends);
    expect(all.report.ready).toBe(39);
    expect(new Set(ends)).toEqual(new Set(["replied"]));
    expect(node.counters.overloaded).toBe(many - 39);
    expect(node.counters.connections).toBe(40);
    // There is room again when they have gone.
    await all.leave();
    await eventually(() => node.counters.connections === 1);
    const late = raw(node);
    await late.handshake();
    expect(late.got.length).toBe(2);
  });

  test("one too many is told so", async () => {
    const { node } = await setUp({ maxConnections: 1 });
    const second = await openClient([node]);
    endpoints.push(second);
    const request = echo(1);
    second.send(0, request);
    await eventually(() => request.isOver);
    expect(request.ends).toEqual(["SITU_OVERLOADED"]);
    expect(request.error?.retryable).toBe(true);
    expect(node.counters.refused).toEqual({ SITU_OVERLOADED: 1 });
  });

  test.skipIf(!(descriptors <= 100_000))(
    "no file descriptors left: the node stays up",
    async () => {
      const { node, ask } = await setUp();
      const all = crowd(node, 0);
      await all.until(() => true);
      const held: number[] = [];
      const late = crowd(node, 100);
      try {
        try {
          for (;;) held.push(openSync("/dev/null", "r"));
        } catch (error) {
          expect((error as NodeJS.ErrnoException).code).toBe("EMFILE");
        }
        await late.until(({ connected, closed }) => connected + closed >= 100);
        expect((await ask(echo(1))).ends).toEqual(["replied"]);
      } finally {
        for (const descriptor of held) closeSync(descriptor);
      }
      const after = raw(node);
      await after.handshake();
      expect(after.got.length).toBe(2);
      expect((await ask(echo(2))).ends).toEqual(["replied"]);
    },
  );
});
