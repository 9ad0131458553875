/** Kinds of numbers: the compiler keeps them apart, and what comes from outside is checked. */

import { expect, test } from "vitest";
import { type Epoch, epochFrom } from "../../src/engine/epoch.ts";
import type { SlotId } from "../../src/engine/slot.ts";
import { type ConfigurationId, type NodeId, nodeIdOf } from "../../src/fabric/fabric.ts";
import { MAX_EPOCH, MAX_NODES } from "../../src/runtime/limits.ts";
import { failureSync } from "../helpers/store.ts";

test("one kind does not pass for another", () => {
  const [node, slot, epoch, configuration]: [NodeId, SlotId, Epoch, ConfigurationId] = [1, 2, 3, 4];
  // @ts-expect-error a configuration is no node
  const asNode: NodeId = configuration;
  // @ts-expect-error a node is no slot
  const asSlot: SlotId = node;
  // @ts-expect-error a slot is no epoch
  const asEpoch: Epoch = slot;
  // @ts-expect-error an epoch is no configuration
  const asConfiguration: ConfigurationId = epoch;
  expect([asNode, asSlot, asEpoch, asConfiguration]).toEqual([4, 1, 2, 3]);
});

test("numbers from outside are checked", () => {
  expect([nodeIdOf(0), nodeIdOf(MAX_NODES - 1), epochFrom(0)]).toEqual([0, MAX_NODES - 1, 0]);
  for (const value of [-1, MAX_NODES, 0.5, Number.NaN]) {
    failureSync("SITU_PROTOCOL", () => nodeIdOf(value));
  }
  for (const value of [-1, MAX_EPOCH, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    failureSync("SITU_PROTOCOL", () => epochFrom(value));
  }
});
