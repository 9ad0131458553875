/** Slots, leases and regions: who may be here, and that failing or dying here costs nobody else. */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import { Executor } from "../../src/engine/executor.ts";
import { NO_ADDRESS } from "../../src/memory/address.ts";
import { journalName } from "../../src/memory/store-memory.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { createAccounts, sumOf } from "../helpers/engine-accounts.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore, SHARINGS, SMALL } from "../helpers/engine-store.ts";

/** A region's state word while a slot creates it (memory/store-memory.ts). */
const CREATING = 2;

function withStore(
  sharing: (typeof SHARINGS)[number],
  work: (store: EngineStore) => void,
  geometry = SMALL,
): void {
  const store = new EngineStore(geometry, sharing);
  try {
    work(store);
  } finally {
    store.dispose();
  }
}

describe.each(SHARINGS)("executors: %s", (sharing) => {
  test("each has a slot of its own; when all are taken, the next is told", () => {
    withStore(sharing, (store) => {
      const executors = Array.from({ length: SMALL.slots }, () => store.open());
      expect(new Set(executors.map(({ slot }) => slot)).size).toBe(SMALL.slots);
      expect(() => store.open()).toThrow(expect.objectContaining({ code: "SITU_FULL" }) as Error);
      store.close(executors[3]);
      expect(store.open().slot).toBe(3);
      store.kill(executors[5]);
      expect(store.open().slot).toBe(5);
      expect(() => store.open()).toThrow("slots");
    });
  });

  test("a living executor is nobody's to recover; a dead one is recovered once", () => {
    withStore(sharing, (store) => {
      const [one, two, three] = [store.open(), store.open(), store.open()];
      expect(one.recoverIfDead(two.slot)).toBe(false);
      expect(one.recoverIfDead(one.slot)).toBe(false);
      expect(one.recoverIfDead(-1)).toBe(false);
      expect(one.recoverIfDead(SMALL.slots)).toBe(false);
      store.kill(two);
      expect(one.holders()).toHaveLength(3);
      expect(one.sweep()).toBe(1);
      expect(three.sweep()).toBe(0);
      expect(one.holders().map(({ slot }) => slot)).toEqual([one.slot, three.slot]);
    });
  });

  test("one who fails to open leaves the slot to others", () => {
    withStore(sharing, (store) => {
      const memory = store.attachMemory();
      const leases = store.leases();
      const { segments } = memory;
      const refuse = (name: string): never => {
        throw new SituError("SITU_NO_MEMORY", `no room for ${name}`);
      };
      Object.defineProperty(memory, "segments", {
        value: {
          place: segments.place,
          create: (name: string, bytes: number) =>
            name === journalName(0) ? refuse(name) : segments.create(name, bytes),
          attach: (name: string, bytes: number) => segments.attach(name, bytes),
        },
      });
      expect(() => Executor.open(memory, leases)).toThrow("no room for journal-0");
      const next = store.open();
      expect(next.slot).toBe(0);
      expect(next.holders()).toHaveLength(1);
      expect(sumOf(next, createAccounts(next, 3, 5))).toBe(15);
      leases.close();
      memory.close();
    });
  });

  test("the region that a dead one was creating is created by another", () => {
    withStore(sharing, (store) => {
      const [dead, survivor] = [store.open(), store.open()];
      const { control } = store.memory;
      Atomics.store(control.i32, control.regionStateAt(0), CREATING + dead.slot);
      store.kill(dead);
      // Whoever waits until the deadline gets an error.
      expect(survivor.slabs.allocate(0, NO_ADDRESS)).not.toBe(NO_ADDRESS);
    });
  });

  test("the same when a third one has recovered the dead one in the meantime", () => {
    withStore(sharing, (store) => {
      const [dead, survivor, third] = [store.open(), store.open(), store.open()];
      const { control } = store.memory;
      Atomics.store(control.i32, control.regionStateAt(0), CREATING + dead.slot);
      let recovered = false;
      const off = hookAtomics({
        after: ({ operation, index }) => {
          if (operation !== "compareExchange" || index !== control.regionStateAt(0)) return;
          if (recovered) return;
          // The survivor has seen that somebody is at it.
          recovered = true;
          store.kill(dead);
          third.sweep();
        },
      });
      try {
        expect(survivor.slabs.allocate(0, NO_ADDRESS)).not.toBe(NO_ADDRESS);
      } finally {
        off();
      }
      expect(recovered).toBe(true);
    });
  });

  test("regions are created when they are needed, and mapped by the others when they meet them", () => {
    withStore(sharing, (store) => {
      const [one, two] = [store.open(), store.open()];
      expect(one.slabs.blocks.count).toBe(0);
      const accounts = [createAccounts(one, 10, 1)];
      expect(two.memory.regions.filter((region) => region !== undefined)).toHaveLength(0);
      expect(sumOf(two, accounts[0])).toBe(10);
      expect(two.memory.regions.filter((region) => region !== undefined)).toHaveLength(1);
      const large = Array.from({ length: 7 }, () => {
        const cell = one.slabs.allocate(255, NO_ADDRESS);
        expect(cell).not.toBe(NO_ADDRESS);
        return cell;
      });
      expect(new Set(large).size).toBe(7);
      expect(one.slabs.blocks.nextRegion()).toBe(-1);
    });
  });
});
