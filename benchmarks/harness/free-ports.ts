/**
 * Ports that must be known before anybody listens on them.
 *
 * Not those that the system gives out for port 0: outgoing connections get theirs from the same range, so one of them
 * may take the port before its server listens, or while the server is restarted. Whoever tries again and again to reach
 * a server that is away may even be connected with itself.
 */

import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below what Linux and macOS give to outgoing connections. */
const FIRST_PORT = 10_000;
const END_PORT = 32_000;

/** Different ones. Another process may take one before it is bound: callers try again then. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST_PORT, END_PORT);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  await once(server.close(), "close");
  return true;
}
