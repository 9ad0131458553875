/**
 * What nobody should send to a node. Each time: that connection is closed with a code, which is
 * counted; the node stays up, and another client of it sees nothing.
 */

import { createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FrameWriter } from "../../src/fabric/frames.ts";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import {
  CHALLENGE,
  HELLO,
  type Hello,
  PROOF,
  PROTOCOL_VERSION,
  READY,
  writeChallenge,
  writeHello,
} from "../../src/fabric/tcp/handshake.ts";
import type { TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { FLAG_REPLY, type Writer } from "../../src/fabric/wire.ts";
import { MAX_FRAME_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { makeNonce } from "../../src/runtime/secret.ts";
import { RawConnection, USUAL } from "../helpers/fabric-raw.ts";
import { Asked, ECHO, echo, TestService, WHO } from "../helpers/fabric-requests.ts";
import { eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

const endpoints: TcpEndpoint[] = [];
const raws: RawConnection[] = [];

afterEach(async () => {
  for (const raw of raws.splice(0)) raw.socket.destroy();
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()));
});

async function node(options: Partial<TcpOptions> = {}): Promise<TcpEndpoint> {
  const opened = await openNode(0, { service: new TestService().serve, ...options });
  endpoints.push(opened);
  return opened;
}

async function client(of: TcpEndpoint, options: Partial<TcpOptions> = {}): Promise<TcpEndpoint> {
  const opened = await openClient([of], options);
  endpoints.push(opened);
  return opened;
}

function raw(to: TcpEndpoint): RawConnection {
  const connection = new RawConnection(to.address().port);
  raws.push(connection);
  return connection;
}

async function ask(from: TcpEndpoint, request: Asked): Promise<Asked> {
  from.send(0, request);
  await eventually(() => request.isOver);
  return request;
}

/** Sends one after the other, and counts, until it is stopped: nobody may disturb it. */
function bystander(from: TcpEndpoint): { stop(): Promise<number> } {
  let isStopped = false;
  const ends: string[] = [];
  const running = (async () => {
    do {
      ends.push(...(await ask(from, echo(ends.length))).ends);
    } while (!isStopped);
  })();
  return {
    async stop() {
      isStopped = true;
      await running;
      expect(new Set(ends)).toEqual(new Set(["replied"]));
      return ends.length;
    },
  };
}

describe("while another client works", () => {
  let victim: TcpEndpoint;
  let beside: ReturnType<typeof bystander>;
  let friend: TcpEndpoint;

  beforeEach(async () => {
    victim = await node({ handshakeTimeoutMs: 60_000 });
    friend = await client(victim);
    await ask(friend, echo(1));
    beside = bystander(friend);
  });

  afterEach(async () => {
    await beside.stop();
    expect(friend.counters.lost).toBe(0);
    expect((await ask(friend, echo(2))).ends).toEqual(["replied"]);
  });

  const garbage: [string, Buffer][] = [
    ["zeroes", Buffer.alloc(64)],
    ["HTTP", Buffer.from("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")],
    ["a length that is odd", Buffer.from(Int32Array.of(5, HELLO, 0, 1).buffer)],
    ["a length beyond the limit", Buffer.from(Int32Array.of(0x7ffffffe, HELLO, 0, 1).buffer)],
    ["a negative length", Buffer.from(Int32Array.of(-8, HELLO, 0, 1).buffer)],
    ["a frame that is long before it is known from whom", longFrame(ECHO)],
    ["a request before the handshake", frame(ECHO, (out) => out.word(1))],
    ["another magic number", frame(HELLO, (out) => out.words(Int32Array.of(1, 1, 0), 0, 3))],
    ["a proof without a challenge", frame(PROOF, (out) => out.bytes(new Uint8Array(32)))],
    ["a hello that ends in the middle", cutHello(24)],
    ["a hello with a short nonce", hello({ nonce: new Uint8Array(5) })],
    ["a hello with a strange role", hello({ role: -7 })],
    ["a hello with a long name", hello({ cluster: "x".repeat(1_000) })],
  ];

  test.each(garbage)("first of all %s", async (_what, bytes) => {
    const bad = raw(victim);
    bad.socket.write(bytes);
    await eventually(() => bad.isClosed);
    expect(bad.refused).toBe("SITU_PROTOCOL");
    expect(victim.counters.refused).toEqual({ SITU_PROTOCOL: 1 });
  });

  test("an older version of the protocol, a node's or a client's", async () => {
    for (const [version, role] of [
      [PROTOCOL_VERSION - 1, 1],
      [0, -1],
    ]) {
      const bad = raw(victim);
      const bytes = hello({ role });
      bytes.writeInt32LE(version, 5 * 4);
      bad.socket.write(bytes);
      await eventually(() => bad.isClosed);
      expect(bad.refused).toBe("SITU_PROTOCOL");
      expect(bad.why).toContain(`version ${version} of the protocol, this one ${PROTOCOL_VERSION}`);
    }
    expect(victim.counters.refused).toEqual({ SITU_PROTOCOL: 2 });
  });

  test("another cluster, another node, a second node with the same number", async () => {
    const wrong: [Partial<Hello>, string][] = [
      [{ cluster: "other" }, "node 0 of other"],
      [{ cluster: "other", role: 1 }, "node 0 of other"],
      [{ to: 3 }, "node 3 of"],
      [{ role: 1_000 }, "node 0 of"],
      [{ role: 0 }, "two nodes"],
    ];
    for (const [what, told] of wrong) {
      const bad = raw(victim);
      await bad.handshake(what);
      expect(bad.refused).toBe("SITU_CONFIG");
      expect(bad.why).toContain(told);
    }
    expect(victim.counters.refused).toEqual({ SITU_CONFIG: 5 });
  });

  const afterwards: [string, Buffer][] = [
    ["zeroes", Buffer.alloc(64)],
    ["a length beyond the limit", Buffer.from(Int32Array.of(MAX_FRAME_BYTES / 4 + 2).buffer)],
    ["a reply that nobody asked for", frame(ECHO | FLAG_REPLY, (out) => out.word(1))],
    ["unknown flags", frame(ECHO | 0x4000, (out) => out.word(1))],
    ["the kind 0", frame(0, (out) => out.word(1))],
  ];

  test.each(afterwards)("after the handshake %s", async (_what, bytes) => {
    const bad = raw(victim);
    await bad.handshake();
    bad.frame(ECHO, 4, (out) => out.word(9));
    bad.socket.write(bytes);
    await eventually(() => bad.isClosed);
    expect(bad.refused).toBe("SITU_PROTOCOL");
    expect(victim.counters.refused).toEqual({ SITU_PROTOCOL: 1 });
  });

  test("one who does not know which node it is may ask anybody", async () => {
    const { port } = victim.address();
    const seeker = await client(victim, {
      nodes: new Map([[9, { host: "127.0.0.1", port, isAnybody: true }]]),
      configurationId: 99,
    });
    const first = echo(1);
    seeker.send(9, first);
    await eventually(() => first.isOver);
    expect(first.ends).toEqual(["SITU_STALE_CONFIGURATION"]);
    seeker.configurationId = seeker.configurationIdOf(9) ?? 0;
    const second = echo(1);
    seeker.send(9, second);
    await eventually(() => second.isOver);
    expect(second.ends).toEqual(["replied"]);
  });

  test("requests with nonsense in them are refused one by one; the connection stays", async () => {
    const bad = raw(victim);
    await bad.handshake();
    bad.frame(99, 1);
    bad.frame(HELLO, 2, (out) => out.word(1));
    bad.frame(1, 3);
    bad.frame(ECHO, 4, (out) => out.word(5), 77);
    bad.frame(ECHO, 5, (out) => out.word(5));
    await bad.until(7);
    expect(bad.got.slice(2).map(({ id }) => id)).toEqual([1, 2, 3, 4, 5]);
    expect(bad.isClosed).toBe(false);
    expect(victim.counters.refused).toEqual({});
    expect(victim.counters.stale).toBe(1);
  });

  test("connections that end in the middle of anything", async () => {
    const whole = hello({});
    for (const cut of [0, 1, 4, 17, whole.length - 1, whole.length]) {
      const bad = raw(victim);
      bad.socket.end(whole.subarray(0, cut));
      await eventually(() => bad.isClosed);
    }
    const half = raw(victim);
    await half.handshake();
    half.socket.end(frame(ECHO, (out) => out.word(1)).subarray(0, 10));
    await eventually(() => half.isClosed);
    const reset = raw(victim);
    await reset.handshake();
    reset.socket.resetAndDestroy();
    await eventually(() => victim.counters.connections === 1);
  });

  test("random bytes, before and after the handshake", async () => {
    const seed = 2014;
    const random = new Random(seed);
    for (let round = 0; round < 60; round++) {
      const bad = raw(victim);
      if (round % 2 === 0) await bad.handshake();
      const bytes = Buffer.from(Array.from({ length: 1 + random.below(400) }, () => random.next()));
      // Half of them begin as a frame should, and mean nothing.
      if (round % 4 < 2) bytes.fill(Buffer.from(Int32Array.of(6, random.below(99)).buffer), 0, 8);
      bad.socket.end(bytes);
      await eventually(() => bad.isClosed);
    }
    expect(Object.keys(victim.counters.refused)).toEqual(["SITU_PROTOCOL"]);
  });
});

describe("secrets", () => {
  test.each([
    ["a wrong one", "good", "bad"],
    ["none where there is one", "good", undefined],
    ["one where there is none", undefined, "good"],
  ])("%s: SITU_SECRET at once", async (_what, ours, theirs) => {
    const victim = await node(ours === undefined ? {} : { secret: ours });
    const stranger = await client(victim, theirs === undefined ? {} : { secret: theirs });
    const request = await ask(stranger, echo(1));
    expect(request.ends).toEqual(["SITU_SECRET"]);
    if (ours !== undefined) expect(victim.counters.refused).toEqual({ SITU_SECRET: 1 });
  });

  test("a proof is worth nothing on another connection", async () => {
    const victim = await node({ secret: "good" });
    const nonce = makeNonce();
    const first = raw(victim);
    await first.handshake({ nonce, secret: "good" });
    expect(first.got.map(({ kind }) => kind)).toEqual([CHALLENGE, READY]);
    const second = raw(victim);
    second.socket.write(hello({ nonce }));
    await second.until(1);
    // What the node itself has proved to the first, sent back as the client's own.
    second.frame(PROOF, 0, (out) => out.bytes(first.got[1].bytes.subarray(20, 52)));
    await eventually(() => second.isClosed);
    expect(second.refused).toBe("SITU_SECRET");
  });

  /** A request of a node with these secrets, sent to another one. */
  async function fromNode(of: TcpEndpoint, secrets: Partial<TcpOptions>): Promise<Asked> {
    const opened = await openNode(1, secrets);
    endpoints.push(opened);
    opened.setNodes(new Map([[0, { host: "127.0.0.1", port: of.address().port }]]));
    return ask(opened, new Asked(WHO));
  }

  const SECRETS = { secret: "good", nodeSecret: "better" };

  test("who only claims to be a node is none, a client least of all", async () => {
    const victim = await node(SECRETS);
    for (const secret of ["guess", SECRETS.secret, undefined]) {
      const bad = raw(victim);
      await bad.handshake({ role: 1, ...(secret === undefined ? {} : { secret }) });
      expect(bad.refused).toBe("SITU_SECRET");
    }
    expect(victim.counters.refused).toEqual({ SITU_SECRET: 3 });
    expect((await fromNode(victim, SECRETS)).words[0]).toBe(1);
  });

  test("a node of another cluster's secret: SITU_SECRET at both ends", async () => {
    const victim = await node(SECRETS);
    const other = await fromNode(victim, { ...SECRETS, nodeSecret: "theirs" });
    expect(other.ends).toEqual(["SITU_SECRET"]);
    expect(victim.counters.refused).toEqual({ SITU_SECRET: 1 });
    // And a node does not talk to one that cannot prove itself.
    const trusting = await node();
    expect((await fromNode(trusting, SECRETS)).ends).toEqual(["SITU_SECRET"]);
  });

  test("a secret of nodes is none of clients: they cannot use it as theirs", async () => {
    const victim = await node(SECRETS);
    const bad = raw(victim);
    await bad.handshake({ secret: SECRETS.nodeSecret });
    expect(bad.refused).toBe("SITU_SECRET");
  });

  test("where only clients have a secret, nobody is a node", async () => {
    const victim = await node({ secret: "good" });
    const bad = raw(victim);
    await bad.handshake({ role: 1, secret: "good" });
    expect(bad.refused).toBe("SITU_SECRET");
    expect(bad.why).toContain("nodeSecret");
  });

  test("where only nodes have one, clients are believed, and nodes are not", async () => {
    const victim = await node({ nodeSecret: "better" });
    expect((await ask(await client(victim), echo(1))).ends).toEqual(["replied"]);
    const bad = raw(victim);
    await bad.handshake({ role: 1 });
    expect(bad.refused).toBe("SITU_SECRET");
    expect((await fromNode(victim, { nodeSecret: "better" })).words[0]).toBe(1);
  });

  test("what a node has said, sent back to it by one in between, proves nothing", async () => {
    // The one in between accepts the node's connection, and opens one to the same node.
    const victim = await node(SECRETS);
    const said: Buffer[] = [];
    const answers: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      const back = raw(victim);
      socket.on("data", (bytes) => {
        said.push(bytes);
        back.socket.write(bytes);
      });
      back.socket.on("data", (bytes) => {
        answers.push(bytes);
        socket.write(bytes);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as { port: number };
      victim.setNodes(new Map([[1, { host: "127.0.0.1", port }]]));
      const request = new Asked(WHO);
      victim.send(1, request);
      await eventually(() => request.isOver);
      expect(request.ends).toEqual(["SITU_CONFIG"]);
      expect(victim.counters.connections).toBe(0);
    } finally {
      victim.setNodes(new Map());
      server.close();
    }
    expect(said.length).toBe(1);
    expect(answers.length).toBe(1);
  });
});

describe("a server that is not what it should be", () => {
  /** Answers each frame of a handshake with bytes of the test's choice. */
  async function impostor(answer: (socket: Socket) => void): Promise<TcpEndpoint> {
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", () => answer(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    servers.push(server);
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    const opened = await openClient([], {
      nodes: new Map([[0, { host: "127.0.0.1", port: address.port }]]),
      secret: "good",
      progressTimeoutMs: 400,
    });
    endpoints.push(opened);
    return opened;
  }
  const servers: ReturnType<typeof createServer>[] = [];
  const sockets: Socket[] = [];

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const server of servers.splice(0)) server.close();
  });

  const challenge = (node: number): Buffer =>
    frame(CHALLENGE, (out) => writeChallenge(out, { node, instance: "i", nonce: makeNonce() }));

  test("does not know the secret", async () => {
    const caller = await impostor((socket) => {
      socket.write(challenge(0));
      socket.once("data", () => socket.write(frame(READY, (out) => out.bytes(makeNonce()))));
    });
    expect((await ask(caller, echo(1))).ends).toEqual(["SITU_SECRET"]);
  });

  test("proves its knowledge with the client's own proof", async () => {
    const caller = await impostor((socket) => {
      socket.write(challenge(0));
      socket.once("data", (proof: Buffer) => {
        proof.writeInt32LE(READY, 4);
        socket.write(proof);
      });
    });
    expect((await ask(caller, echo(1))).ends).toEqual(["SITU_SECRET"]);
  });

  test("speaks another version of the protocol", async () => {
    const caller = await impostor((socket) => {
      const bytes = challenge(0);
      bytes.writeInt32LE(PROTOCOL_VERSION + 1, 5 * 4);
      socket.write(bytes);
    });
    const request = await ask(caller, echo(1));
    expect(request.ends).toEqual(["SITU_PROTOCOL"]);
    expect(request.error?.message).toContain(`version ${PROTOCOL_VERSION + 1}`);
  });

  test("is another node", async () => {
    const caller = await impostor((socket) => socket.write(challenge(4)));
    expect((await ask(caller, echo(1))).ends).toEqual(["SITU_CONFIG"]);
  });

  test("talks nonsense", async () => {
    const caller = await impostor((socket) => socket.write(Buffer.alloc(100, 3)));
    expect((await ask(caller, echo(1))).ends).toEqual(["SITU_PROTOCOL"]);
  });

  test("closes at once, or says nothing at all: the request is lost in time", async () => {
    const closing = await impostor((socket) => socket.destroy());
    const silent = await impostor(() => {});
    const requests = await Promise.all([ask(closing, echo(1)), ask(silent, echo(1))]);
    expect(requests.map(({ ends }) => ends.join())).toEqual(["SITU_LOST", "SITU_LOST"]);
  });
});

function frame(kind: number, body: (out: Writer) => void): Buffer {
  const frames = new FrameWriter();
  body(frames.begin(kind, 1, 1));
  frames.end();
  return Buffer.from(frames.out.views.bytes.subarray(0, frames.bytes));
}

function hello(changes: Partial<Parameters<typeof writeHello>[1]>): Buffer {
  const usual = { ...USUAL, nonce: makeNonce() };
  return frame(HELLO, (out) => writeHello(out, { ...usual, ...changes }));
}

/** A hello whose frame says that it is shorter than what is in it. */
function cutHello(bytes: number): Buffer {
  const cut = Buffer.from(hello({}).subarray(0, bytes));
  cut.writeInt32LE(bytes / 4, 0);
  return cut;
}

/** The beginning of one: it is refused before the rest arrives. */
function longFrame(kind: number): Buffer {
  return frame(kind, (out) => out.bytes(new Uint8Array(100_000))).subarray(0, 100);
}
