/**
 * Message rings between real processes and threads: those that are killed, stopped, or die in the
 * middle of a message. The children run compiled code: `npm run build` first.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { CLIENT, FIRST_MESSAGE_KIND, type Service } from "../../src/fabric/fabric.ts";
import { makeChannel, RingChannel } from "../../src/fabric/shared-memory/channel.ts";
import {
  openSharedMemory,
  type SharedMemoryEndpoint,
} from "../../src/fabric/shared-memory/endpoint.ts";
import type { SharedMemoryOptions } from "../../src/fabric/shared-memory/options.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { Asked } from "../helpers/fabric-requests.ts";
import { eventually } from "../helpers/fabric-tcp.ts";
import type { ChildOrder } from "./shared-memory-child.ts";

const ECHO = FIRST_MESSAGE_KIND;
const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const CHILD = join(
  process.env.SITU_TEST_DIST ?? join(ROOT, "dist"),
  "tests/fabric/shared-memory-child.js",
);

let cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  cleanups = [];
});

function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), "situ-test-rings-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<void>;
  errors: string;
}

/** Resolves when the child says that it is ready. */
async function start(order: ChildOrder): Promise<Child> {
  if (!existsSync(CHILD)) throw new Error(`${CHILD} is missing: run npm run build`);
  const child = spawn(process.execPath, [CHILD, JSON.stringify(order)], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  let isOver = false;
  const ended = new Promise<void>((resolve) => {
    child.on("close", () => {
      isOver = true;
      resolve();
    });
  });
  const started: Child = { process: child, ended, errors: "" };
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    started.errors += text;
  });
  cleanups.push(async () => {
    child.stdin.end();
    await Promise.race([ended, sleep(2_000)]);
    child.kill("SIGKILL");
    await ended;
  });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await eventually(() => said.includes("ready") || isOver);
  if (!said.includes("ready")) throw new Error(`the child ended early: ${started.errors}`);
  return started;
}

async function open(options: Partial<SharedMemoryOptions>): Promise<SharedMemoryEndpoint> {
  const fixed = { self: CLIENT, nodes: new Map(), epoch: 1 };
  const endpoint = await openSharedMemory({ ...fixed, ...options });
  cleanups.push(() => endpoint.close());
  return endpoint;
}

const clientOf = (folder: string, options: Partial<SharedMemoryOptions> = {}) =>
  open({ nodes: new Map([[0, { folder }]]), ...options });

const echoService: Service = (incoming) => {
  const { body } = incoming;
  const { left } = body;
  incoming.reply().words(body.views.i32, body.skip(left), left);
};

const echo = (value: number): Asked => new Asked(ECHO, (out) => out.word(value));

async function ask(client: SharedMemoryEndpoint, ...requests: Asked[]): Promise<string[]> {
  for (const request of requests) client.send(0, request);
  await eventually(() => requests.every(({ isOver }) => isOver));
  return requests.map(({ ends }) => ends.join());
}

/** Asks again, as long as the node is not there. */
async function askUntilReplied(client: SharedMemoryEndpoint): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    if ((await ask(client, echo(1)))[0] === "replied") return;
    await sleep(20);
  }
  throw new Error("the node does not come back");
}

describe("a node in another process", () => {
  test("answers, also after all have slept", async () => {
    const folder = folderForTest();
    await start({ role: "node", folder });
    const client = await clientOf(folder);
    for (const pauseMs of [0, 5, 30]) {
      const requests = Array.from({ length: 2_000 }, (_, i) => echo(i));
      const ends = await ask(client, ...requests);
      expect(new Set(ends)).toEqual(new Set(["replied"]));
      expect(requests.map(({ words }) => words[0])).toEqual(requests.map((_, i) => i));
      await sleep(pauseMs);
    }
  });

  test("is killed: requests under way are lost; it comes back, and answers again", async () => {
    const folder = folderForTest();
    const first = await start({ role: "node", folder });
    const client = await clientOf(folder, { progressTimeoutMs: 400 });
    expect(await ask(client, echo(1))).toEqual(["replied"]);
    first.process.kill("SIGSTOP");
    const requests = Array.from({ length: 100 }, (_, i) => echo(i));
    for (const request of requests) client.send(0, request);
    await sleep(5);
    first.process.kill("SIGKILL");
    await eventually(() => requests.every(({ isOver }) => isOver));
    expect(new Set(requests.map(({ ends }) => ends.join()))).toEqual(new Set(["SITU_LOST"]));
    expect(client.counters.lost).toBe(100);
    expect(client.isConnected(0)).toBe(false);
    await first.ended;
    await start({ role: "node", folder });
    await askUntilReplied(client);
    expect(client.counters.connections).toBe(1);
  });

  test("is stopped: requests are lost after a while; it goes on, and answers again", async () => {
    const folder = folderForTest();
    const node = await start({ role: "node", folder });
    const client = await clientOf(folder, { progressTimeoutMs: 200 });
    expect(await ask(client, echo(1))).toEqual(["replied"]);
    node.process.kill("SIGSTOP");
    expect(await ask(client, echo(2))).toEqual(["SITU_LOST"]);
    node.process.kill("SIGCONT");
    await askUntilReplied(client);
  });

  test("closes in good order: nothing is left in its folder but locks", async () => {
    const folder = folderForTest();
    const node = await start({ role: "node", folder });
    const client = await clientOf(folder);
    expect(await ask(client, echo(1))).toEqual(["replied"]);
    node.process.stdin?.end();
    await node.ended;
    await eventually(() => !client.isConnected(0));
    expect(readdirSync(folder).filter((name) => !name.endsWith(".lock"))).toEqual([]);
  });
});

describe("a client in another process", () => {
  test("is killed while it asks: its slot is free again, and others see nothing", async () => {
    const folder = folderForTest();
    const closed: number[] = [];
    const node = await open({
      self: 0,
      listen: { folder },
      service: echoService,
      maxConnections: 3,
      progressTimeoutMs: 200,
      onConnectionClosed: (connection) => closed.push(connection),
    });
    const bystander = await clientOf(folder);
    expect(await ask(bystander, echo(1))).toEqual(["replied"]);
    // More of them, one after the other, than there are slots.
    for (let round = 0; round < 3; round++) {
      const children = await Promise.all([
        start({ role: "client", folder }),
        start({ role: "client", folder }),
      ]);
      for (const child of children) child.process.kill("SIGKILL");
      await eventually(() => node.counters.connections === 1);
      expect(await ask(bystander, echo(round))).toEqual(["replied"]);
    }
    expect(closed).toHaveLength(6);
    expect(node.counters.refused).toEqual({});
  });

  test("dies in the middle of a message: that one is not served, the others are", async () => {
    const folder = folderForTest();
    let served = 0;
    const node = await open({
      self: 0,
      listen: { folder },
      service: (incoming) => {
        served++;
        echoService(incoming);
      },
      progressTimeoutMs: 200,
    });
    const bystander = await clientOf(folder);
    // It takes the first slot: so the bystander takes none before it has.
    const dying = await start({ role: "dies in a message", folder });
    await dying.ended;
    await eventually(() => served === 1);
    expect(await ask(bystander, echo(5))).toEqual(["replied"]);
    await eventually(() => node.counters.connections === 1);
    expect(served).toBe(2);
    expect(node.counters.refused).toEqual({});
    expect(await ask(bystander, echo(6))).toEqual(["replied"]);
  });
});

describe("limits and mistakes", () => {
  test("more ends than slots are refused, until one goes", async () => {
    const folder = folderForTest();
    await open({ self: 0, listen: { folder }, service: echoService, maxConnections: 1 });
    const first = await clientOf(folder);
    expect(await ask(first, echo(1))).toEqual(["replied"]);
    const second = await clientOf(folder);
    expect(await ask(second, echo(2))).toEqual(["SITU_OVERLOADED"]);
    expect(second.counters.overloaded).toBe(1);
    await first.close();
    expect(await ask(second, echo(3))).toEqual(["replied"]);
  });

  test("a folder has one node, and it is the one that is asked for", async () => {
    const folder = folderForTest();
    await open({ self: 0, listen: { folder }, service: echoService });
    const another = openSharedMemory({ self: 0, nodes: new Map(), epoch: 1, listen: { folder } });
    await expect(another).rejects.toThrow(expect.objectContaining({ code: "SITU_IN_USE" }));
    const client = await open({ nodes: new Map([[1, { folder }]]) });
    const request = echo(1);
    client.send(1, request);
    await eventually(() => request.isOver);
    expect(request.ends).toEqual(["SITU_CONFIG"]);
  });

  test("a node that is not there: lost, after the time-out", async () => {
    const client = await clientOf(folderForTest(), { progressTimeoutMs: 100 });
    expect(await ask(client, echo(1))).toEqual(["SITU_LOST"]);
  });

  test("a node that comes while a request waits for it", async () => {
    const folder = folderForTest();
    const client = await clientOf(folder);
    const request = echo(9);
    client.send(0, request);
    await sleep(30);
    await open({ self: 0, listen: { folder }, service: echoService });
    await eventually(() => request.isOver);
    expect(request.ends).toEqual(["replied"]);
  });

  test("one end that closes while others ask it: they are told, none waits", async () => {
    const folder = folderForTest();
    const node = await open({
      self: 0,
      listen: { folder },
      service: (incoming) => void incoming.defer(),
    });
    const client = await clientOf(folder);
    const requests = Array.from({ length: 50 }, (_, i) => echo(i));
    for (const request of requests) client.send(0, request);
    await eventually(() => node.counters.requestsServed === 50);
    await node.close();
    await eventually(() => requests.every(({ isOver }) => isOver));
    expect(requests.every(({ error }) => error instanceof SituError)).toBe(true);
    expect(new Set(requests.map(({ ends }) => ends.join()))).toEqual(new Set(["SITU_LOST"]));
  });
});

test("a channel to another thread: all of it, both ways, in order", async () => {
  const [here, there] = makeChannel(1 << 16);
  const worker = new Worker(CHILD, { workerData: { end: there }, transferList: [there.port] });
  cleanups.push(() => worker.terminate());
  const got: number[] = [];
  const channel = new RingChannel(here, (_, id, body) => {
    for (let i = 0; i < id % 30; i++) if (body.word() !== id) got.push(-1);
    got.push(id);
  });
  for (let i = 0; i < 20_000; i++) {
    channel.send(20, i, (out) => {
      for (let word = 0; word < i % 30; word++) out.word(i);
    });
    if (i % 500 === 0) await sleep(i % 3);
  }
  await eventually(() => got.length === 20_000);
  expect(got).toEqual(Array.from({ length: 20_000 }, (_, i) => i));
  channel.send(99, 0, () => {});
  await new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  channel.close();
});
