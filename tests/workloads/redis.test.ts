/** All workloads on Redis, through the contract that the suite uses. */

import { dirname } from "node:path";
import { afterEach, describe, expect, test, vi } from "vitest";
import { redisDriver } from "../../benchmarks/engines/redis/driver.ts";
import { holdsForEngine } from "./engine-contract.ts";

holdsForEngine({
  driver: redisDriver,
  inFlight: [16, 1],
  transactions: 600,
  folderOf: ({ socketFile }) => dirname(String(socketFile)),
  isServer: true,
});

describe("not installed", () => {
  afterEach(() => vi.unstubAllEnvs());

  test("is missing, with the reason", async () => {
    vi.stubEnv("PATH", "/nowhere");
    const options = { durability: "none", processes: 1, inFlight: 1, bytes: 0 } as const;
    const started = await redisDriver.start(options);
    expect(started).toEqual({ available: false, missing: "redis-server is not installed" });
  });
});
