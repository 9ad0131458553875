/**
 * docs/FAULTS.md, "The life of a store": processes change rows and are killed, others follow the table, are killed
 * too, and go on from the last position they have told. Every version of every row is told once, in
 * order, and what was told makes up the table.
 */

import { afterEach, expect, test } from "vitest";
import { endAll, type Running, StoreFolder, start, until } from "../helpers/engine-processes.ts";
import type { WatchOrder } from "./watch-child.ts";
import { ITEMS, Item, openItems } from "./watch-store.ts";

interface Told {
  readonly type: string;
  readonly key: number;
  readonly row: { readonly id: number; readonly version: number; readonly text: string };
  readonly position: string;
}

const folder = new StoreFolder();

afterEach(async () => {
  endAll();
  await folder.remove();
});

class Watcher {
  readonly told: Told[] = [];
  #running: Running | undefined;
  #rest = "";

  start(path: string, from: string): void {
    const order: WatchOrder = { path, role: "watcher", from: this.told.at(-1)?.position ?? from };
    this.#running = start("watch-child", order);
    this.#rest = "";
    this.#running.child.stdout!.on("data", (text: string) => {
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop()!;
      for (const line of lines) this.told.push(JSON.parse(line) as Told);
    });
  }

  async kill(): Promise<void> {
    this.#running!.child.kill("SIGKILL");
    await this.#running!.ended;
  }

  async end(): Promise<void> {
    this.#running!.child.stdin!.end();
    const { code, stderr } = await this.#running!.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  }
}

test("writers and watchers are killed: every change is told once, in order", async () => {
  const { path } = folder;
  const db = await openItems(path, { durability: "lazy", keepLogMs: Number.POSITIVE_INFINITY });
  const own = db.watch(Item);
  await own.ready();
  const begin = own.position;
  const watcher = new Watcher();
  const writers: Running[] = [];
  const write = (seed: number): void => {
    writers.push(start("watch-child", { path, role: "writer", seed } satisfies WatchOrder));
  };
  try {
    write(1);
    write(2);
    watcher.start(path, begin);
    for (let round = 0; round < 4; round++) {
      const before = watcher.told.length;
      await until("changes to be told", () => watcher.told.length >= before + 60);
      const victim = writers.shift()!;
      victim.child.kill("SIGKILL");
      await victim.ended;
      write(3 + round);
      if (round % 2 === 1) {
        await watcher.kill();
        watcher.start(path, begin);
      }
      if (round === 2) await db.checkpoint();
    }
    for (const each of writers) each.child.stdin!.end();
    for (const each of writers) expect((await each.ended).stderr).toBe("");
    // The last change of all, which those before it precede.
    const last = ITEMS + 1;
    db.transactSync((tx) => tx.insert(Item, { id: last, version: 1, text: "last" }));
    await until("the last change to be told", () => watcher.told.at(-1)?.key === last);
    await watcher.end();
    expectWhole(watcher.told, db.scan(Item).toArray());
    // One that was there all the time, and one that reads all of it now, tell the same.
    for (const feed of [own, db.watch(Item, { from: begin })]) {
      const again: Told[] = [];
      for await (const { type, key, row, position } of feed) {
        again.push({ type, key, row, position });
        if (key === last) break;
      }
      expect(again).toEqual(watcher.told);
    }
  } finally {
    await db.close();
  }
});

function expectWhole(told: readonly Told[], table: readonly Told["row"][]): void {
  const rows = new Map<number, Told["row"]>();
  const versions = new Map<number, number>();
  for (const { type, key, row, position } of told) {
    const before = versions.get(key) ?? 0;
    expect(type === "insert", position).toBe(!rows.has(key));
    expect(row.version, position).toBe(type === "delete" ? before : before + 1);
    versions.set(key, row.version);
    if (type === "delete") rows.delete(key);
    else rows.set(key, row);
  }
  expect([...rows.values()].sort((a, b) => a.id - b.id)).toEqual(table);
}
