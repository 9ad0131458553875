/** A protocol plugs into the gateway's threads by giving an object: here one that is not Redis. */

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { ThreadedServer } from "../../src/gateways/threads/threaded-server.ts";
import { temporaryStores } from "../helpers/store.ts";
import { ECHO, Line } from "./echo-protocol.ts";

const stores = temporaryStores();

async function serve(threads: number, maxClients = 10) {
  const path = stores.folder();
  const announced: string[] = [];
  const server = new ThreadedServer(ECHO, {
    host: "127.0.0.1",
    port: 0,
    socket: undefined,
    threads,
    maxClients: () => maxClients,
    threadOptions: (_port, isFirst) => ({ path, isFirst }),
    announced: (notice) => announced.push(notice),
    failed: (error) => {
      throw error;
    },
  });
  stores.later(() => server.close());
  await server.start();
  server.serve();
  return { server, announced };
}

async function client(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.setEncoding("utf8");
  stores.later(async () => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function ask(socket: Socket, line: string): Promise<string> {
  socket.write(`${line}\n`);
  const [answer] = await once(socket, "data");
  return String(answer).trim();
}

describe.each([1, 2])("with %i threads", (threads) => {
  test("clients are served from one store, and threads hear of each other", async () => {
    const { server, announced } = await serve(threads);
    const [first, second] = [await client(server.port), await client(server.port)];
    expect(await ask(first, "a")).toBe("0");
    expect(await ask(second, "b")).toBe("1");
    expect(await ask(first, "!news")).toBe("2");
    await expect.poll(() => ask(second, "?"), { timeout: 20_000 }).toBe("!news");
    expect(announced).toEqual(["!news"]);
    expect(server.database.scan(Line).toArray()).toHaveLength(3);
  });

  test("a client beyond the limit is told so; one that leaves makes room", async () => {
    const { server } = await serve(threads, 1);
    const first = await client(server.port);
    expect(await ask(first, "a")).toBe("0");
    const second = await client(server.port);
    expect(String((await once(second, "data"))[0])).toBe("full\n");
    first.end();
    const entered = async (): Promise<string> => ask(await client(server.port), "b");
    await expect.poll(entered, { timeout: 20_000 }).toBe("1");
  });
});
