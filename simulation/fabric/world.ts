/** What all ends of a simulated fabric share: virtual time, the seed, and the trace. */

import type { Random } from "../../src/runtime/random.ts";
import { type Event, EventQueue } from "./events.ts";
import { type Fault, Faults } from "./faults.ts";
import type { Machine } from "./machine.ts";
import { streamOf } from "./streams.ts";
import { Trace, type TraceHook } from "./trace.ts";

export interface WorldOptions {
  /** All that is random in a simulation follows from it. */
  readonly seed: number;
  readonly faults?: readonly Fault[];
  /** Called for everything that happens. False: not even the hash is kept (for measurements). */
  readonly trace?: TraceHook | false;
}

/** One who has something to send when a turn ends. */
export interface Flushable {
  flush(): void;
}

export class World {
  nowUs = 0;
  readonly seed: number;
  readonly queue = new EventQueue();
  readonly faults: Faults;
  readonly trace: Trace | undefined;
  /** Requests that have not ended; they keep the simulation going. */
  underWay = 0;
  /** Whether promises may have been settled since somebody last waited for them to move. */
  hasPromised = false;
  readonly #dirty: Flushable[] = [];

  constructor({ seed, faults = [], trace }: WorldOptions) {
    this.seed = seed;
    this.faults = new Faults(seed, faults);
    this.trace = trace === false ? undefined : new Trace(trace);
  }

  random(purpose: string): Random {
    return streamOf(this.seed, purpose);
  }

  at(atUs: number, run: () => void, machine?: Machine): Event {
    return this.queue.add(Math.max(atUs, this.nowUs), run, machine);
  }

  atInBackground(atUs: number, run: () => void, machine?: Machine): Event {
    return this.queue.add(Math.max(atUs, this.nowUs), run, machine, true);
  }

  /** It is asked to flush when the turn ends that is running, or before the next one. */
  dirty(who: Flushable): void {
    this.#dirty.push(who);
  }

  /** Whether nothing will ever happen, but time-outs that have nothing to do. */
  get isAtRest(): boolean {
    return this.#dirty.length === 0 && this.queue.foreground === 0 && this.underWay === 0;
  }

  endTurn(): void {
    // Who flushes may not make others dirty; the order is that of the calls.
    for (const who of this.#dirty) who.flush();
    this.#dirty.length = 0;
  }

  /** The next event happens: one turn. False if there is none, or not up to then. */
  step(untilUs = Number.POSITIVE_INFINITY): boolean {
    this.endTurn();
    if (this.queue.nextUs > untilUs) return false;
    const event = this.queue.pop();
    if (event === undefined) return false;
    const machine = event.owner as Machine | undefined;
    if (machine?.isStopped === true) {
      machine.waiting.push(event);
      return true;
    }
    this.nowUs = event.atUs;
    // What belongs to no machine is done by the simulation itself, which may do anything.
    if (machine?.hasPrograms !== false) this.hasPromised = true;
    const { run } = event;
    event.run = undefined;
    run?.();
    this.endTurn();
    return true;
  }
}
