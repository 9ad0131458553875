/** The clock of leases, where the system has one that counts sleep and where it has none. */

import { expect, test } from "vitest";
import { leaseClock, WallCheckedClock } from "../../src/fabric/lease-clock.ts";

test("it does not go back", () => {
  const clock = leaseClock();
  const before = clock.nowMs();
  expect(before).toBeGreaterThan(0);
  expect(clock.nowMs()).toBeGreaterThanOrEqual(before);
  expect(clock.atLeastMs()).toBeGreaterThanOrEqual(before);
});

test("without such a clock, sleep is what the wall clock says", () => {
  let [monotonicMs, wallMs] = [1_000, 50_000];
  const clock = new WallCheckedClock(
    () => monotonicMs,
    () => wallMs,
  );
  expect(clock.nowMs()).toBe(1_000);
  monotonicMs += 10;
  wallMs += 10;
  expect(clock.nowMs()).toBe(1_010);
  // Asleep for a minute.
  wallMs += 60_000;
  expect(clock.nowMs()).toBe(61_010);
  // Whoever has promised something does not believe it.
  expect(clock.atLeastMs()).toBe(1_010);
  // The clock is set back, and again to the right time: never back, and rather too late.
  wallMs -= 5_000;
  expect(clock.nowMs()).toBe(61_010);
  wallMs += 5_000;
  expect(clock.nowMs()).toBe(66_010);
});
