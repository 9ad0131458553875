/**
 * The models of hardware give back the rates that they are made of, through queues and coroutines:
 * requests per second and machine in virtual time. And simulated FaSST against simulated FaRM: the
 * papers' direction, and their size within a factor of 1.5.
 */

import { describe, expect, test } from "vitest";
import {
  FARM_2XCX3,
  FASST_CIB,
  FASST_CX3,
  type Hardware,
} from "../../simulation/fabric/hardware.ts";
import { compareFasstWithFarm, labTable } from "../../simulation/lab/fasst-against-farm.ts";
import type { Mix } from "../../simulation/lab/mixes.ts";
import { FARM, FASST, type Protocol } from "../../simulation/lab/scripts.ts";
import { measure } from "../../simulation/lab/throughput.ts";
import type { Random } from "../../src/runtime/random.ts";
import { makeTestMemory } from "../helpers/fabric-memory.ts";

const BRIEF = { machines: 5, warmUp: 1, measured: 2 };
const NOTHING: Mix = { name: "requests", next: () => ({ steps: [] }) };

/** Requests to `batch` machines at a time. */
function requests(as: "verb" | "message", replyBytes: number, batch: number): Protocol {
  return {
    name: as,
    rounds(_, self, machines, random) {
      const first = random.below(machines - 1);
      const round = Array.from({ length: batch }, (_each, i) => {
        const to = (self + 1 + ((first + i) % (machines - 1))) % machines;
        return { as, to, requestBytes: as === "verb" ? 12 : 16, replyBytes };
      });
      return [round];
    },
  };
}

/** Millions of requests per second and machine. */
function rate(hardware: Hardware, protocol: Protocol, batch: number): number {
  const made = makeTestMemory();
  const { memory } = made;
  const machines = Math.max(batch + 1, 4);
  // Enough requests under way to keep all busy; more only take longer to simulate.
  const coroutines = Math.max(2, Math.ceil(hardware.coroutines / batch));
  const model = { ...hardware, coroutines };
  const load = { hardware: model, protocol, mix: NOTHING, machines, seed: 1, memory };
  const { mtps } = measure({ ...load, warmUp: 2, measured: 4 });
  made.close();
  return mtps * batch;
}

/** The same machines, but the store takes no time. */
const raw = (hardware: Hardware): Hardware => ({
  ...hardware,
  host: { ...hardware.host, handlerUs: 0 },
});

const withCores = (hardware: Hardware, count: number): Hardware => ({
  ...hardware,
  host: { ...hardware.host, count },
});

function expectNear(value: number, paper: number): void {
  expect(value / paper).toBeGreaterThan(0.95);
  expect(value / paper).toBeLessThan(1.05);
}

describe("FaSST §3.3.1, Figure 1: requests per machine, in millions per second", () => {
  test("RPCs on CX3: 11.6 with one request a batch, 12.3 with eleven", () => {
    expectNear(rate(raw(FASST_CX3), requests("message", 32, 1), 1), 11.6);
    expectNear(rate(raw(FASST_CX3), requests("message", 32, 11), 11), 12.3);
  });

  test("RPCs on CIB: 34.9 and 40.9", () => {
    expectNear(rate(raw(FASST_CIB), requests("message", 32, 1), 1), 34.9);
    expectNear(rate(raw(FASST_CIB), requests("message", 32, 11), 11), 40.9);
  });

  test("READs on CX3: 11.2 small ones, 6.5 of 384 bytes", () => {
    expectNear(rate(raw(FASST_CX3), requests("verb", 32, 1), 1), 11.2);
    expectNear(rate(raw(FASST_CX3), requests("verb", 384, 1), 1), 6.5);
  });

  test("READs on CIB: 51.2 small ones, 23.1 of 384 bytes", () => {
    expectNear(rate(raw(FASST_CIB), requests("verb", 32, 1), 1), 51.2);
    expectNear(rate(raw(FASST_CIB), requests("verb", 384, 1), 1), 23.1);
  });
});

describe("FaSST §4.5: requests per core, in millions per second", () => {
  test("a core of CIB: 3.4 with one request a batch, 4.0 with three, 4.3 with eleven", () => {
    const oneCore = withCores(raw(FASST_CIB), 1);
    expectNear(rate(oneCore, requests("message", 32, 1), 1), 3.4);
    expectNear(rate(oneCore, requests("message", 32, 3), 3), 4.0);
    expectNear(rate(oneCore, requests("message", 32, 11), 11), 4.3);
  });

  test("FaRM's RPCs: 5 on 16 cores; its READs 4 times as many, where the NICs let them", () => {
    expectNear(rate(raw(FARM_2XCX3), requests("message", 32, 1), 1), 5);
    const { nic } = FARM_2XCX3;
    const free = { ...raw(FARM_2XCX3), nic: { ...nic, verbUs: 0.001 } };
    expectNear(rate(free, requests("verb", 32, 1), 1), 20);
  });
});

describe("FaSST against FaRM, simulated", () => {
  const result = compareFasstWithFarm(BRIEF);
  const row = (name: string) => {
    const found = result.rows.find(({ workload }) => workload === name);
    if (found === undefined) throw new Error(`no workload ${name}`);
    return found;
  };

  test("TATP: FaSST is ahead, as in the paper (1.87 times), within a factor of 1.5", () => {
    const { ratio, factor } = row("TATP");
    expect(ratio).toBeGreaterThan(1);
    expect(factor).toBeLessThan(1.5);
  });

  test("O(1,0): FaSST is ahead with half the hardware (1.25 times), within a factor of 1.5", () => {
    const { ratio, factor, fasst, farm } = row("O(1,0)");
    expect(ratio).toBeGreaterThan(1);
    expect(factor).toBeLessThan(1.5);
    // §6.1: bound by the NIC; and no transaction of FaRM takes a core of another machine.
    expect(fasst.nicsBusy).toBeGreaterThan(0.9);
    expect(farm.messagesPerTransaction).toBe(0);
  });

  test("O(4,2): the gap is larger still, as FaSST §6.1 expects", () => {
    expect(row("O(4,2)").ratio).toBeGreaterThan(row("O(1,0)").ratio);
  });

  test("rates by themselves are within a factor of 1.5 of those that the paper has", () => {
    for (const { paper, fasst, farm, fasstOnCib } of result.rows) {
      const pairs = [
        [fasst.mtps, paper.fasst],
        [farm.mtps, paper.farm],
        [fasstOnCib.mtps, paper.fasstOnCib],
      ];
      for (const [mine, theirs] of pairs) {
        if (mine === undefined || theirs === undefined) continue;
        expect(Math.max(mine / theirs, theirs / mine)).toBeLessThan(1.5);
      }
    }
  });

  test("what a transaction sends is what the papers' protocols send", () => {
    const sent = (protocol: Protocol, reads: number, writes: number) =>
      protocol
        .rounds({ steps: [{ reads, writes }] }, 0, 8, { next: () => 0xffffffff, below } as Random)
        .map((round) => `${round.length} ${round[0].as}s`);
    let machine = 0;
    const below = (limit: number): number => machine++ % limit;
    // FaSST §5, Figure 6: read (and lock), validate, log, backups, primaries.
    expect(sent(FASST, 1, 0)).toEqual(["1 messages"]);
    expect(sent(FASST, 4, 0)).toEqual(["4 messages", "4 messages"]);
    const rounds = [4, 2, 2, 4, 2].map((count) => `${count} messages`);
    expect(sent(FASST, 2, 2)).toEqual(rounds);
    // FaRM §3.4: read, prepare at primaries and replicas, validate, replicas, primaries.
    expect(sent(FARM, 1, 0)).toEqual(["1 verbs"]);
    expect(sent(FARM, 4, 0)).toEqual(["4 verbs", "4 verbs"]);
    const phases = ["4 verbs", "6 messages", "2 verbs", "4 messages", "2 messages"];
    expect(sent(FARM, 2, 2)).toEqual(phases);
  });

  test("the same seed gives the same figures, and a table shows them", () => {
    const again = compareFasstWithFarm({ ...BRIEF, workloads: ["TATP"] });
    expect(again.rows).toEqual([row("TATP")]);
    expect(labTable(result)).toContain("TATP");
    expect(JSON.parse(JSON.stringify(result)).rows).toHaveLength(4);
  });
});
