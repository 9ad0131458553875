/** Leases between the manager and the nodes: who may serve, until when, and who is suspected. */

import { describe, expect, test } from "vitest";
import { LeaseGate } from "../../src/cluster/membership/lease-gate.ts";
import { FIRST_GRACE_LEASES, LEASE_DRIFT } from "../../src/runtime/limits.ts";
import { configurationWith, LEASE_MS, LeaseGroup } from "./lease-group.ts";

const THREE = ["0.0", "1.0", "2.0"];
const first = configurationWith(1, THREE);

function threeNodes(): LeaseGroup {
  const group = new LeaseGroup(first);
  group.deliver();
  return group;
}

describe("who may serve", () => {
  test("all, after each node has asked once", () => {
    const group = threeNodes();
    expect(THREE.map((each) => group.hasLease(each))).toEqual([true, true, true]);
    group.pass(10 * LEASE_MS);
    expect(THREE.map((each) => group.hasLease(each))).toEqual([true, true, true]);
    expect(group.node("0.0").suspects()).toEqual([]);
  });

  test("nobody in the next configuration by what it had in the last", () => {
    const group = threeNodes();
    const next = configurationWith(2, THREE);
    for (const each of THREE) group.node(each).adopt(next);
    expect(THREE.map((each) => group.hasLease(each))).toEqual([false, false, false]);
    group.deliver();
    expect(THREE.map((each) => group.hasLease(each))).toEqual([true, true, true]);
  });

  test("a node without the manager, only until its lease ends", () => {
    const group = threeNodes();
    group.pass(LEASE_MS);
    group.reaches = (from, to) => from !== 1 && to !== 1;
    group.pass(2 * LEASE_MS);
    expect(THREE.map((each) => group.hasLease(each))).toEqual([true, false, true]);
    expect(group.node("0.0").suspects()).toEqual([1]);
    expect(group.node("1.0").suspects()).toEqual([0]);
    expect(group.node("2.0").suspects()).toEqual([]);
  });

  test("the manager without a majority does not, nor does anybody whom it could reach", () => {
    const five = ["0.0", "1.0", "2.0", "3.0", "4.0"];
    const group = new LeaseGroup(configurationWith(1, five));
    group.pass(LEASE_MS);
    expect(five.every((each) => group.hasLease(each))).toBe(true);
    const isMinority = (node: number): boolean => node <= 1;
    group.reaches = (from, to) => isMinority(from) === isMinority(to);
    group.pass(3 * LEASE_MS);
    expect(five.filter((each) => group.hasLease(each))).toEqual([]);
  });

  test("a node alone always", () => {
    const group = new LeaseGroup(configurationWith(1, ["0.0"]));
    group.nowMs += 100 * LEASE_MS;
    expect(group.hasLease("0.0")).toBe(true);
    group.node("0.0").adopt(configurationWith(2, ["1.0"], 1));
    expect(group.hasLease("0.0")).toBe(false);
  });
});

describe("who is suspected", () => {
  test("nobody who may still be starting, but whoever was heard and is not any more", () => {
    const group = new LeaseGroup(first);
    group.reaches = (from, to) => from !== 2 && to !== 2;
    group.pass(10 * LEASE_MS);
    expect(group.node("0.0").suspects()).toEqual([]);
    expect(group.hasLease("1.0")).toBe(true);
    group.reaches = () => false;
    group.pass(2 * LEASE_MS);
    expect(group.node("0.0").suspects()).toEqual([1]);
    group.pass(FIRST_GRACE_LEASES * LEASE_MS);
    expect(group.node("0.0").suspects()).toEqual([1, 2]);
  });

  test("in a later configuration, whoever is silent for the time of a lease", () => {
    const group = threeNodes();
    const next = { ...configurationWith(2, THREE), unsettled: [first.nodes] };
    for (const each of THREE) group.node(each).adopt(next);
    group.reaches = (from) => from !== 2;
    group.pass(LEASE_MS + 1);
    expect(group.node("0.0").suspects()).toEqual([2]);
  });
});

describe("one that stood still", () => {
  test("suspects nobody whose renewals it has not read yet, or who stood still as well", () => {
    for (const stalled of THREE) {
      const group = threeNodes();
      group.pass(LEASE_MS);
      group.nowMs += 2 * LEASE_MS;
      expect(group.hasLease(stalled)).toBe(false);
      expect(group.node(stalled).suspects()).toEqual([]);
      group.node(stalled).tick();
      expect(group.node(stalled).suspects()).toEqual([]);
      group.deliver();
      for (let ticks = 0; ticks < 20; ticks++) {
        group.pass(LEASE_MS / 10);
        expect(group.node(stalled).suspects()).toEqual([]);
      }
      expect(group.hasLease(stalled)).toBe(true);
    }
  });

  test("suspects those who stay silent once it has listened for a lease", () => {
    const group = threeNodes();
    group.pass(LEASE_MS);
    group.reaches = (from, to) => from !== 1 && to !== 1;
    group.nowMs += 2 * LEASE_MS;
    group.pass(LEASE_MS / 2);
    expect(group.node("0.0").suspects()).toEqual([]);
    group.pass(LEASE_MS / 2);
    expect(group.node("0.0").suspects()).toEqual([1]);
  });

  test("again and again, it still suspects who is gone", () => {
    const group = threeNodes();
    group.pass(LEASE_MS);
    group.reaches = (from, to) => from !== 1 && to !== 1;
    for (let times = 0; times < 5; times++) {
      group.nowMs += LEASE_MS;
      group.pass(LEASE_MS / 5);
    }
    expect(group.node("0.0").suspects()).toEqual([1]);
  });
});

describe("the holder stops before the other thinks that it has", () => {
  test("it counts from when it sent the request, less the drift of its clock", () => {
    const group = new LeaseGroup(first);
    const sentMs = group.nowMs;
    group.nowMs += 400;
    group.deliver();
    expect(group.node("1.0").deadlineMs).toBeLessThanOrEqual(sentMs + LEASE_MS * (1 - LEASE_DRIFT));
    expect(group.hasLease("1.0")).toBe(true);
  });

  test("what the manager grants ends before what it holds", () => {
    const group = threeNodes();
    group.pass(LEASE_MS);
    // From now on, the manager is heard and hears nothing.
    group.reaches = (from) => from === 0;
    const endsMs = group.node("0.0").deadlineMs;
    group.pass(LEASE_MS);
    for (const each of ["1.0", "2.0"]) expect(group.node(each).deadlineMs).toBeLessThan(endsMs);
  });

  test("promises to those who left are over when they may not serve any more", () => {
    const group = threeNodes();
    group.pass(LEASE_MS);
    const next = configurationWith(2, ["0.0", "1.0"]);
    group.node("0.0").adopt(next);
    const remainingMs = group.node("0.0").remainingMs();
    expect(remainingMs).toBeGreaterThan(group.node("2.0").deadlineMs - group.nowMs);
    group.nowMs += remainingMs;
    expect(group.hasLease("2.0")).toBe(false);
    expect(group.node("0.0").remainingMs()).toBe(0);
  });

  test("there is none to wait for where only members hold leases", () => {
    const group = threeNodes();
    group.node("1.0").adopt(configurationWith(2, THREE, 2));
    expect(group.node("1.0").remainingMs()).toBe(0);
    const other = threeNodes();
    other.node("1.0").adopt(configurationWith(2, ["1.0", "2.0"], 2));
    expect(other.node("1.0").remainingMs()).toBeGreaterThan(0);
  });

  test("a node that has restarted may have promised something to anybody", () => {
    const group = threeNodes();
    const next = configurationWith(2, ["0.0", "1.1", "2.0"], 2);
    const restarted = group.start("1.1", next, LEASE_MS);
    expect(restarted.remainingMs()).toBeGreaterThan(LEASE_MS);
    group.nowMs += LEASE_MS * (1 + LEASE_DRIFT);
    expect(restarted.remainingMs()).toBe(0);
  });

  test("to a node that has restarted, a lease of its earlier life is one of somebody who left", () => {
    const group = threeNodes();
    group.node("0.0").adopt(configurationWith(2, ["0.0", "1.1", "2.0"]));
    expect(group.node("0.0").remainingMs()).toBeGreaterThan(0);
  });
});

describe("old messages", () => {
  test("a grant that comes late counts from its own request", () => {
    const group = new LeaseGroup(first);
    group.deliver();
    group.pass(LEASE_MS);
    const grants: { to: number; message: Parameters<typeof receive>[0] }[] = [];
    const receive = group.node("1.0").receive.bind(group.node("1.0"));
    group.node("1.0").tick();
    group.nowMs += LEASE_MS / 5;
    group.node("1.0").tick();
    // The manager answers the request; the answer is kept for a while.
    for (const { to, message } of group.sent.splice(0)) {
      if (to === 0) group.node("0.0").receive(message);
    }
    grants.push(...group.sent.splice(0).filter(({ to }) => to === 1));
    expect(grants.length).toBeGreaterThan(0);
    group.nowMs += 2 * LEASE_MS;
    for (const { message } of grants) receive(message);
    expect(group.hasLease("1.0")).toBe(false);
    expect(group.node("1.0").deadlineMs).toBeLessThan(group.nowMs);
  });

  test("of another configuration, or between other lives, count for nothing", () => {
    const group = threeNodes();
    const node = group.node("1.0");
    const message = {
      configurationId: 1,
      from: 0,
      instance: "0.0",
      toInstance: "1.0",
      request: 99,
      grant: 0,
      grantMs: 0,
    };
    expect(node.receive({ ...message, configurationId: 2 })).toBe("newer");
    expect(node.receive({ ...message, instance: "0.1" })).toBe("stranger");
    expect(node.receive({ ...message, toInstance: "1.1" })).toBe("stranger");
    expect(node.receive({ ...message, from: 2, instance: "2.0" })).toBe("stranger");
    expect(group.sent).toEqual([]);
    expect(node.receive(message)).toBe("same");
    expect(group.sent).toHaveLength(1);
    // And the same request once more.
    expect(node.receive(message)).toBe("same");
    expect(group.sent).toHaveLength(1);
    node.adopt(configurationWith(2, THREE));
    group.sent.length = 0;
    expect(node.receive(message)).toBe("older");
    expect(group.sent).toEqual([]);
  });

  test("a grant of what was never asked for, or for ever, gives nothing more", () => {
    const group = threeNodes();
    const before = group.node("1.0").deadlineMs;
    const message = { configurationId: 1, from: 0, instance: "0.0", toInstance: "1.0", request: 0 };
    group.node("1.0").receive({ ...message, grant: 77, grantMs: LEASE_MS });
    expect(group.node("1.0").deadlineMs).toBe(before);
    group.node("1.0").receive({ ...message, grant: 1, grantMs: 1e9 });
    expect(group.node("1.0").deadlineMs).toBeLessThan(group.nowMs + LEASE_MS);
  });
});

describe("the gate", () => {
  test("is closed at first, and open until the deadline in a committed configuration", () => {
    const gate = new LeaseGate();
    expect(gate.mayServe(1, 0)).toBe(false);
    gate.extend(1, 100);
    const elsewhere = new LeaseGate(gate.buffer);
    expect(elsewhere.mayServe(1, 99)).toBe(false);
    expect(elsewhere.hasLease(1, 99)).toBe(true);
    gate.commit(1);
    expect(elsewhere.mayServe(1, 99)).toBe(true);
    expect(elsewhere.mayServe(1, 100)).toBe(false);
    expect(elsewhere.mayServe(2, 99)).toBe(false);
    gate.extend(2, 200);
    expect(elsewhere.mayServe(1, 99)).toBe(false);
    expect(elsewhere.mayServe(2, 199)).toBe(false);
    gate.commit(2);
    expect(elsewhere.mayServe(2, 199)).toBe(true);
    gate.close();
    expect(elsewhere.mayServe(2, 0)).toBe(false);
  });
});
