/** lmdb, as the suite runs it: in this thread one after the other, or several in flight, batched. */

import { expect, test } from "vitest";
import { lmdbDriver } from "../../benchmarks/engines/lmdb/driver.ts";
import { manyInFlight, oneAfterTheOther } from "../../benchmarks/engines/lmdb/transactions.ts";
import { holdsForEngine } from "./engine-contract.ts";

holdsForEngine({ driver: lmdbDriver, inFlight: [1, 16], transactions: 1_000 });

/** Runs bodies at once, and counts them. */
function fakeEnvironment() {
  const ran = { sync: 0, queued: 0 };
  const env = {
    transactionSync<R>(body: () => R): R {
      ran.sync++;
      return body();
    },
    async transaction<R>(body: () => R): Promise<R> {
      await Promise.resolve();
      ran.queued++;
      return body();
    },
  };
  return { ran, env };
}

test("one after the other: the body runs in transactionSync, with its own parameters", () => {
  const { ran, env } = fakeEnvironment();
  const list = (...all: number[]): string => all.join(" ");
  const inTransaction = oneAfterTheOther(env)((a: number, b: number, c: number, d: number) =>
    list(a, b, c, d),
  );
  expect(inTransaction(1, 2, 3, 4)).toBe("1 2 3 4");
  expect(inTransaction(5, 6, 7, 8)).toBe("5 6 7 8");
  expect(ran).toEqual({ sync: 2, queued: 0 });
});

test("many in flight: each keeps its own parameters until it runs", async () => {
  const { ran, env } = fakeEnvironment();
  const inTransaction = manyInFlight(env)((a: number, b: string) => `${a}${b}`);
  expect(await Promise.all([inTransaction(1, "a"), inTransaction(2, "b")])).toEqual(["1a", "2b"]);
  expect(ran).toEqual({ sync: 0, queued: 2 });
});

test("the settings say what was chosen", async () => {
  const settings = async (durability: "none" | "lazy" | "sync", inFlight: number) => {
    const started = await lmdbDriver.start({ durability, inFlight, processes: 1, bytes: 1_000 });
    if (!started.available) throw new Error(started.missing);
    await started.value.stop();
    return started.value.settings;
  };
  expect(await settings("none", 1)).toMatch(/noSync.*transactionSync.*msgpack/);
  expect(await settings("none", 64)).toMatch(/noSync.*transaction\(\)/);
  expect(await settings("lazy", 1)).toMatch(/noMetaSync.*transactionSync/);
  expect(await settings("sync", 64)).toMatch(/synced in the commit.*transaction\(\)/);
});
