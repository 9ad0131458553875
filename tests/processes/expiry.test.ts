/**
 * docs/FAULTS.md, "The life of a store": a process that sweeps expired rows is killed before and after its atomic
 * steps. Rows and index entries go together, no lock and no role is left, another goes on; and those
 * who watch the table are told of each row's end once.
 */

import { afterEach, expect, test } from "vitest";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { WHENS } from "../helpers/crash-steps.ts";
import { endAll, StoreFolder, start } from "../helpers/engine-processes.ts";
import { SOAK } from "../helpers/seed.ts";
import type { SweepOrder } from "./expiry-child.ts";
import { openSessions, Session } from "./expiry-store.ts";

const folder = new StoreFolder();
/** Of the steps of a sweep, how many are tried; all of them in a soak. */
const TRIED = 10;
/** By how many steps two sweeps may differ: looks at the epoch, which others move. */
const SPARE_STEPS = 8;

afterEach(async () => {
  endAll();
  await folder.remove();
});

test("SIGKILL at the steps of a sweep", async () => {
  const { path } = folder;
  const sweep = async (order: Omit<SweepOrder, "path">) => {
    const ended = await start("expiry-child", { ...order, path }).ended;
    if (ended.signal !== "SIGKILL" && ended.code !== 0) throw new Error(ended.stderr);
    return ended;
  };
  const first = await openSessions(path);
  const { position } = first.watch(Session);
  await first.close();
  const whole = await sweep({ round: 0, step: 0, when: "before" });
  const { steps, swept } = JSON.parse(whole.stdout) as { steps: number; swept: number };
  expect(swept).toBe(3);
  expect(steps).toBeGreaterThan(20);
  let round = 1;
  const stride = SOAK > 1 ? 1 : Math.ceil(steps / TRIED);
  for (let step = 1, i = 0; step <= steps; step += stride, i++) {
    const when = WHENS[i % 2];
    const point = `killed ${when} step ${step} of ${steps}`;
    const { signal } = await sweep({ round, step, when });
    if (step <= steps - SPARE_STEPS) expect(signal, point).toBe("SIGKILL");
    const db = await openSessions(path);
    expect((await db.verify()).problems, point).toEqual([]);
    expect(db.count(Session), point).toBe(round + 1);
    const waits = db.stats().counters.lockWaits;
    localDatabase(db).expiry.sweep(60_000);
    expect((await db.inspect("session")).rows, point).toBe(round + 1);
    expect(db.stats().counters.lockWaits, `${point}: waited for a lock`).toBe(waits);
    await db.close();
    round++;
  }
  const db = await openSessions(path);
  const expected = 7 * round;
  const told = new Map<number, string[]>();
  let count = 0;
  for await (const { type, key } of db.watch(Session, { from: position })) {
    told.set(key, [...(told.get(key) ?? []), type]);
    if (++count === expected) break;
  }
  for (const [key, types] of told) {
    expect(types, `row ${key}`).toEqual(key % 4 === 3 ? ["insert"] : ["insert", "delete"]);
  }
  await db.close();
});
