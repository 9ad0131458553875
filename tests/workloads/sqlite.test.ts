/** SQLite, as the suite runs it: one after the other, in memory or in a file with a log. */

import { describe, expect, test } from "vitest";
import { Connection } from "../../benchmarks/engines/sqlite/connection.ts";
import { sqliteDriver } from "../../benchmarks/engines/sqlite/driver.ts";
import type { Sqlite } from "../../benchmarks/engines/sqlite/module.ts";
import { pragmasFor } from "../../benchmarks/engines/sqlite/settings.ts";
import { holdsForEngine } from "./engine-contract.ts";

holdsForEngine({ driver: sqliteDriver, inFlight: [1], transactions: 1_000 });

describe("the write lock of another process", () => {
  const none = {} as Sqlite;
  const busy = Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
  const stale = Object.assign(new Error("stale"), { code: "SQLITE_BUSY_SNAPSHOT" });

  test("is waited for, and counted", () => {
    const connection = new Connection(none, true);
    const failures = [busy, stale, busy];
    const add = connection.retried((a: number, b: number) => {
      const failure = failures.pop();
      if (failure !== undefined) throw failure;
      return a + b;
    });
    expect(add(1, 2)).toBe(3);
    expect(add(3, 4)).toBe(7);
    expect(connection.busy).toBe(3);
  });

  test("other errors are not tried again", () => {
    const connection = new Connection(none, true);
    let calls = 0;
    const fail = connection.retried(() => {
      calls++;
      throw Object.assign(new Error("full"), { code: "SQLITE_FULL" });
    });
    expect(() => fail()).toThrow("full");
    expect([calls, connection.busy]).toEqual([1, 0]);
  });
});

test("pragmas follow durability and processes", () => {
  const options = { inFlight: 1, bytes: 10 ** 9 };
  const alone = { ...options, processes: 1 };
  const shared = { ...options, processes: 2 };
  expect(pragmasFor({ ...alone, durability: "none" })).toContain("journal_mode = MEMORY");
  expect(pragmasFor({ ...shared, durability: "none" })).toContain("synchronous = OFF");
  expect(pragmasFor({ ...alone, durability: "lazy" })).toContain("synchronous = NORMAL");
  expect(pragmasFor({ ...alone, durability: "sync" })).toContain("synchronous = FULL");
  expect(pragmasFor({ ...alone, durability: "sync" })[0]).toBe("locking_mode = EXCLUSIVE");
  expect(pragmasFor({ ...shared, durability: "sync" })).not.toContain("locking_mode = EXCLUSIVE");
});
