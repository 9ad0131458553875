/** Commands of all groups on the same few keys: each meets values of all types. */

import { describe, test } from "vitest";
import { temporaryStores } from "../../helpers/store.ts";
import { type Dice, SideBySide, type Step, step } from "./against-redis.ts";
import { hashSteps } from "./hashes-commands.ts";
import { keyStep } from "./keys-commands.ts";
import { setSteps } from "./sets-commands.ts";
import { stringStep } from "./strings-commands.ts";

const stores = temporaryStores();

const GROUPS = [stringStep, keyStep, hashSteps(true), setSteps(true)];
/**
 * Redis counts and shows keys whose time is over until it has removed them; and its encoding of a
 * string tells how it was made.
 */
const LEFT_OUT = ["dbsize", "randomkey", "object"];

function anyStep(dice: Dice): Step {
  const chosen = dice.one(GROUPS)(dice);
  return LEFT_OUT.includes(String(chosen.args[0])) ? step("ping") : chosen;
}

describe("commands of all groups", () => {
  test.each([2, 3] as const)("in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(anyStep, 5_000, protocol);
  });
});
