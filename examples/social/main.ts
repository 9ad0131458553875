/**
 * A feed that a browser shows, while several processes write to it. This process serves the page and reads the graph
 * in its own memory: no request waits for another process, and the page says what each one cost.
 *
 *   node dist/examples/social/main.js [--port 8080]
 */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type Database, destroy, open, SituError } from "situ";
import { PAGE } from "./page.ts";
import { addPeople, feedOf, idOf, NAMES, openSocial, type Social, write } from "./social.ts";

/** Each writes for one person. */
const WRITERS = ["Grace", "Edsger", "Barbara"];
const MAX_BODY_BYTES = 4_096;

const { values } = parseArgs({ options: { port: { type: "string", default: "0" } } });
const path = mkdtempSync(join(tmpdir(), "situ-social-"));
const writers: ChildProcess[] = [];
try {
  await using db = await open({ path, memoryBytes: 64 * 2 ** 20 });
  const social = openSocial(db);
  addPeople(db, social);
  const script = fileURLToPath(new URL("./writer.js", import.meta.url));
  for (const name of WRITERS) writers.push(fork(script, [path, String(idOf(name))]));
  const server = createServer((request, response) => {
    answer(db, social, request, response).catch((error: unknown) => {
      const isTheirs = error instanceof SituError || error instanceof SyntaxError;
      response.writeHead(isTheirs ? 400 : 500).end(String(error));
    });
  });
  server.listen(Number(values.port), "127.0.0.1");
  await once(server, "listening");
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
  server.closeAllConnections();
  server.close();
  // Each finishes its turn and closes the store.
  await Promise.all(writers.map(ended));
} finally {
  for (const writer of writers) if (isRunning(writer)) writer.kill("SIGKILL");
  await destroy(path);
  rmSync(path, { recursive: true, force: true });
}

async function answer(
  db: Database,
  social: Social,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/") {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
  } else if (pathname === "/feed") {
    send(response, 200, measuredFeed(social, Number(searchParams.get("reader"))));
  } else if (pathname === "/posts" && request.method === "POST") {
    const { author, text, friendsOnly } = JSON.parse(await bodyOf(request));
    send(response, 201, { id: write(db, social, author, text, friendsOnly) });
  } else response.writeHead(404).end();
}

/** The feed, how many calls of the graph it took, and how long these took. */
function measuredFeed(social: Social, reader: number) {
  let calls = 0;
  const counting = new Proxy(social, {
    get(target, name) {
      calls++;
      const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return call.bind(target);
    },
  });
  const beginMs = performance.now();
  const feed = feedOf(counting, reader);
  const microseconds = Math.round((performance.now() - beginMs) * 1_000);
  return { reader: NAMES[reader - 1], feed, calls, microseconds };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MAX_BODY_BYTES) throw new SyntaxError("a post is shorter than that");
  }
  return body;
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

async function ended(writer: ChildProcess): Promise<void> {
  if (!isRunning(writer)) return;
  const exit = once(writer, "exit");
  if (writer.connected) writer.disconnect();
  await exit;
}
