/** Keys that `insert` fills in, in several processes, of which some are killed at a random step. */

import { afterAll, expect, test } from "vitest";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import type { NumbersOrder } from "./numbers-child.ts";
import { Item, openItems } from "./numbers-store.ts";

const ROWS = 300;
/** Some while a range is taken, some in between. */
const LAST_STEPS = [0, 9, 40, 333, 2_000];

afterAll(endAll);

test("all rows that were inserted are there, each with a number of its own", async () => {
  const folder = new StoreFolder();
  const { path } = folder;
  try {
    const first = await openItems(path);
    const known = first.insert(Item, { by: 99, position: 0 });
    const ends = LAST_STEPS.map((dieAtStep, by) => {
      const order: NumbersOrder = { path, by, rows: ROWS, dieAtStep };
      return start("numbers-child", order).ended;
    });
    const codes = (await Promise.all(ends)).map(({ code, signal }) => signal ?? code);
    expect(codes).toEqual([0, ...LAST_STEPS.slice(1).map(() => "SIGKILL")]);
    for (const by of LAST_STEPS.keys()) {
      const rows = first.scan(Item, { index: "byMaker", eq: [by] }).toArray();
      // From the first on without a gap, in growing numbers.
      expect(rows.map(({ position }) => position)).toEqual([...rows.keys()]);
      expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).sort((a, b) => a - b));
      if (by === 0) expect(rows.length).toBe(ROWS);
    }
    expect((await first.verify()).problems).toEqual([]);
    const highest = Math.max(
      ...first
        .scan(Item)
        .toArray()
        .map(({ id }) => id),
    );
    await first.close();
    // From the log, or from memory: the counter goes on.
    const again = await openItems(path);
    expect(again.insert(Item, { by: 99, position: 1 })).toBeGreaterThan(Math.max(highest, known));
    await again.close();
  } finally {
    endAll();
    await folder.remove();
  }
});
