/**
 * Faults of the device: a process that moves rows to the device, or looks after the space there, is killed
 * before and after its atomic steps. No row is lost or old, no lock and no role is left, another goes on.
 */

import { afterEach, expect, test } from "vitest";
import { WHENS } from "../helpers/crash-steps.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { SOAK } from "../helpers/seed.ts";
import type { MoveOrder } from "./device-child.ts";
import {
  ACCOUNTS,
  Account,
  ITEMS,
  Item,
  moveAll,
  openAccounts,
  openItems,
  sumOf,
  workIn,
} from "./device-store.ts";

const folder = new StoreFolder();
/** Of the steps of a move, how many are tried; all of them in a soak. */
const TRIED = 8;

afterEach(async () => {
  endAll();
  await folder.remove();
});

test.each([
  ["a move", false],
  ["a move in the background", true],
])("SIGKILL at the steps of %s", async (_, later) => {
  const { path } = folder;
  const move = async (order: Omit<MoveOrder, "path" | "later">) => {
    const ended = await start("device-child", { ...order, later, path }).ended;
    if (ended.signal !== "SIGKILL" && ended.code !== 0) throw new Error(ended.stderr);
    return ended;
  };
  const whole = await move({ round: 1, step: 0, when: "before" });
  const { steps } = JSON.parse(whole.stdout) as { steps: number };
  expect(steps).toBeGreaterThan(20);
  const stride = SOAK > 1 ? 1 : Math.ceil(steps / TRIED);
  for (let step = 1, round = 2; step <= steps; step += stride, round++) {
    const when = WHENS[round % 2];
    const point = `killed ${when} step ${step} of ${steps}`;
    await move({ round, step, when });
    const db = await openItems(path);
    expect((await db.verify()).problems, point).toEqual([]);
    const rows = db.scan(Item).toArray();
    expect(rows, point).toHaveLength(ITEMS);
    expect(
      rows.every((row) => row.round === round),
      point,
    ).toBe(true);
    moveAll(db);
    expect(workIn(db).failure, point).toBeUndefined();
    expect(db.get(Item, 0)?.text.length, point).toBe(20_000);
    expect((await db.verify()).problems, point).toEqual([]);
    await db.close();
  }
});

test("several processes transfer amounts, move rows and compact pages, and one is killed", async () => {
  const { path } = folder;
  const db = await openAccounts(path);
  const transfers = 400 * SOAK;
  const children = [1, 2, 3].map((seed) =>
    start("device-sum-child", { path, seed, transfers: seed === 1 ? 2 ** 30 : transfers }),
  );
  const [first, ...others] = children;
  const ended = await Promise.all(others.map((child) => child.ended));
  first.child.kill("SIGKILL");
  await first.ended;
  for (const { code, stderr, stdout } of ended) {
    expect(code, stderr).toBe(0);
    expect((JSON.parse(stdout) as { moved: number }).moved).toBeGreaterThan(0);
  }
  expect(sumOf(db.scan(Account))).toBe(0);
  expect(db.count(Account)).toBe(ACCOUNTS);
  expect((await db.verify()).problems).toEqual([]);
  await db.close();
});
