/**
 * Faults of the media log: a device file is lost, or its copy, and whoever rebuilds it is killed at each step. All rows are
 * there afterwards, with memory and without, and the next one rebuilds the file.
 */

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { isDeviceFile, REBUILD_STEPS } from "../../src/device/page-file.ts";
import type { Database } from "../../src/index.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { SOAK } from "../helpers/seed.ts";
import { memoryOf } from "../helpers/store.ts";
import type { RebuildDeath } from "./device-rebuild-child.ts";
import { ITEMS, Item, moveAll, openItems, workIn, writeRound } from "./device-store.ts";

/** So long that a file is rebuilt in more than one part. */
const LONG_ROW = 40_000;
const folder = new StoreFolder();
const media = mkdtempSync(join(tmpdir(), "situ-test-"));

afterEach(async () => {
  endAll();
  await folder.remove();
  rmSync(media, { recursive: true, force: true });
});

function pagesIn(path: string): string[] {
  return readdirSync(join(path, "device")).filter((name) => name !== "media-log");
}

function roundsIn(db: Database): number[] {
  const rows = db.scan(Item).toArray();
  expect(rows).toHaveLength(ITEMS);
  return [...new Set(rows.map((row) => row.round))];
}

test("SIGKILL at each step of rebuilding a lost device file, or its copy", async () => {
  const { path } = folder;
  let round = 1;
  let db = await openItems(path, media);
  writeRound(db, round, LONG_ROW);
  moveAll(db);
  await db.close();
  for (const lost of [path, media]) {
    for (const [i, crashAt] of REBUILD_STEPS.entries()) {
      if (lost === media && SOAK === 1 && i % 3 !== 1) continue;
      const point = `${lost === path ? "the file" : "the copy"}, ${crashAt}`;
      const [name] = pagesIn(lost).filter(isDeviceFile);
      rmSync(join(lost, "device", name));
      const order: RebuildDeath = { path, crashAt, round: ++round };
      const { signal, stderr } = await start("device-rebuild-child", order).ended;
      expect(signal, `${point}: ${stderr}`).toBe("SIGKILL");
      // What was cut off is never taken for the file.
      const isThere = crashAt === "renamed" || crashAt === "kept";
      expect(pagesIn(lost), point).toEqual([isThere ? name : `${name}.new`]);
      if (i % 2 === 0) rmSync(memoryOf(path), { recursive: true });
      db = await openItems(path);
      expect(roundsIn(db), point).toEqual([round]);
      moveAll(db);
      expect(workIn(db).failure, point).toBeUndefined();
      expect(roundsIn(db), point).toEqual([round]);
      expect((await db.verify()).problems, point).toEqual([]);
      expect(pagesIn(lost), point).toEqual([name]);
      await db.close();
    }
  }
});
