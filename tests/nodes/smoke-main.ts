/**
 * What a user does with Situ, in short, on the version of Node.js that runs this. The test that
 * starts it gives the part and the folder of the store; it ends with 0 and says what it has seen.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { type OpenOptions, open, serve, str, table, u32 } from "situ";

const Item = table(
  "item",
  { id: u32(), name: str(), count: u32() },
  { key: "id", indexes: { byName: { on: ["name"] } } },
);
const Ordered = table("ordered", { at: u32() }, { key: "at", ordered: true });

const script = fileURLToPath(import.meta.url);
const EACH = 400;

type Settings = Pick<OpenOptions, "durability">;

function openStore(path: string, settings: Settings = { durability: "none" }) {
  return open({ path, tables: [Item, Ordered], memoryBytes: 32 * 2 ** 20, ...settings });
}

/** Counts up one row, EACH times. */
async function work(path: string): Promise<void> {
  await using db = await open({ path, tables: [Item, Ordered] });
  for (let i = 0; i < EACH; i++) {
    await db.transact(async (tx) => {
      const row = await tx.get(Item, 1);
      await tx.update(Item, 1, { count: row!.count + 1 });
    });
  }
}

const parts: Record<string, (path: string) => Promise<unknown>> = {
  async transactions(path) {
    await using db = await openStore(path);
    db.transactSync((tx) => {
      tx.insert(Item, { id: 1, name: "één", count: 0 });
      tx.insert(Item, { id: 2, name: "two", count: 0 });
      for (let at = 0; at < 100; at++) tx.insert(Ordered, { at });
    });
    await db.transact(async (tx) => {
      await tx.update(Item, 1, { count: 5 });
    });
    const undone = await db
      .transact(async (tx) => {
        await tx.update(Item, 1, { count: 9 });
        throw new Error("undone");
      })
      .catch((error: Error) => error.message);
    const found = [...db.scan(Item, { index: "byName", prefix: "é" })].map(({ id }) => id);
    const range = [...db.scan(Ordered, { gte: 10, lt: 13 })].map(({ at }) => at);
    return { count: db.get(Item, 1)?.count, undone, found, range };
  },

  async processes(path) {
    await using db = await openStore(path);
    db.transactSync((tx) => tx.insert(Item, { id: 1, name: "", count: 0 }));
    const children = [0, 1].map(() => fork(script, ["work", path]));
    const thread = new Worker(script, { workerData: path });
    const ends = [...children, thread].map((each) => once(each, "exit"));
    const codes = (await Promise.all(ends)).map(([code]) => code as number);
    return { codes, count: db.get(Item, 1)?.count };
  },

  /** A process commits to the disk and is killed; the memory is lost, too. */
  async recovery(path) {
    const child = fork(script, ["commit-and-wait", path]);
    await once(child, "message");
    child.kill("SIGKILL");
    await once(child, "exit");
    const memory = process.env.SITU_MEMORY_DIR!;
    for (const name of readdirSync(memory)) rmSync(join(memory, name), { recursive: true });
    await using db = await openStore(path, {});
    return { rows: db.count(Item), last: db.get(Item, EACH - 1)?.name };
  },

  async "commit-and-wait"(path) {
    const db = await openStore(path, { durability: "sync" });
    for (let id = 0; id < EACH; id += 50) {
      await db.transact(async (tx) => {
        for (let i = id; i < id + 50; i++)
          await tx.insert(Item, { id: i, name: `n${i}`, count: 0 });
      });
    }
    process.send!("committed");
    await new Promise(() => setInterval(() => {}, 1_000));
  },

  async gateway(path) {
    const gateway = await serve({ path, port: 0, threads: 2, durability: "none" });
    const socket = connect(gateway.port, "127.0.0.1");
    socket.setEncoding("utf8");
    let heard = "";
    socket.on("data", (text: string) => {
      heard += text;
    });
    socket.write("SET a 1\r\nINCRBY a 41\r\nGET a\r\nQUIT\r\n");
    await once(socket, "close");
    await gateway.close();
    return { heard };
  },

  work,
};

if (typeof workerData === "string") {
  await work(workerData);
  parentPort!.close();
} else {
  const [part, path] = process.argv.slice(2);
  const seen = await parts[part](path);
  if (seen !== undefined) console.log(JSON.stringify({ version: process.versions.node, ...seen }));
}
