/** What the manager changes of a configuration by itself, and when. */

import { beforeEach, expect, test } from "vitest";
import type { Configuration } from "../../src/cluster/configuration.ts";
import { Changes } from "../../src/cluster/membership/changes.ts";
import type { HasFilled } from "../../src/cluster/membership/messages.ts";
import { type PlacedConfiguration, withFilled } from "../../src/cluster/planning/planning.ts";
import { MAX_CHANGES, STEP_PAUSE_LEASES } from "../../src/runtime/limits.ts";
import { configurationWith } from "./lease-group.ts";

const LIVES = ["0.0", "1.0", "2.0"];
const base = configurationWith(5, LIVES);
const PAUSE_MS = STEP_PAUSE_LEASES * base.leaseMs;

/** Two partitions; node 2 fills those given, since a configuration. */
function configuration(filling: Readonly<Record<number, number>>): PlacedConfiguration {
  const placement = [0, 1].map((partition) => {
    const since = filling[partition];
    return {
      primary: 0,
      backups: [1],
      filling: since === undefined ? [] : [2],
      primarySince: 1,
      replicasSince: since ?? 1,
    };
  });
  return { ...base, backups: 2, partitions: 2, placement };
}

function said(partitions: number[], configurationId = 5, instance = "2.0"): HasFilled {
  return { what: "filled", configurationId, instance, partitions };
}

let changes: Changes;
let steps: number;

beforeEach(() => {
  steps = 0;
  changes = new Changes({
    fill: (current, filled) => withFilled(current as PlacedConfiguration, filled),
    step: () => {
      steps++;
      return undefined;
    },
  });
});

test("what somebody wants is due at once, and one of them is done at a time", () => {
  const current = configuration({});
  const wanted: Configuration = { ...current, configurationId: 6 };
  expect(changes.isDue(current, 0)).toBe(false);
  changes.want("nothing", () => undefined);
  changes.want("something", () => wanted);
  changes.want("more", () => wanted);
  expect(changes.isDue(current, 0)).toBe(true);
  expect(changes.next(current)).toBe(wanted);
  expect(changes.next(current)).toBe(wanted);
  expect([changes.isDue(current, 0), steps]).toEqual([false, 0]);
  changes.want("nothing", () => undefined);
  expect([changes.next(current), steps]).toEqual([undefined, 0]);
});

test("so many wait, and no more", () => {
  const current = configuration({});
  let asked = 0;
  const count = (): undefined => {
    asked++;
  };
  for (let i = 0; i <= MAX_CHANGES; i++) changes.want(`change ${i}`, count);
  changes.want("change 0", count);
  expect([changes.next(current), asked]).toEqual([undefined, MAX_CHANGES]);
});

test("a step is due after a pause; where none is better, the configuration stays", () => {
  const current = configuration({});
  expect(changes.isDue(current, PAUSE_MS - 1)).toBe(false);
  expect(changes.isDue(current, PAUSE_MS)).toBe(true);
  expect([changes.next(current), steps]).toEqual([undefined, 1]);
  expect(changes.isDue(current, 10 * PAUSE_MS)).toBe(false);
  expect(changes.isDue({ ...current, configurationId: 6 }, PAUSE_MS)).toBe(true);
});

test("what is filled counts when all of it is, or after a pause; meanwhile there are no steps", () => {
  const current = configuration({ 0: 3, 1: 4 });
  expect(changes.isDue(current, PAUSE_MS)).toBe(false);
  expect([changes.next(current), steps]).toEqual([undefined, 0]);
  changes.filled(current, 2, said([1]));
  expect(changes.isDue(current, 0)).toBe(false);
  expect(changes.isDue(current, PAUSE_MS)).toBe(true);
  changes.filled(current, 2, said([0, 1]));
  expect(changes.isDue(current, 0)).toBe(true);
  const next = changes.next(current) as PlacedConfiguration;
  expect(next.placement).toMatchObject([
    { backups: [1, 2], filling: [] },
    { backups: [1, 2], filling: [] },
  ]);
  expect(changes.isDue(next, 0)).toBe(false);
});

test.each([
  ["of another node", 1, said([0])],
  ["of another life", 2, said([0], 5, "2.1")],
  ["that it does not fill", 2, said([1])],
  ["that is none", 2, said([7])],
  ["that it began to fill anew since it said so", 2, said([0], 3)],
])("a partition %s does not count", (_, from, message) => {
  const current = configuration({ 0: 4 });
  changes.filled(current, from, message);
  expect(changes.isDue(current, PAUSE_MS)).toBe(false);
});

test("what was said counts no more when the partition has changed", () => {
  changes.filled(configuration({ 0: 4 }), 2, said([0]));
  const later = { ...configuration({ 0: 6 }), configurationId: 6 };
  expect([changes.isDue(later, PAUSE_MS), changes.next(later)]).toEqual([false, undefined]);
});
