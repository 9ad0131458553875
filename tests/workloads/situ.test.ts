/**
 * All workloads on a Situ store of this machine, through the contract that the suite uses. And checks
 * that can fail: what is planted in the store is found.
 */

import { type Database, open } from "situ";
import { describe, expect, test } from "vitest";
import { situDriver } from "../../benchmarks/engines/situ/driver.ts";
import type { WorkloadName } from "../../benchmarks/suite/workloads.ts";
import { Checking } from "../../workloads/smallbank/store.ts";
import { SpecialFacility, Subscriber } from "../../workloads/tatp/store.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { holdsForEngine } from "./engine-contract.ts";
import { type RunOptions, runSessions, withEngine } from "./engine-run.ts";

const SEED = fixedSeed(20_263);

holdsForEngine({ driver: situDriver, inFlight: [1, 16], transactions: 2_000 });

describe("what is wrong in the store is found", () => {
  /** A worker's engine, and beside it the same store for one who breaks it. */
  async function planted(workload: WorkloadName, plant: (db: Database) => void): Promise<string> {
    let problems: string[] = [];
    const options: RunOptions = {
      workload,
      size: 200,
      inFlight: 1,
      processes: 1,
      durability: "none",
    };
    await withEngine(situDriver, options, async ({ engine, place, workload: run }) => {
      const session = run.session(engine, { seed: SEED, lane: 0, lanes: 1 });
      await runSessions([session], 500, 1);
      const path = place.path as string;
      const db = await open({ path, tables: run.tables, durability: "none" });
      try {
        plant(db);
      } finally {
        await db.close();
      }
      problems = await run.check(engine.rows, session.tally());
    });
    return problems.join("\n");
  }

  test("SmallBank: a deposit that another transaction overwrote", async () => {
    const problems = await planted("smallbank", (db) => {
      db.transactSync((tx) => {
        const { custid, bal } = tx.get(Checking, 1)!;
        tx.put(Checking, { custid, bal: bal - 130 });
      });
    });
    expect(problems).toContain(": -130");
  });

  test("TATP: rows without their subscriber, a subscriber without facilities", async () => {
    const problems = await planted("tatp", (db) => {
      db.transactSync((tx) => {
        tx.delete(Subscriber, 1);
        for (let type = 1; type <= 4; type++) tx.delete(SpecialFacility, [2, type]);
        tx.put(SpecialFacility, {
          s_id: 201,
          sf_type: 1,
          is_active: true,
          error_cntrl: 0,
          data_a: 0,
          data_b: "ABCDE",
        });
      });
    });
    expect(problems).toContain("subscriber: 1 is lost");
    expect(problems).toContain("special_facility: no row of subscriber 2");
    expect(problems).toContain("special_facility: a row of 201, who is no subscriber");
  });
});
