/** After a deployment many processes open the store with a new declaration at once: one migrates. */

import { afterAll, expect, test } from "vitest";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { Item, openItems } from "./migrate-store.ts";

const ROWS = 1_000;

interface Started {
  readonly rows: number;
  readonly isDefault: boolean;
  readonly pids: readonly number[];
}

afterAll(endAll);

test("the one that migrates dies, and another one goes on; all have the new table", async () => {
  const folder = new StoreFolder();
  const { path } = folder;
  const db = await openItems(path, { durability: "none" });
  try {
    db.transactSync((tx) => {
      for (let id = 0; id < ROWS; id++) tx.insert(Item, { id, owner: `o${id % 7}`, amount: id });
    });
    // Whoever of them comes first is killed in the middle of its work; the last one lives in any case.
    const children = [true, true, false].map(
      (dies) => new Talker("migrate-start-child", { path, dies }),
    );
    await Promise.all(children.map((child) => child.hear("ready")));
    for (const child of children) child.go();
    const ended = await Promise.all(children.map(({ running }) => running.ended));
    const killed = ended.filter(({ signal }) => signal === "SIGKILL");
    const lived = children.filter((_, i) => ended[i].signal === null);
    for (const [i, { code, stderr }] of ended.entries()) {
      if (ended[i].signal === null) expect(code, stderr).toBe(0);
    }
    const told = new Set<number>();
    for (const child of lived) {
      const { rows, isDefault, pids } = await child.report<Started>();
      expect([rows, isDefault]).toEqual([ROWS, true]);
      for (const pid of pids) told.add(pid);
    }
    expect(lived.length).toBe(children.length - killed.length);
    expect(lived.length).toBeGreaterThan(0);
    // Somebody has told how far it was.
    expect(told.size).toBeGreaterThan(0);
    expect(db.stats().tables[0].migration).toBeUndefined();
    expect(db.stats().tables[0].fields.extra).toBe("u16");
    expect(db.get(Item, 5)).toEqual({ id: 5, owner: "o5", amount: 5 });
    expect((await db.inspect("item")).migration).toBeUndefined();
    expect((await db.verify()).problems).toEqual([]);
  } finally {
    endAll();
    await db.close();
    await folder.remove();
  }
});
