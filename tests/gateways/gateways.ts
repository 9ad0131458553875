/** Gateways and clients for a test, and their end, also when it fails. */

import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { destroy } from "../../src/database/open.ts";
import type { Gateway, GatewayOptions } from "../../src/gateways/gateway-options.ts";
import { serve } from "../../src/gateways/serve.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { RawClient } from "./redis/raw-client.ts";

export const MIB = 2 ** 20;

const folders: string[] = [];
const gateways: Gateway[] = [];
/** Their memory is elsewhere, and does not go with their folder. */
const stores: string[] = [];
const clients: RawClient[] = [];
const sockets: Socket[] = [];

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "situ-gateway-"));
  folders.push(folder);
  return folder;
}

/** On a free port, with a store of its own. */
export async function startGateway(options: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const path = options.path ?? join(newFolder(), "store");
  if (!stores.includes(path)) stores.push(path);
  const gateway = await serve({ port: 0, memoryBytes: 64 * MIB, ...options, path });
  gateways.push(gateway);
  return gateway;
}

/** By port, or by the path of a Unix socket. */
export async function enter(to: Gateway | number | string): Promise<RawClient> {
  const client = await RawClient.connect(typeof to === "object" ? to.port : to);
  clients.push(client);
  return client;
}

/** A bare connection. */
export function dial(gateway: Gateway, allowHalfOpen = false): Socket {
  const socket = connect({ port: gateway.port, host: "127.0.0.1", allowHalfOpen });
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

/** Says something, and returns all that came until the other side closed. */
export function talk(gateway: Gateway, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = dial(gateway);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    socket.on("close", () => resolve(received));
    socket.write(Buffer.from(text, "latin1"));
  });
}

export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let i = 0; i < 2_000; i++) {
    if (await holds()) return;
    await sleep(5);
  }
  throw new Error(`never: ${what}`);
}

/** For afterEach, where several tests share a gateway. */
export function endClients(): void {
  for (const client of clients.splice(0)) client.close();
  for (const socket of sockets.splice(0)) socket.destroy();
}

/** For afterEach or afterAll. */
export async function endAll(): Promise<void> {
  endClients();
  await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
  for (const path of stores.splice(0)) await destroy(path);
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}
