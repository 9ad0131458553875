/**
 * A whole gateway under clients that behave as they like: commands at random in pipelines that
 * arrive in pieces, transactions, inline commands, connections that break off in the middle, and
 * bytes that are no protocol at all.
 *
 * A client that keeps to the protocol ends each pipeline with ECHO and a word of its own, so that
 * it knows of each reply whether it came: as many as there were requests, each well-formed, then the
 * word. Whatever the others do, it gets them within a bound of time.
 */

import { connect, type Socket } from "node:net";
import type { Command } from "../../../src/gateways/redis/command.ts";
import { realClock, sleep } from "../../../src/runtime/clock.ts";
import { Random } from "../../../src/runtime/random.ts";
import { makeInput } from "./inputs.ts";
import { anyCommand, pick } from "./live-commands.ts";
import { encode } from "./model.ts";
import { parseReplies } from "./parse-replies.ts";
import { ReplyStream } from "./reply-stream.ts";

export interface LiveOptions {
  readonly port: number;
  readonly seed: number;
  readonly clients: number;
  /** Of each client. */
  readonly pipelines: number;
  readonly commands: readonly Command[];
}

export interface LiveReport {
  readonly replies: number;
  readonly errors: number;
  readonly brokenOff: number;
  readonly garbage: number;
}

/** Much longer than a pipeline takes on a busy machine. */
const PATIENCE_MS = 240_000;

interface Totals {
  replies: number;
  errors: number;
  brokenOff: number;
  garbage: number;
}

/** A connection that hands out replies as they come. */
class Client {
  readonly socket: Socket;
  readonly #stream = new ReplyStream();
  #isClosed = false;
  #wake: () => void = () => {};
  /** What it is waiting for, for those who wait too long. */
  doing = "";

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("data", (chunk: Buffer) => {
      this.#stream.push(chunk);
      this.#wake();
    });
    this.socket.on("error", () => {});
    this.socket.on("close", () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The next reply; undefined if the connection is closed. */
  async reply(): Promise<Buffer | undefined> {
    for (;;) {
      const reply = this.#stream.next();
      if (reply !== undefined) return reply;
      if (this.#isClosed) return undefined;
      await this.#news();
    }
  }

  async closed(): Promise<void> {
    while (!this.#isClosed) await this.#news();
  }

  #news(): Promise<void> {
    return new Promise((resolve, reject) => {
      const patience = realClock.after(PATIENCE_MS, () =>
        reject(new Error(`it hangs: ${this.doing}`)),
      );
      this.#wake = () => {
        patience.cancel();
        resolve();
      };
    });
  }

  /** In pieces, now and then with a turn of the loop in between. */
  async send(bytes: Buffer, random: Random): Promise<void> {
    // Not more than a hundred pieces or so: each may take a millisecond.
    const most = Math.max(pick(random, [1 << 20, 1 << 20, 4_000, 100]), bytes.length >> 6);
    for (let at = 0; at < bytes.length; ) {
      const length = 1 + random.below(most);
      this.socket.write(bytes.subarray(at, at + length));
      at += length;
      if (most < 1 << 20 && random.below(4) === 0) await sleep(0);
    }
  }
}

function pipeline(random: Random, commands: readonly Command[]): string[][] {
  const length = random.below(10) === 0 ? random.below(300) : 1 + random.below(20);
  const requests: string[][] = [];
  for (let i = 0; i < length; i++) {
    if (random.below(15) === 0)
      requests.push([pick(random, ["MULTI", "EXEC", "WATCH", "DISCARD"])]);
    if (random.below(40) === 0) requests.push(["HELLO", pick(random, ["2", "3"])]);
    requests.push(anyCommand(random, commands));
  }
  // Whatever was open is not any more; without MULTI that is an error, and a reply as well.
  requests.push(["DISCARD"]);
  return requests;
}

function shown(request: readonly string[]): string {
  return JSON.stringify(request.map((word) => (word.length < 50 ? word : `${word.length} bytes`)));
}

/** As an inline command if it can be one. */
function written(random: Random, request: readonly string[]): string {
  const isPlain = request.every((word) => /^[a-z0-9{}.-]{1,1000}$/i.test(word));
  return isPlain && random.below(10) === 0 ? `${request.join(" ")}\r\n` : encode(request);
}

/** One pipeline of a client that keeps to the protocol. */
async function converse(client: Client, random: Random, options: LiveOptions, totals: Totals) {
  const requests = pipeline(random, options.commands);
  const word = `word:${random.next()}`;
  const text = requests.map((request) => written(random, request)).join("");
  const bytes = Buffer.from(text + encode(["ECHO", word]), "latin1");
  const sent = client.send(bytes, random);
  client.doing = requests.map(shown).join(" ");
  for (const request of requests) {
    const reply = await client.reply();
    const asked = shown(request);
    if (reply === undefined) {
      const rest = requests.slice(requests.indexOf(request)).map(shown);
      throw new Error(`closed; without a reply: ${rest.join(" ")}`);
    }
    try {
      parseReplies(reply);
    } catch (cause) {
      throw new Error(`a reply to ${asked} that is none: ${reply.toString("latin1", 0, 100)}`, {
        cause,
      });
    }
    totals.replies++;
    if (reply[0] === 45) totals.errors++;
  }
  const last = await client.reply();
  if (last?.toString("latin1") !== `$${word.length}\r\n${word}\r\n`) {
    const asked = requests.map(shown).join(" ");
    throw new Error(`${last?.toString("latin1", 0, 100)} instead of the last word, after ${asked}`);
  }
  await sent;
}

/** Sends part of a pipeline, and goes: politely or not, with replies unread or not. */
async function breakOff(random: Random, options: LiveOptions, totals: Totals): Promise<void> {
  const client = new Client(options.port);
  client.doing = "breaks off";
  const text = pipeline(random, options.commands).map(encode).join("");
  const bytes = Buffer.from(text, "latin1");
  if (random.below(3) === 0) client.socket.pause();
  await client.send(bytes.subarray(0, random.below(bytes.length)), random);
  await sleep(random.below(3));
  if (random.below(3) === 0) client.socket.end();
  else if (random.below(2) === 0) client.socket.destroy();
  else client.socket.resetAndDestroy();
  client.socket.resume();
  await client.closed();
  totals.brokenOff++;
}

/** Bytes that mean little; whatever is answered, the gateway goes on, and lets the client go. */
async function babble(random: Random, options: LiveOptions, totals: Totals): Promise<void> {
  const client = new Client(options.port);
  const { bytes } = makeInput(random.next() | 0, 0);
  client.doing = `babbles ${JSON.stringify(bytes.toString("latin1"))}`;
  await client.send(bytes, random);
  client.socket.end();
  await client.closed();
  totals.garbage++;
}

/** QUIT is answered, and the gateway closes, whatever the client goes on to say. */
async function quit(random: Random, options: LiveOptions): Promise<void> {
  const client = new Client(options.port);
  const more = random.below(2) === 0 ? encode(["PING"]).repeat(1 + random.below(50)) : "";
  client.doing = `quits and says ${more}`;
  client.socket.write(Buffer.from(encode(["QUIT"]) + more, "latin1"));
  const reply = await client.reply();
  // With something unread the kernel may tell of the end before the reply.
  if (reply === undefined && more === "") throw new Error("no reply to QUIT");
  if (reply !== undefined && reply.toString() !== "+OK\r\n") throw new Error(`QUIT: ${reply}`);
  await client.closed();
}

async function runClient(index: number, options: LiveOptions, totals: Totals): Promise<void> {
  const random = new Random(Math.imul(options.seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b));
  for (let i = 0; i < 4; i++) random.next();
  let client = new Client(options.port);
  for (let i = 0; i < options.pipelines; i++) {
    try {
      await converse(client, random, options, totals);
      if (random.below(6) === 0) await breakOff(random, options, totals);
      if (random.below(6) === 0) await babble(random, options, totals);
      if (random.below(12) === 0) await quit(random, options);
    } catch (cause) {
      const where = `seed ${options.seed}, client ${index}, pipeline ${i}`;
      throw new Error(`${where}: ${(cause as Error).message}`, { cause });
    }
    if (random.below(20) > 0) continue;
    client.socket.destroy();
    client = new Client(options.port);
  }
  client.socket.destroy();
  await client.closed();
}

/** Throws with the seed at the first thing that is not as it should be. */
export async function fuzzLive(options: LiveOptions): Promise<LiveReport> {
  const totals: Totals = { replies: 0, errors: 0, brokenOff: 0, garbage: 0 };
  const clients = Array.from({ length: options.clients }, (_, i) => runClient(i, options, totals));
  await Promise.all(clients);
  return totals;
}
