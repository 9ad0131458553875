/** Inserts at the right edge from several processes do not abort each other into a standstill. */

import { afterAll, expect, test } from "vitest";
import { endAll, StoreFolder } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { indexProblems } from "../helpers/process-rest.ts";
import type { EdgeOrder, EdgeReport } from "./index-edge-child.ts";
import { Counter, Event, openEvents } from "./index-edge-store.ts";

const PROCESSES = 4;
const LEAST_ROWS = 300;

afterAll(endAll);

test.each(["counter", "interleaved"] as const)(
  "all get on, no row is lost: ids: %s",
  async (ids) => {
    const folder = new StoreFolder();
    const db = await openEvents(folder.path);
    try {
      db.transactSync((tx) => tx.insert(Counter, { id: 0, next: 0 }));
      const children = Array.from({ length: PROCESSES }, (_, which) => {
        const order: EdgeOrder = {
          path: folder.path,
          ids,
          which,
          processes: PROCESSES,
          durationMs: 1_200,
          leastRows: LEAST_ROWS,
        };
        return new Talker("index-edge-child", order);
      });
      await Promise.all(children.map((child) => child.hear("ready")));
      for (const child of children) child.go();
      const reports = await Promise.all(children.map((child) => child.report<EdgeReport>()));

      const rows = reports.map((report) => report.ids.length);
      for (const each of rows) expect(each, String(rows)).toBeGreaterThanOrEqual(LEAST_ROWS);
      const expected = reports.flatMap((report) => report.ids).sort((a, b) => a - b);
      expect(new Set(expected).size).toBe(expected.length);
      const found = [...db.scan(Event)];
      expect(found.map(({ id }) => id)).toEqual(expected);
      expect(found.every(({ id, kind }) => kind === id % 7)).toBe(true);
      if (ids === "counter") expect(db.get(Counter, 0)?.next).toBe(expected.length);
      expect(indexProblems(db, Event)).toEqual([]);
    } finally {
      endAll();
      await db.close();
      await folder.remove();
    }
  },
);
