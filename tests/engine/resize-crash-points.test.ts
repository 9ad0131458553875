/**
 * A store is made smaller and larger again, and whoever does it dies before or after any atomic step of
 * that: no row is lost, no memory is lost, and no memory is handed out twice. Another executor has the
 * store open all the time and knows free cells in what is given back.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import { dieAt } from "../helpers/engine-atomics.ts";
import { SHARINGS } from "../helpers/engine-store.ts";
import {
  atEachStep,
  fill,
  PER_STORE,
  REGIONS,
  shrink,
  shrinkBeside,
  stageOf,
  valueAt,
} from "../helpers/resize-stage.ts";

describe.each(SHARINGS)("%s", (sharing) => {
  test("whoever makes the store smaller dies at any step", () => {
    const nothing = (): void => {};
    atEachStep(sharing, nothing, ({ dying }) => {
      expect(shrink(dying, 1)).toBe(true);
    });
  });

  test("whoever creates a region again that was given back dies at any step", () => {
    atEachStep(
      sharing,
      ({ other }) => {
        expect(shrink(other, 1)).toBe(true);
        other.memory.raiseLimit(REGIONS);
      },
      ({ dying }) => {
        expect(dying.memory.createRegion(1, dying.slot)).toBe("created");
        expect(dying.memory.createRegion(2, dying.slot)).toBe("created");
      },
    );
  });

  test("a smaller store is full earlier, and what is in it stays", () => {
    const { store, dying, other, kept } = stageOf(sharing);
    try {
      expect(shrink(dying, 2)).toBe(true);
      expect(other.slabs.blocks.count).toBe(2 * other.memory.control.unitsPerRegion);
      expect(fill(other, 0)).toHaveLength((2 * PER_STORE) / REGIONS - kept.length);
      expect(shrink(dying, 1)).toBe(false);
      expect(dying.memory.control.regionLimit).toBe(2);
      for (const [value, cell] of kept.entries()) expect(valueAt(other, cell)).toBe(value);
    } finally {
      store.dispose();
    }
  });

  test("one who takes memory before the limit is lowered, or by the old limit, keeps it", () => {
    shrinkBeside(sharing, "before");
    shrinkBeside(sharing, "after");
  });

  test("one who was about to create a region sees that there may be no more", () => {
    const { store, dying, other } = stageOf(sharing);
    try {
      expect(shrink(other, 1)).toBe(true);
      expect(dying.memory.createRegion(1, dying.slot)).toBe("too many");
      expect(dying.memory.regionCount).toBe(1);
      // And the other way round: whoever lowers the limit sees one who is at it, and leaves it alone.
      other.memory.raiseLimit(REGIONS);
      expect(dieAt(2, "before", () => dying.memory.createRegion(1, dying.slot))).toBe(true);
      expect(shrink(other, 1)).toBe(false);
      expect(other.memory.control.regionLimit).toBe(REGIONS);
      store.kill(dying);
      other.sweep();
      expect(shrink(other, 1)).toBe(true);
    } finally {
      store.dispose();
    }
  });
});
