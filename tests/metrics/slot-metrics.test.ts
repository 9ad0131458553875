/** What executors count in shared memory: buckets, sums over all slots, and gauges that end. */

import { afterEach, describe, expect, it } from "vitest";
import {
  BUCKET_ENDS_US,
  bucketOf,
  CLIENTS,
  COMMAND_CALLS,
  COMMAND_FAILURES,
  COMMAND_TIMES,
  MetricSums,
  SYNC_TRANSACTIONS,
} from "../../src/engine/metrics.ts";
import {
  COUNTER,
  CommandMetrics,
  gatewaySums,
} from "../../src/gateways/metrics/command-metrics.ts";
import { METRIC_WORDS } from "../../src/memory/control.ts";
import { MAX_COMMANDS, MAX_SNAPSHOTS } from "../../src/runtime/limits.ts";
import { EngineStore, SHARINGS } from "../helpers/engine-store.ts";
import { check, fc } from "../helpers/property.ts";

let store: EngineStore;
afterEach(() => store?.dispose());

describe("buckets", () => {
  it("each ends at a power of two of microseconds, which belongs to it", () => {
    for (let power = 0; power <= 24; power++) {
      const endMs = 2 ** power / 1e3;
      expect(bucketOf(endMs)).toBe(power);
      expect(bucketOf(endMs + 0.001)).toBe(power + 1);
    }
    expect(bucketOf(0)).toBe(0);
    expect(bucketOf(-1)).toBe(0);
    expect(bucketOf(1e12)).toBe(25);
    expect(bucketOf(Number.POSITIVE_INFINITY)).toBe(25);
    expect(BUCKET_ENDS_US).toHaveLength(26);
  });

  it("any duration lies in the bucket that it belongs to", () => {
    check(
      fc.property(fc.integer({ min: 0, max: 2 ** 26 }), (us) => {
        const bucket = bucketOf(us / 1e3);
        // A microsecond more or less comes from dividing and multiplying by a thousand.
        expect(us).toBeLessThanOrEqual(BUCKET_ENDS_US[bucket] + 1);
        expect(us).toBeGreaterThanOrEqual((BUCKET_ENDS_US[bucket - 1] ?? -1) - 1);
      }),
      2_000,
    );
  });
});

describe.each(SHARINGS)("sums over all slots, in %s", (sharing) => {
  it("blocks overlap neither one another nor the snapshots, and lie in the segment", () => {
    store = new EngineStore(undefined, sharing);
    const { control } = store.memory;
    const { slots } = control.geometry;
    expect(control.metricsAt(0)).toBeGreaterThanOrEqual(control.snapshotAt(MAX_SNAPSHOTS));
    expect(control.metricsAt(0) % 16).toBe(0);
    expect(control.metricsAt(1) - control.metricsAt(0)).toBe(METRIC_WORDS);
    expect(control.metricsAt(slots)).toBeLessThanOrEqual(control.i32.length);
  });

  it("what one has counted stays when it leaves or dies, and the next owner goes on", () => {
    store = new EngineStore(undefined, sharing);
    const first = store.open();
    const second = store.open();
    for (const executor of [first, second]) {
      const commands = new CommandMetrics(executor.metrics);
      commands.count(3, 5);
      commands.count(MAX_COMMANDS - 1);
      commands.failed(3);
      commands.observe(0.1, 7);
      commands.add(COUNTER.bytesSent, 100);
      commands.add(COUNTER.bytesReceived, 10);
      commands.add(COUNTER.keyspaceHits, 2);
      commands.add(COUNTER.keyspaceMisses, 1);
      commands.add(COUNTER.keysExpired, 4);
      commands.add(COUNTER.connectionsReceived, 1);
      commands.add(COUNTER.connectionsRejected, 1);
      commands.clients(6);
    }
    const expectSums = (times: number, clients: number): void => {
      const sums = new MetricSums(store.memory.control);
      expect(sums.callsOf(3)).toBe(5 * times);
      expect(sums.callsOf(MAX_COMMANDS - 1)).toBe(times);
      expect(sums.failuresOf(3)).toBe(times);
      expect(sums.failuresOf(0)).toBe(0);
      const { buckets, count, sumMs } = sums.histogram(COMMAND_TIMES);
      expect([count, buckets[7]]).toEqual([7 * times, 7 * times]);
      expect(sumMs).toBeCloseTo(0.7 * times);
      expect(gatewaySums(sums)).toEqual({
        connectionsReceived: times,
        connectionsRejected: times,
        bytesReceived: 10 * times,
        bytesSent: 100 * times,
        keysExpired: 4 * times,
        keyspaceHits: 2 * times,
        keyspaceMisses: times,
      });
      expect(sums.clients).toBe(clients);
    };
    expectSums(2, 12);

    store.kill(first);
    expect(second.sweep()).toBe(1);
    expectSums(2, 6);

    const third = store.open();
    expect(third.slot).toBe(first.slot);
    expectSums(2, 6);
    third.metrics.set(CLIENTS, 3);
    expectSums(2, 9);
    store.close(third);
    expectSums(2, 6);

    // Nobody has recovered it when its slot is claimed again.
    store.kill(second);
    const claimed: number[] = [];
    while (!claimed.includes(second.slot)) claimed.push(store.open().slot);
    expectSums(2, 0);
  });

  it("a command that has no number is not counted as something else", () => {
    store = new EngineStore(undefined, sharing);
    const commands = new CommandMetrics(store.open().metrics);
    commands.count(MAX_COMMANDS);
    commands.failed(MAX_COMMANDS);
    const sums = new MetricSums(store.memory.control);
    for (let command = 0; command < MAX_COMMANDS; command++) {
      expect(sums.callsOf(command) + sums.failuresOf(command)).toBe(0);
    }
    expect(COMMAND_FAILURES - COMMAND_CALLS).toBe(MAX_COMMANDS);
    expect(sums.histogram(SYNC_TRANSACTIONS).count).toBe(0);
  });

  it("counting after the store was closed does no harm", () => {
    store = new EngineStore(undefined, sharing);
    const executor = store.open();
    const commands = new CommandMetrics(executor.metrics);
    store.close(executor);
    commands.count(1);
    commands.observe(1, 1);
    commands.clients(1);
    expect(new MetricSums(store.memory.control).callsOf(1)).toBe(0);
  });
});
