/** Random lives of clusters that copy partitions under writes. */

import { afterEach, describe, expect, test, vi } from "vitest";
import { simulateCopying } from "../../simulation/copying/simulate.ts";
import { Touched } from "../../src/protocols/copying/touched.ts";
import { NodeTable } from "../../src/tables/served/served-table.ts";
import { SOAK } from "../helpers/seed.ts";

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i + 1);

afterEach(() => {
  vi.restoreAllMocks();
});

describe("copies are equal in the end, whatever was written and whoever died meanwhile", () => {
  test.each([
    [false, 3 * SOAK],
    [true, 2 * SOAK],
  ])("hasty: %s", async (isHasty, seeds) => {
    let rows = 0;
    let interrupted = 0;
    for (const seed of upTo(seeds)) {
      const report = await simulateCopying({ seed, isHasty });
      expect(report.problems, `seed ${seed}`).toEqual([]);
      expect(report.committed).toBeGreaterThan(100);
      rows += report.rows;
      interrupted += report.interrupted;
    }
    expect(rows).toBeGreaterThan(100 * seeds);
    expect(interrupted).toBeGreaterThan(0);
  });
});

/** A simulation that finds nothing proves little. */
describe("planted bugs are found", () => {
  async function isFound(seeds: number, first = 1): Promise<boolean> {
    for (let seed = first; seed < first + seeds; seed++) {
      if ((await simulateCopying({ seed })).problems.length > 0) return true;
    }
    return false;
  }

  test("copied rows that overwrite what records have put", async () => {
    vi.spyOn(NodeTable.prototype, "insert").mockImplementation(function (this: NodeTable, tx, row) {
      this.write(tx, row);
      return true;
    });
    expect(await isFound(20)).toBe(true);
  });

  test("removed rows that come back", async () => {
    vi.spyOn(Touched.prototype, "wasRemoved").mockReturnValue(false);
    // Rare: a row must be read, removed, and not put again, while it is on its way.
    expect(await isFound(20, 23)).toBe(true);
  });

  test("partitions that are not cleared", async () => {
    const nothing = { place: new Int32Array(0), isDone: true, rows: 0 };
    vi.spyOn(NodeTable.prototype, "clear").mockReturnValue(nothing);
    expect(await isFound(20)).toBe(true);
  });
});
