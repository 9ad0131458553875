/** Commands on sets answer as redis-server does, byte by byte. */

import { describe, test } from "vitest";
import { temporaryStores } from "../../helpers/store.ts";
import { SideBySide } from "./against-redis.ts";
import { setSteps } from "./sets-commands.ts";

const stores = temporaryStores();

describe("random commands on sets", () => {
  test.each([2, 3] as const)("of integers, in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(setSteps(false), 6_000, protocol);
  });

  test.each([2, 3] as const)("of anything, in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(setSteps(true), 6_000, protocol);
  });
});
