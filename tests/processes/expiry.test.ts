/**
 * docs/FAULTS.md, "The life of a store": a process that sweeps expired rows is killed before and after its atomic
 * steps. Rows and index entries go together, no lock and no role is left, another goes on; and those
 * who watch the table are told of each row's end once.
 */

import { afterEach, expect, test } from "vitest";
import { localDatabase } from "../../src/database/local/local-database.ts";
import { EXPIRY_SWEEPER } from "../../src/memory/control.ts";
import { WHENS } from "../helpers/crash-steps.ts";
import { endAll, StoreFolder, start, until } from "../helpers/engine-processes.ts";
import { SOAK } from "../helpers/seed.ts";
import type { SweepOrder } from "./expiry-child.ts";
import { NEVER, openSessions, Session } from "./expiry-store.ts";

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

/** Rows that others write meanwhile, some of which have expired already. */
const OTHERS_FROM = 1_000_000;
const OTHERS = 5;

test.each(["strict-serializable", "snapshot"] as const)(
  "SIGKILL at the steps of a sweep, while others write and sweep (%s)",
  async (isolation) => {
    const { path } = folder;
    await using db = await openSessions(path);
    const live = new Set<number>();
    let turn = 0;
    const write = (): void => {
      const id = OTHERS_FROM + (turn % OTHERS);
      const isLive = (turn >> 1) % 2 === 0;
      const until = isLive ? NEVER : 1_000n;
      db.transactSync(
        (tx) => {
          if (tx.get(Session, id) !== undefined && !live.has(id)) throw new Error("it had ended");
          tx.put(Session, { id, user: `user ${turn % 3}`, until });
        },
        { isolation },
      );
      if (isLive) live.add(id);
      else live.delete(id);
      turn++;
    };
    const stride = SOAK > 1 ? 1 : 9;
    let survivors = 0;
    let kills = 0;
    for (let round = 0, step = 2; survivors < 2; round++, step += stride) {
      const when = WHENS[round % 2];
      const point = `killed ${when} step ${step}, ${isolation}`;
      let isOver = false;
      const child = start("expiry-child", { path, round, step, when }).ended.finally(() => {
        isOver = true;
      });
      while (!isOver) {
        write();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const { signal, code, stderr } = await child;
      if (signal !== "SIGKILL" && code !== 0) throw new Error(stderr);
      if (signal === "SIGKILL") kills++;
      else survivors++;
      expect(db.count(Session), point).toBe(round + 1 + live.size);
      // The role comes back when somebody notices that its holder is dead.
      const { slot, memory } = localDatabase(db).executor;
      await until("a sweeper", () => {
        localDatabase(db).expiry.sweep(60_000);
        return [0, slot + 1].includes(memory.control.i32[EXPIRY_SWEEPER]);
      });
      localDatabase(db).expiry.sweep(60_000);
      expect((await db.inspect("session")).rows, point).toBe(round + 1 + live.size);
      expect((await db.verify()).problems, point).toEqual([]);
    }
    expect(kills).toBeGreaterThan(2);
  },
);
