/**
 * The requests of one connection that are under way, and those that wait for one. A request's id is
 * its place in a table, with a number above it that grows with each use of the place: a reply to an
 * earlier request finds nobody.
 */

import { assert } from "../../runtime/assert.ts";
import { MAX_IN_FLIGHT } from "../../runtime/limits.ts";
import type { Request } from "../fabric.ts";

const PLACE_BITS = 12;
const PLACE_MASK = (1 << PLACE_BITS) - 1;

export class RequestsUnderWay {
  readonly #requests: (Request | undefined)[] = [];
  readonly #ids = new Int32Array(MAX_IN_FLIGHT);
  /** Places that are free, as a stack. */
  readonly #free = new Int32Array(MAX_IN_FLIGHT);
  #freeCount = MAX_IN_FLIGHT;

  constructor() {
    assert(MAX_IN_FLIGHT <= PLACE_MASK + 1, "a place in the table fits the id of a request");
    for (let place = 0; place < MAX_IN_FLIGHT; place++) {
      this.#requests.push(undefined);
      this.#ids[place] = place;
      this.#free[place] = MAX_IN_FLIGHT - 1 - place;
    }
  }

  get count(): number {
    return MAX_IN_FLIGHT - this.#freeCount;
  }

  get isFull(): boolean {
    return this.#freeCount === 0;
  }

  /** The id of the request. */
  add(request: Request): number {
    const place = this.#free[--this.#freeCount];
    this.#requests[place] = request;
    return this.#ids[place];
  }

  /** The request of this id, which is over now. */
  take(id: number): Request | undefined {
    const place = id & PLACE_MASK;
    const request = this.#requests[place];
    if (request === undefined || this.#ids[place] !== id) return undefined;
    this.#requests[place] = undefined;
    this.#ids[place] = (id + PLACE_MASK + 1) | 0;
    this.#free[this.#freeCount++] = place;
    return request;
  }

  takeAll(): Request[] {
    const taken: Request[] = [];
    if (this.count === 0) return taken;
    for (let place = 0; place < MAX_IN_FLIGHT; place++) {
      const request = this.#requests[place] === undefined ? undefined : this.take(this.#ids[place]);
      if (request !== undefined) taken.push(request);
    }
    return taken;
  }
}

/** First in, first out; each with the tick at which it came. */
export class WaitingRequests {
  #requests: (Request | undefined)[] = new Array(16).fill(undefined);
  #ticks: number[] = new Array(16).fill(0);
  #head = 0;
  count = 0;

  /** The tick at which the first came. */
  get oldestTick(): number {
    return this.#ticks[this.#head];
  }

  add(request: Request, tick: number): void {
    if (this.count === this.#requests.length) this.#grow();
    const at = (this.#head + this.count) & (this.#requests.length - 1);
    this.#requests[at] = request;
    this.#ticks[at] = tick;
    this.count++;
  }

  take(): Request {
    const request = this.#requests[this.#head];
    assert(request !== undefined, "a request is waiting");
    this.#requests[this.#head] = undefined;
    this.#head = (this.#head + 1) & (this.#requests.length - 1);
    this.count--;
    return request;
  }

  takeAll(): Request[] {
    const taken: Request[] = [];
    while (this.count > 0) taken.push(this.take());
    return taken;
  }

  #grow(): void {
    const size = this.#requests.length;
    const inOrder = <T>(list: T[]): T[] => [
      ...list.slice(this.#head),
      ...list.slice(0, this.#head),
    ];
    this.#requests = [...inOrder(this.#requests), ...new Array(size).fill(undefined)];
    this.#ticks = [...inOrder(this.#ticks), ...new Array(size).fill(0)];
    this.#head = 0;
  }
}
