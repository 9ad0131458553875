/**
 * A network of machines in one thread, in virtual time. Nothing here looks at a clock or at chance:
 * all follows from the seed, and from what those do who use it. `run` lets events happen until there
 * are none; between two events nothing moves, so a test may look at everything.
 *
 *     const fabric = new SimulatedFabric({ seed: 1, faults: [{ kind: "loss", probability: 0.01 }] });
 *     const node = fabric.endpoint({ self: 0, configurationId: 1, service });
 *     const client = fabric.endpoint({ self: -1, configurationId: 1 });
 *     client.send(0, request);
 *     fabric.run();
 */

import { assert } from "../../src/runtime/assert.ts";
import { turn } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { SimulatedEndpoint, type SimulatedEndpointOptions } from "./endpoint.ts";
import type { Event } from "./events.ts";
import type { Fault } from "./faults.ts";
import { type Hardware, PLAIN } from "./hardware.ts";
import { Machine, type Slowness } from "./machine.ts";
import { hashOfText } from "./trace.ts";
import { Transit } from "./transit.ts";
import { World, type WorldOptions } from "./world.ts";

export interface SimulatedFabricOptions extends WorldOptions {
  /** The model of all machines; `plain` if not given. */
  readonly hardware?: Hardware;
  /** Where a machine differs from the others. */
  readonly hardwareOf?: (id: number) => Hardware | undefined;
}

export class SimulatedFabric {
  readonly #world: World;
  readonly #transit: Transit;
  readonly #hardware: Hardware;
  readonly #hardwareOf: ((id: number) => Hardware | undefined) | undefined;
  readonly #endpoints = new Map<number, SimulatedEndpoint>();
  readonly #machines = new Map<number, Machine>();

  constructor(options: SimulatedFabricOptions) {
    this.#world = new World(options);
    this.#transit = new Transit(this.#world);
    this.#hardware = options.hardware ?? PLAIN;
    this.#hardwareOf = options.hardwareOf;
  }

  /** A node, or, below 0, a client. A node that was closed may come back. */
  endpoint(options: SimulatedEndpointOptions): SimulatedEndpoint {
    const { self } = options;
    const before = this.#endpoints.get(self);
    assert(before === undefined || before.isClosed, `there is one end ${self} at a time`);
    if (before !== undefined) {
      for (const other of this.#others(before)) other.peerClosed(before);
      this.#world.trace?.note("returned", this.nowUs, self, 0);
    }
    const machine = this.machine(self);
    const isNode = (id: number): boolean => id >= 0 && this.#endpoints.has(id);
    const endpoint = new SimulatedEndpoint(this.#world, this.#transit, machine, isNode, options);
    this.#endpoints.set(self, endpoint);
    endpoint.whenClosed = () => this.#tellOthers(endpoint);
    return endpoint;
  }

  /** Lines before its NICs and cores, and how long they were busy. */
  machine(id: number): Machine {
    let machine = this.#machines.get(id);
    if (machine === undefined) {
      machine = new Machine(id, this.#hardwareOf?.(id) ?? this.#hardware);
      this.#machines.set(id, machine);
    }
    return machine;
  }

  /** For what happens on these machines beside the fabric. */
  get world(): World {
    return this.#world;
  }

  get nowUs(): number {
    return this.#world.nowUs;
  }

  /** One event, and with it one turn. False if there is nothing left to happen. */
  step(): boolean {
    return this.#world.step();
  }

  /**
   * Until nothing is left but time-outs without a request, or up to an instant, which it then is.
   * Promises do not move meanwhile: see `settle`.
   */
  run(untilUs = Number.POSITIVE_INFINITY): void {
    const world = this.#world;
    const isBounded = untilUs !== Number.POSITIVE_INFINITY;
    while ((isBounded || !world.isAtRest) && world.step(untilUs));
    if (isBounded) world.nowUs = Math.max(world.nowUs, untilUs);
  }

  /**
   * The same for programs that use promises: after each event that may have settled some, all that
   * has become ready runs to its end. Until `done`, or up to an instant, or until there is nothing
   * left to happen. Says whether it is done.
   */
  async settle(done: () => boolean, untilUs = Number.POSITIVE_INFINITY): Promise<boolean> {
    const world = this.#world;
    const isBounded = untilUs !== Number.POSITIVE_INFINITY;
    world.hasPromised = true;
    for (let isIdle = false; ; ) {
      if (world.hasPromised || isIdle) {
        world.hasPromised = false;
        await turn();
      }
      if (done()) return true;
      if ((isBounded || !world.isAtRest) && world.step(untilUs)) isIdle = false;
      else if (isIdle) break;
      else isIdle = true;
    }
    if (isBounded) world.nowUs = Math.max(world.nowUs, untilUs);
    return false;
  }

  /** Promises were settled in this turn, at a machine whose events do not count as such. */
  promised(): void {
    this.#world.hasPromised = true;
  }

  /** Something that a simulation does at an instant, such as switching a fault. */
  at(atUs: number, run: () => void): Event {
    return this.#world.at(atUs, run);
  }

  /** Over and over at a machine, until it crashes. This alone does not keep a simulation going. */
  every(everyUs: number, id: number, run: () => void): void {
    const again = (): void => {
      run();
      this.every(everyUs, id, run);
    };
    this.#world.atInBackground(this.nowUs + everyUs, again, this.machine(id));
  }

  addFault(fault: Fault): void {
    this.#world.faults.add(fault);
  }

  removeFault(fault: Fault): void {
    this.#world.faults.remove(fault);
  }

  /** Nothing gets lost, late or twice from now on; what is under way is as it is. */
  clearFaults(): void {
    this.#world.faults.clear();
  }

  /** One-way: what `from` sends does not reach `to` until the fault is removed. */
  partition(from: number, to: number): Fault {
    const fault: Fault = { kind: "loss", probability: 1, from, to };
    this.addFault(fault);
    return fault;
  }

  /** What would happen at the machine waits until it is resumed. Verbs too: its NIC is a thread. */
  stop(id: number): void {
    this.machine(id).isStopped = true;
    this.#world.trace?.note("stopped", this.nowUs, id, 0);
  }

  resume(id: number): void {
    const machine = this.machine(id);
    machine.isStopped = false;
    this.#world.trace?.note("resumed", this.nowUs, id, 0);
    for (const event of machine.waiting.splice(0)) {
      if (event.run === undefined) continue;
      event.atUs = Math.max(event.atUs, this.nowUs);
      this.#world.queue.push(event);
    }
  }

  /**
   * The process at a machine is killed: what it would have done, and what is on its way to it, is gone.
   * Another end may then take its place.
   */
  crash(id: number): void {
    this.#world.trace?.note("crashed", this.nowUs, id, 0);
    const machine = this.machine(id);
    this.#endpoints.get(id)?.crash();
    this.#world.queue.cancelAllOf(machine);
    machine.waiting.length = 0;
    machine.isStopped = false;
  }

  /** All that reaches the machine comes later by a random time; undefined: no more. */
  slow(id: number, slowness: Slowness | undefined): void {
    this.machine(id).slowness = slowness;
  }

  /** Random numbers of the simulation's seed, for a purpose of their own. */
  random(purpose: string): Random {
    return this.#world.random(purpose);
  }

  /** Puts something that a simulation has seen into the trace. */
  note(text: string): void {
    this.#world.trace?.note("note", this.nowUs, 0, hashOfText(text));
  }

  /** Of all that has happened so far. */
  traceHash(): string {
    return this.#world.trace?.hash ?? "";
  }

  /** As a broken connection: those it had to do with are told, a moment later. */
  #tellOthers(gone: SimulatedEndpoint): void {
    for (const other of this.#others(gone)) {
      const { machine } = other;
      const laterUs = this.nowUs + machine.hardware.wireUs;
      const tell = (): void => {
        if (this.#endpoints.get(gone.id) === gone) other.peerClosed(gone);
      };
      this.#world.at(laterUs, tell, machine);
    }
  }

  #others(one: SimulatedEndpoint): SimulatedEndpoint[] {
    return [...this.#endpoints.values()].filter((other) => other !== one && !other.isClosed);
  }
}
