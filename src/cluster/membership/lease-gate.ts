/**
 * What tells all threads of a node until when it may serve, and in which configuration: a few words of
 * shared memory.
 *
 *   word 0     the configuration that the deadline is for; 0 while there is none
 *   word 1     counted up by the NIC worker, whose life the leases stand for
 *   word 2     the last configuration that is committed, as the NIC worker knows
 *   word 3     the configuration in which all of the node's partitions are recovered, as the thread that keeps
 *              its copies knows
 *   word 4, 5  the deadline, a float64 in milliseconds of the lease clock (fabric/lease-clock.ts)
 *
 * The lease thread writes the deadline. For another configuration it takes the number away first and gives
 * the new one last; so whoever finds the number of its own view in word 0, and reads the deadline after it,
 * has a deadline of that configuration, or of a later one. A float64 on its own boundary is written whole on
 * all platforms of Node.js.
 *
 * The lease thread does nothing else, so it would go on for a node that hangs. Therefore it looks at word 1,
 * too, and lets the leases run out when that stands still.
 */

import type { ConfigurationId } from "../../fabric/fabric.ts";

const CONFIGURATION = 0;
const BEATS = 1;
const COMMITTED = 2;
const WHOLE = 3;
const DEADLINE = 2;
const BYTES = 24;

export class LeaseGate {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #deadline: Float64Array;

  /** Closed; or another thread's, of its `buffer`. */
  constructor(buffer = new SharedArrayBuffer(BYTES)) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
    this.#deadline = new Float64Array(buffer);
  }

  /** Whether a node whose view is of this configuration may serve now. */
  mayServe(configurationId: ConfigurationId, nowMs: number): boolean {
    return (
      Atomics.load(this.#words, COMMITTED) === configurationId &&
      this.hasLease(configurationId, nowMs)
    );
  }

  /** Whether it has its leases, committed or not. */
  hasLease(configurationId: ConfigurationId, nowMs: number): boolean {
    return (
      Atomics.load(this.#words, CONFIGURATION) === configurationId &&
      nowMs < this.#deadline[DEADLINE]
    );
  }

  /** By the lease thread. */
  extend(configurationId: ConfigurationId, deadlineMs: number): void {
    if (Atomics.load(this.#words, CONFIGURATION) !== configurationId) this.close();
    this.#deadline[DEADLINE] = deadlineMs;
    Atomics.store(this.#words, CONFIGURATION, configurationId);
  }

  /** By the lease thread: there is no lease. */
  close(): void {
    Atomics.store(this.#words, CONFIGURATION, 0);
  }

  /** By the NIC worker: what is served is served in this configuration. */
  commit(configurationId: ConfigurationId): void {
    Atomics.store(this.#words, COMMITTED, configurationId);
  }

  /** By the thread that keeps the node's copies: whether all partitions can be served in a configuration. */
  setWhole(configurationId: ConfigurationId, isWhole: boolean): void {
    Atomics.store(this.#words, WHOLE, isWhole ? configurationId : 0);
  }

  /** Whether all rows of a node whose view is of this configuration can be read, if it may serve. */
  isWhole(configurationId: ConfigurationId): boolean {
    return Atomics.load(this.#words, WHOLE) === configurationId;
  }

  /** By the NIC worker: it is there. */
  beat(): void {
    Atomics.add(this.#words, BEATS, 1);
  }

  /** 0 before the first. */
  get beats(): number {
    return Atomics.load(this.#words, BEATS);
  }
}
