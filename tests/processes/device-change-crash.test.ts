/**
 * Faults of updates in the device's threads: the process is killed at every step of one, or only the thread ends. All rows are changed or
 * none is, nothing is locked or announced by the dead, pages come back, and others go on.
 */

import { afterEach, expect, test } from "vitest";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { hasDeviceJobs } from "../../src/tables/device/elements/device-jobs.ts";
import { CRASH_POINTS } from "../../src/tables/device/elements/messages.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { ITEMS, Item, moveAll, openItems, workIn, writeRound } from "./device-store.ts";

const folder = new StoreFolder();

afterEach(async () => {
  endAll();
  await folder.remove();
});

test.each([
  ["while another process has the store open", true],
  ["when the store is opened again", false],
])("SIGKILL at each step of an update, seen %s", async (_, staysOpen) => {
  const { path } = folder;
  let round = 1;
  let open = await openItems(path);
  writeRound(open, round);
  moveAll(open);
  if (!staysOpen) await open.close();
  for (const crashAt of CRASH_POINTS) {
    const { signal, stderr } = await start("device-change-child", {
      path,
      crashAt,
      round: round + 1,
    }).ended;
    expect(signal, stderr).toBe("SIGKILL");
    if (!staysOpen) open = await openItems(path);
    const rounds = new Set(
      open
        .scan(Item)
        .toArray()
        .map((row) => row.round),
    );
    const isApplied = crashAt === "applied" || crashAt === "ended";
    if (isApplied) round++;
    expect([...rounds], crashAt).toEqual([round]);
    // The next one is in nobody's way, and finds the space of the dead.
    const { matched } = await open.updateWhere(Item, { place: "device", set: { round: ++round } });
    expect(matched, crashAt).toBe(ITEMS);
    // Its own last step, and what the dead had announced.
    const { executor } = localDatabase(open);
    executor.sweep();
    while (hasDeviceJobs(executor)) await new Promise((resolve) => setTimeout(resolve, 1));
    moveAll(open);
    expect(workIn(open).failure, crashAt).toBeUndefined();
    expect((await open.verify()).problems, crashAt).toEqual([]);
    expect(open.get(Item, 0)?.text.length, crashAt).toBe(20_000);
    if (!staysOpen) await open.close();
  }
  if (staysOpen) await open.close();
});

test("a thread that ends at a step of an update: all or nothing, and the next update has another one", async () => {
  const open = await openItems(folder.path);
  const { elements, executor } = localDatabase(open);
  let round = 1;
  writeRound(open, round);
  moveAll(open);
  // Not after its answer: the next update may be given to a thread that is about to end, which is that update's death.
  for (const at of CRASH_POINTS.filter((each) => each !== "ended")) {
    elements.death = { at, of: "thread" };
    const update = open.updateWhere(Item, { place: "device", set: { round: round + 1 } });
    await expect(update, at).rejects.toMatchObject({ code: "SITU_UNKNOWN_OUTCOME" });
    if (at === "applied") round++;
    const rounds = new Set([...open.scan(Item)].map((row) => row.round));
    expect([...rounds], at).toEqual([round]);
    elements.death = undefined;
    const { matched } = await open.updateWhere(Item, { place: "device", set: { round: ++round } });
    expect(matched, at).toBe(ITEMS);
    do {
      executor.sweep();
      await new Promise((resolve) => setTimeout(resolve, 1));
    } while (hasDeviceJobs(executor));
    moveAll(open);
    expect(workIn(open).failure, at).toBeUndefined();
    expect((await open.verify()).problems, at).toEqual([]);
  }
  await open.close();
});
