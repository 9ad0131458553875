/** Commands on hashes answer as redis-server does, byte by byte. */

import { describe, test } from "vitest";
import { temporaryStores } from "../../helpers/store.ts";
import { SideBySide } from "./against-redis.ts";
import { hashSteps } from "./hashes-commands.ts";

const stores = temporaryStores();

describe("random commands on hashes", () => {
  test.each([2, 3] as const)("that are packed, in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(hashSteps(false), 6_000, protocol);
  });

  test.each([2, 3] as const)("that become large, in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(hashSteps(true), 6_000, protocol);
  });
});
