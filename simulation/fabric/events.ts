/**
 * What is still to happen in a simulation, in the order of virtual time; what happens at one instant
 * happens in the order in which it was asked for. So a run is a function of its seed.
 *
 * An event may belong to a machine: while that one is stopped its events wait (machine.ts). Some are
 * background: they do not keep a simulation going (time-outs that will find nothing to do).
 */

import type { Timer } from "../../src/fabric/fabric.ts";

/** A queue that has this many cancelled events, and more of them than others, is cleaned. */
const MANY_CANCELLED = 1_024;

export interface EventOwner {
  readonly isStopped: boolean;
}

export class Event implements Timer {
  atUs: number;
  sequence = 0;
  run: (() => void) | undefined;
  readonly owner: EventOwner | undefined;
  readonly isBackground: boolean;
  readonly #queue: EventQueue;

  constructor(
    queue: EventQueue,
    atUs: number,
    run: () => void,
    owner: EventOwner | undefined,
    isBackground: boolean,
  ) {
    this.#queue = queue;
    this.atUs = atUs;
    this.run = run;
    this.owner = owner;
    this.isBackground = isBackground;
  }

  cancel(): void {
    if (this.run === undefined) return;
    this.run = undefined;
    this.#queue.cancelled(this);
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.sequence < b.sequence);
}

/** A binary heap. */
export class EventQueue {
  /** Events that keep the simulation going. */
  foreground = 0;
  #heap: Event[] = [];
  #sequence = 0;
  #cancelled = 0;

  add(atUs: number, run: () => void, owner?: EventOwner, isBackground = false): Event {
    const event = new Event(this, atUs, run, owner, isBackground);
    this.push(event);
    return event;
  }

  /** Also for one that was taken out and did not happen. */
  push(event: Event): void {
    event.sequence = this.#sequence++;
    if (!event.isBackground) this.foreground++;
    const heap = this.#heap;
    let at = heap.length;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(event, heap[parent])) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = event;
  }

  /** When the next event is, or Infinity. */
  get nextUs(): number {
    while (this.#heap.length > 0 && this.#heap[0].run === undefined) {
      this.#removeFirst();
      this.#cancelled--;
    }
    return this.#heap.length === 0 ? Number.POSITIVE_INFINITY : this.#heap[0].atUs;
  }

  pop(): Event | undefined {
    if (this.nextUs === Number.POSITIVE_INFINITY) return undefined;
    const event = this.#removeFirst();
    if (!event.isBackground) this.foreground--;
    return event;
  }

  /** An event of this queue was cancelled; one that has been taken out only is forgotten. */
  cancelled(event: Event): void {
    // One that is not in the heap (it waits for a stopped machine) is not counted in either.
    if (event.sequence < 0) return;
    if (!event.isBackground) this.foreground--;
    this.#cancelled++;
    if (this.#cancelled > MANY_CANCELLED && this.#cancelled * 2 > this.#heap.length) this.#clean();
  }

  /** Nothing of what its owner had to do happens any more. */
  cancelAllOf(owner: EventOwner): void {
    // Cancelling may clean the heap: go through a copy.
    for (const event of [...this.#heap]) if (event.owner === owner) event.cancel();
  }

  #removeFirst(): Event {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop() as Event;
    if (heap.length > 0) this.#sink(0, last);
    first.sequence = -1;
    return first;
  }

  #sink(start: number, event: Event): void {
    const heap = this.#heap;
    const { length } = heap;
    let at = start;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(heap[child + 1], heap[child])) child++;
      if (!isBefore(heap[child], event)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = event;
  }

  #clean(): void {
    this.#heap = this.#heap.filter((event) => event.run !== undefined);
    this.#cancelled = 0;
    for (let at = (this.#heap.length >> 1) - 1; at >= 0; at--) this.#sink(at, this.#heap[at]);
  }
}
