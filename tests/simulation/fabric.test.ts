/** The simulated fabric by itself: virtual time, faults, torn reads, and the same run for a seed. */

import { describe, expect, test } from "vitest";
import type { SimulatedEndpoint } from "../../simulation/fabric/endpoint.ts";
import { SimulatedFabric, type SimulatedFabricOptions } from "../../simulation/fabric/fabric.ts";
import type { Fault } from "../../simulation/fabric/faults.ts";
import { PLAIN } from "../../simulation/fabric/hardware.ts";
import type { TraceLine } from "../../simulation/fabric/trace.ts";
import { CLIENT, type Incoming, type Request, type Ticket } from "../../src/fabric/fabric.ts";
import type { Reader, Writer } from "../../src/fabric/wire.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { PROGRESS_TIMEOUT_MS } from "../../src/runtime/limits.ts";

const ECHO = 16;
const ROUND_TRIP_US = 2 * PLAIN.wireUs;
const TIMEOUT_US = PROGRESS_TIMEOUT_MS * 1e3;

class Echo implements Request {
  readonly kind = ECHO;
  readonly value: number;
  readonly #fabric: SimulatedFabric;
  replies: number[] = [];
  errors: string[] = [];
  endedUs = -1;

  constructor(fabric: SimulatedFabric, value: number) {
    this.#fabric = fabric;
    this.value = value;
  }

  encode(out: Writer): void {
    out.word(this.value);
  }

  replied(reply: Reader): void {
    this.replies.push(reply.word());
    this.endedUs = this.#fabric.nowUs;
  }

  failed(why: SituError): void {
    this.errors.push(why.code);
    this.endedUs = this.#fabric.nowUs;
  }

  get ends(): number {
    return this.replies.length + this.errors.length;
  }
}

interface Setting {
  readonly fabric: SimulatedFabric;
  readonly node: SimulatedEndpoint;
  readonly client: SimulatedEndpoint;
  readonly served: number[];
  ask(value: number): Echo;
}

function setting(options: Partial<SimulatedFabricOptions> = {}): Setting {
  const fabric = new SimulatedFabric({ seed: 1, ...options });
  const served: number[] = [];
  const node = fabric.endpoint({
    self: 0,
    configurationId: 1,
    service: (incoming) => {
      const value = incoming.body.word();
      served.push(value);
      incoming.reply().word(value);
    },
  });
  const client = fabric.endpoint({ self: -1, configurationId: 1 });
  const ask = (value: number): Echo => {
    const echo = new Echo(fabric, value);
    client.send(0, echo);
    return echo;
  };
  return { fabric, node, client, served, ask };
}

describe("virtual time", () => {
  test("a request takes a round trip, and no more happens", () => {
    const { fabric, ask } = setting();
    const echo = ask(7);
    expect(echo.ends).toBe(0);
    fabric.run();
    expect(echo.replies).toEqual([7]);
    expect(echo.endedUs).toBe(ROUND_TRIP_US);
    // The time-out of the request has nothing to do, so nobody waits for it.
    expect(fabric.nowUs).toBe(ROUND_TRIP_US);
  });

  test("what is sent in one turn leaves in one piece, the replies too", () => {
    const { fabric, node, client, ask, served } = setting();
    for (let i = 0; i < 10; i++) ask(i);
    fabric.run();
    expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(client.counters.writes).toBe(1);
    expect(node.counters.writes).toBe(1);
    expect(client.counters.requestsSent).toBe(10);
    expect(node.counters.requestsServed).toBe(10);
  });

  test("timers happen in the order of their time, and can be cancelled", () => {
    const { fabric, client } = setting();
    const seen: string[] = [];
    client.clock.after(5, () => seen.push(`late ${client.clock.nowMs()}`));
    client.clock.after(1, () => seen.push(`early ${client.clock.nowMs()}`));
    client.clock.after(3, () => seen.push("never")).cancel();
    fabric.run();
    expect(seen).toEqual(["early 1", "late 5"]);
  });

  test("many timers that are cancelled leave no trace and no time", () => {
    const { fabric, client } = setting();
    let ran = 0;
    for (let i = 0; i < 10_000; i++) {
      const timer = client.clock.after(1 + (i % 100), () => ran++);
      if (i % 10 !== 0) timer.cancel();
    }
    fabric.run();
    expect(ran).toBe(1_000);
  });

  test("a clock that is fast sees more time pass, and its timers end earlier", () => {
    const fabric = new SimulatedFabric({ seed: 1 });
    const fast = fabric.endpoint({ self: 0, configurationId: 1, clockRate: 1.05 });
    let atUs = 0;
    fast.clock.after(105, () => {
      atUs = fabric.nowUs;
    });
    fabric.run();
    expect(atUs).toBeCloseTo(100_000, 6);
    expect(fast.clock.nowMs()).toBeCloseTo(105, 6);
  });

  test("run up to an instant stops there", () => {
    const { fabric, ask } = setting();
    const echo = ask(1);
    fabric.run(ROUND_TRIP_US - 1);
    expect(fabric.nowUs).toBe(ROUND_TRIP_US - 1);
    expect(echo.ends).toBe(0);
    fabric.run(ROUND_TRIP_US + 5);
    expect(echo.ends).toBe(1);
    expect(fabric.nowUs).toBe(ROUND_TRIP_US + 5);
  });

  test("programs with promises run with settle", async () => {
    const { fabric, client } = setting();
    const call = (value: number): Promise<number> =>
      new Promise((resolve, reject) => {
        client.send(0, {
          kind: ECHO,
          encode: (out) => out.word(value),
          replied: (reply) => resolve(reply.word()),
          failed: reject,
        });
      });
    let sum = 0;
    let isDone = false;
    const program = (async () => {
      for (let i = 1; i <= 5; i++) sum += await call(i);
      isDone = true;
    })();
    expect(await fabric.settle(() => isDone)).toBe(true);
    await program;
    expect(sum).toBe(15);
    expect(fabric.nowUs).toBe(5 * ROUND_TRIP_US);
    expect(await fabric.settle(() => false)).toBe(false);
  });
});

describe("who is who", () => {
  test("clients are told apart by their connections", () => {
    const fabric = new SimulatedFabric({ seed: 1 });
    const froms: { node: number; connection: number }[] = [];
    const closed: number[] = [];
    fabric.endpoint({
      self: 0,
      configurationId: 1,
      service: (incoming: Incoming) => {
        froms.push({ ...incoming.from });
        incoming.reply();
      },
      onConnectionClosed: (connection) => closed.push(connection),
    });
    const clients = [-1, -2].map((self) => fabric.endpoint({ self, configurationId: 1 }));
    const other = fabric.endpoint({ self: 1, configurationId: 1 });
    for (const each of [...clients, other]) {
      expect(each.self).toBe(each === other ? 1 : CLIENT);
      each.send(0, { kind: ECHO, encode: () => {}, replied: () => {}, failed: () => {} });
    }
    fabric.run();
    expect(froms.map(({ node }) => node)).toEqual([CLIENT, CLIENT, 1]);
    expect(new Set(froms.map(({ connection }) => connection)).size).toBe(3);
    void clients[1].close();
    fabric.run();
    expect(closed).toEqual([froms[1].connection]);
  });

  test("a ticket knows when nobody waits for it", () => {
    const fabric = new SimulatedFabric({ seed: 1 });
    const tickets: Ticket[] = [];
    fabric.endpoint({
      self: 0,
      configurationId: 1,
      service: (incoming) => tickets.push(incoming.defer()),
    });
    const client = fabric.endpoint({ self: -1, configurationId: 1 });
    const echo = new Echo(fabric, 1);
    client.send(0, echo);
    fabric.run(100);
    expect(tickets).toHaveLength(1);
    expect(tickets[0].isWanted).toBe(true);
    void client.close();
    fabric.run(200);
    expect(echo.errors).toEqual(["SITU_CLOSED"]);
    expect(tickets[0].isWanted).toBe(false);
    tickets[0].reply((out) => out.word(1));
    fabric.run();
    expect(echo.ends).toBe(1);
  });

  test("one who takes a closed node's place gets nothing that was meant for the other", () => {
    const { fabric, node, served, ask, client } = setting();
    const echo = ask(1);
    fabric.run(1);
    void node.close();
    const again: number[] = [];
    fabric.endpoint({
      self: 0,
      configurationId: 1,
      service: (incoming) => {
        again.push(incoming.body.word());
        incoming.reply().word(-1);
      },
    });
    fabric.run();
    expect(echo.errors).toEqual(["SITU_LOST"]);
    expect(served).toEqual([]);
    expect(again).toEqual([]);
    expect(client.counters.lost).toBe(1);
    const second = ask(2);
    fabric.run();
    expect(second.replies).toEqual([-1]);
  });

  test("a message cannot be kept: its memory is used again", () => {
    const fabric = new SimulatedFabric({ seed: 1 });
    let kept: Int32Array | undefined;
    let at = 0;
    fabric.endpoint({
      self: 0,
      configurationId: 1,
      service: (incoming) => {
        kept = incoming.body.views.i32;
        ({ at } = incoming.body);
        incoming.reply();
      },
    });
    const client = fabric.endpoint({ self: -1, configurationId: 1 });
    client.send(0, {
      kind: ECHO,
      encode: (out) => out.word(1234),
      replied: () => {},
      failed: () => {},
    });
    fabric.run();
    expect(kept?.[at]).not.toBe(1234);
  });
});

describe("faults", () => {
  test("a lost request is served by nobody, a lost reply was served; both end with SITU_LOST", () => {
    for (const frames of ["requests", "replies"] as const) {
      const fault: Fault = { kind: "loss", probability: 1, frames };
      const { fabric, ask, served, client } = setting({ faults: [fault] });
      const echo = ask(1);
      fabric.run();
      expect(echo.errors).toEqual(["SITU_LOST"]);
      expect(echo.endedUs).toBe(TIMEOUT_US);
      expect(served).toEqual(frames === "requests" ? [] : [1]);
      expect(client.counters.lost).toBe(1);
    }
  });

  test("a duplicate is served twice and told once", () => {
    for (const frames of ["requests", "replies"] as const) {
      const fault: Fault = { kind: "duplicate", probability: 1, frames };
      const { fabric, ask, served } = setting({ faults: [fault] });
      const echo = ask(5);
      fabric.run();
      expect(served).toEqual(frames === "requests" ? [5, 5] : [5]);
      expect(echo.replies).toEqual([5]);
      expect(echo.ends).toBe(1);
    }
  });

  test("a delay is within its bounds; a reply that is too late is dropped", () => {
    const delay: Fault = {
      kind: "delay",
      probability: 1,
      minUs: 100,
      maxUs: 200,
      frames: "replies",
    };
    const { fabric, ask } = setting({ faults: [delay] });
    const echo = ask(1);
    fabric.run();
    expect(echo.endedUs).toBeGreaterThanOrEqual(ROUND_TRIP_US + 100);
    expect(echo.endedUs).toBeLessThanOrEqual(ROUND_TRIP_US + 200);
    fabric.removeFault(delay);
    fabric.addFault({ kind: "delay", probability: 1, minUs: 2e6, maxUs: 2e6, frames: "replies" });
    const late = ask(2);
    fabric.run();
    expect(late.errors).toEqual(["SITU_LOST"]);
    expect(late.ends).toBe(1);
    expect(fabric.nowUs).toBeGreaterThan(2e6);
  });

  test("reorder: a frame is overtaken by the next one on its link", () => {
    const fault: Fault = {
      kind: "reorder",
      probability: 1,
      frames: "requests",
      minUs: 1_000,
      maxUs: 1_000,
      untilUs: 1,
    };
    const { fabric, ask, served } = setting({ faults: [fault] });
    ask(1);
    fabric.run(50);
    expect(served).toEqual([]);
    ask(2);
    fabric.run(100);
    expect(served).toEqual([2, 1]);
    // And where none follows it comes when its time is over.
    const alone = setting({ faults: [fault] });
    alone.ask(1);
    alone.fabric.run();
    expect(alone.served).toEqual([1]);
    expect(alone.fabric.nowUs).toBe(ROUND_TRIP_US + 1_000);
  });

  test("a one-way partition: nothing in one direction, all in the other", () => {
    const { fabric, ask, served } = setting();
    const partition = fabric.partition(0, -1);
    const echo = ask(1);
    fabric.run();
    expect(served).toEqual([1]);
    expect(echo.errors).toEqual(["SITU_LOST"]);
    fabric.removeFault(partition);
    const healed = ask(2);
    fabric.run();
    expect(healed.replies).toEqual([2]);
  });

  test("a fault has its times and its links", () => {
    const faults: Fault[] = [
      { kind: "loss", probability: 1, to: 1 },
      { kind: "loss", probability: 1, to: 0, afterUs: 100, untilUs: 200 },
    ];
    const { fabric, ask } = setting({ faults });
    const echoes: Echo[] = [];
    for (const atUs of [0, 150, 200]) fabric.at(atUs, () => echoes.push(ask(atUs)));
    fabric.run();
    expect(echoes.map(({ errors }) => errors.length)).toEqual([0, 1, 0]);
  });

  test("a stopped node does nothing, and everything after it is resumed", () => {
    const { fabric, node, ask, served } = setting();
    const ticks: number[] = [];
    node.clock.after(0.05, () => ticks.push(fabric.nowUs));
    fabric.stop(0);
    const first = ask(1);
    fabric.run(500);
    expect(served).toEqual([]);
    expect(ticks).toEqual([]);
    fabric.resume(0);
    fabric.run();
    expect(served).toEqual([1]);
    expect(ticks).toEqual([500]);
    expect(first.replies).toEqual([1]);
    fabric.stop(0);
    const second = ask(2);
    fabric.run();
    expect(second.errors).toEqual(["SITU_LOST"]);
    fabric.resume(0);
    fabric.run();
    expect(served).toEqual([1, 2]);
    expect(second.ends).toBe(1);
  });

  test("a slow node answers later", () => {
    const { fabric, ask } = setting();
    fabric.slow(0, { minUs: 300, maxUs: 400 });
    const echo = ask(1);
    fabric.run();
    expect(echo.replies).toEqual([1]);
    expect(echo.endedUs).toBeGreaterThanOrEqual(ROUND_TRIP_US + 300);
    fabric.slow(0, undefined);
    const before = fabric.nowUs;
    const quick = ask(2);
    fabric.run();
    expect(quick.endedUs - before).toBe(ROUND_TRIP_US);
  });
});

const ALL_FAULTS: readonly Fault[] = [
  { kind: "delay", probability: 0.2, maxUs: 300 },
  { kind: "reorder", probability: 0.1, maxUs: 100 },
  { kind: "duplicate", probability: 0.1, maxUs: 500 },
  { kind: "loss", probability: 0.05 },
];

/** Ends that ask each other, at random times, with all faults. */
function chatter(seed: number, faults: readonly Fault[], trace?: (line: TraceLine) => void) {
  const fabric = new SimulatedFabric({ seed, faults, ...(trace === undefined ? {} : { trace }) });
  const nodes = [0, 1, 2].map((self) =>
    fabric.endpoint({
      self,
      configurationId: 1,
      service: (incoming) => {
        const value = incoming.body.word();
        if (value % 7 !== 0) incoming.reply().word(value);
        else {
          const ticket = incoming.defer();
          nodes[self].clock.after(0.2, () => ticket.reply((out) => out.word(value)));
        }
      },
    }),
  );
  const random = fabric.random("chatter");
  const echoes: Echo[] = [];
  for (let i = 0; i < 600; i++) {
    fabric.at(random.below(20_000), () => {
      const echo = new Echo(fabric, i);
      echoes.push(echo);
      nodes[random.below(3)].send(random.below(3), echo);
    });
  }
  fabric.at(5_000, () => fabric.stop(1));
  fabric.at(9_000, () => fabric.resume(1));
  fabric.run();
  return { fabric, echoes, nodes };
}

describe("a seed", () => {
  test("gives the same run, byte for byte; another one another", () => {
    const lines: string[][] = [[], []];
    const hashes = [0, 1].map((run) =>
      chatter(42, ALL_FAULTS, (line) => lines[run].push(JSON.stringify(line))).fabric.traceHash(),
    );
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).toMatch(/^[0-9a-f]{16}$/);
    expect(lines[0]).toEqual(lines[1]);
    expect(lines[0].length).toBeGreaterThan(2_000);
    expect(chatter(43, ALL_FAULTS).fabric.traceHash()).not.toBe(hashes[0]);
  });

  test("each request ends once, whatever happens, and with the reply that belongs to it", () => {
    for (let seed = 1; seed <= 20; seed++) {
      const { echoes, nodes } = chatter(seed, ALL_FAULTS);
      for (const echo of echoes) {
        expect(echo.ends, `seed ${seed}`).toBe(1);
        if (echo.replies.length > 0) expect(echo.replies, `seed ${seed}`).toEqual([echo.value]);
      }
      const sum = (each: (node: SimulatedEndpoint) => number): number =>
        nodes.reduce((total, node) => total + each(node), 0);
      expect(sum(({ counters }) => counters.repliesReceived + counters.lost)).toBe(600);
      expect(
        echoes.some((echo) => echo.errors.length > 0),
        `seed ${seed}`,
      ).toBe(true);
    }
  });

  test("one more fault leaves the draws of the others as they were", () => {
    const dropped = (faults: readonly Fault[]): number[] => {
      const ids: number[] = [];
      const fabric = new SimulatedFabric({
        seed: 9,
        faults,
        trace: ({ what, id }) => {
          if (what === "dropped") ids.push(id);
        },
      });
      fabric.endpoint({
        self: 0,
        configurationId: 1,
        service: (incoming) => void incoming.reply(),
      });
      const client = fabric.endpoint({ self: -1, configurationId: 1 });
      for (let i = 0; i < 200; i++) client.send(0, new Echo(fabric, i));
      fabric.run();
      return ids;
    };
    const loss: Fault = { kind: "loss", probability: 0.1, frames: "requests" };
    const delay: Fault = { kind: "delay", probability: 0.5, frames: "requests" };
    const alone = dropped([loss]);
    expect(alone.length).toBeGreaterThan(5);
    expect(dropped([delay, loss])).toEqual(alone);
  });
});
