/**
 * Another process, or thread, for tests of message rings; compiled, and started with an order. A node
 * that answers with what it is sent; a client that asks one without end; one that dies in a message.
 */

import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { CLIENT, FIRST_MESSAGE_KIND, type Request } from "../../src/fabric/fabric.ts";
import { Bell, OwnBell } from "../../src/fabric/shared-memory/bell.ts";
import { type ChannelEnd, RingChannel } from "../../src/fabric/shared-memory/channel.ts";
import { CONNECTION_BYTES, Connection } from "../../src/fabric/shared-memory/connection.ts";
import {
  Directory,
  FileLock,
  ringsName,
  slotLock,
} from "../../src/fabric/shared-memory/directory.ts";
import { openSharedMemory } from "../../src/fabric/shared-memory/endpoint.ts";
import { RING_CONTROL_WORDS, TRAILER_WORDS } from "../../src/fabric/shared-memory/ring.ts";

export const ECHO = FIRST_MESSAGE_KIND;

export interface ChildOrder {
  readonly role: "node" | "client" | "dies in a message";
  readonly folder: string;
}

const IN_FLIGHT = 64;

async function serve(folder: string): Promise<void> {
  const endpoint = await openSharedMemory({
    self: 0,
    nodes: new Map(),
    epoch: 1,
    listen: { folder },
    service: (incoming) => {
      const { body } = incoming;
      const { left } = body;
      incoming.reply().words(body.views.i32, body.skip(left), left);
    },
  });
  process.stdout.write("ready\n");
  process.stdin.on("close", () => void endpoint.close());
  process.stdin.resume();
}

/** Without end; the parent ends it. Each answer must be the right one. */
async function ask(folder: string): Promise<void> {
  const client = await openSharedMemory({
    self: CLIENT,
    nodes: new Map([[0, { folder }]]),
    epoch: 1,
  });
  let answers = 0;
  const next = (value: number): void => {
    const request: Request = {
      kind: ECHO,
      encode: (out) => {
        for (let i = 0; i < value % 50; i++) out.word(value);
      },
      replied: (reply) => {
        while (reply.left >= 2) {
          const found = reply.word();
          if (found !== value) throw new Error(`${found} in place of ${value}`);
        }
        answers++;
        if (answers === 1_000) process.stdout.write("ready\n");
        next(value + IN_FLIGHT);
      },
      failed: (why) => {
        throw why;
      },
    };
    client.send(0, request);
  };
  for (let i = 0; i < IN_FLIGHT; i++) next(i);
}

/** By hand: a whole request, then the length of another one with some of its words, and no more. */
function dieInMessage(folder: string): void {
  const directory = Directory.open(folder, 0);
  const lock = FileLock.take(slotLock(folder, 0));
  if (directory === undefined || lock === undefined) throw new Error("there is no node, or slot");
  const rings = directory.segments.create(ringsName(0, 1), CONNECTION_BYTES);
  const connection = new Connection(rings);
  connection.describe(CLIENT, OwnBell.get().path);
  const sender = connection.sender("requests");
  sender.tryWrite(new Int32Array([6, ECHO, 1, 1, 42, 0]), 0, 6);
  const { at } = connection.ringAt("requests");
  const next = at + RING_CONTROL_WORDS + 6 + TRAILER_WORDS;
  connection.views.i32.fill(7, next + 1, next + 50);
  connection.views.i32[next] = 100;
  directory.claim(0, 1);
  Bell.open(directory.bell).ring();
  process.stdout.write("ready\n", () => process.kill(process.pid, "SIGKILL"));
}

function echoInThread(end: ChannelEnd): void {
  const channel = new RingChannel(end, (kind, id, body) => {
    if (kind === 99) {
      channel.close();
      return;
    }
    const { left } = body;
    channel.send(kind, id, (out) => out.words(body.views.i32, body.skip(left), left));
  });
  parentPort?.postMessage("ready");
}

if (!isMainThread) echoInThread((workerData as { end: ChannelEnd }).end);
else if (process.argv[2] !== undefined) {
  const { role, folder } = JSON.parse(process.argv[2]) as ChildOrder;
  if (role === "node") await serve(folder);
  else if (role === "client") await ask(folder);
  else dieInMessage(folder);
}
