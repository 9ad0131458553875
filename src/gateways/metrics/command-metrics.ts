/**
 * What a thread of a gateway counts: its commands by their numbers, from 0 up to MAX_COMMANDS, and the
 * counters that have a row in the table of metrics, which also gives them their places. In shared memory
 * (engine/metrics.ts); each of these is a few plain loads and stores.
 */

import {
  CLIENTS,
  COMMAND_CALLS,
  COMMAND_FAILURES,
  COMMAND_TIMES,
  GATEWAY,
  GATEWAY_ROOM,
  type MetricSums,
  type SlotMetrics,
} from "../../engine/metrics.ts";
import { assert } from "../../runtime/assert.ts";
import { MAX_COMMANDS } from "../../runtime/limits.ts";
import { METRICS, type Metric } from "./metric-table.ts";

export type GatewayCounter = Extract<(typeof METRICS)[number], { counter: string }>["counter"];

const NAMES = METRICS.flatMap(({ counter }: Metric) => counter ?? []) as GatewayCounter[];
assert(NAMES.length <= GATEWAY_ROOM, "the gateway's counters fit");

/** Where each counter is, in the block of an executor. */
export const COUNTER = Object.fromEntries(NAMES.map((name, i) => [name, GATEWAY + i])) as Readonly<
  Record<GatewayCounter, number>
>;

/** All counters, summed over all gateways of the store. */
export function gatewaySums(sums: MetricSums): Record<GatewayCounter, number> {
  const counted = NAMES.map((name) => [name, sums.at(COUNTER[name])]);
  return Object.fromEntries(counted) as Record<GatewayCounter, number>;
}

export class CommandMetrics {
  readonly #slot: SlotMetrics;

  constructor(slot: SlotMetrics) {
    this.#slot = slot;
  }

  /** Adds to a counter: `add(COUNTER.bytesSent, 100)`. */
  add(counter: number, n: number): void {
    this.#slot.add(counter, n);
  }

  /** A command was run `n` times. */
  count(command: number, n = 1): void {
    // Beyond its own counters there are others.
    if (command < MAX_COMMANDS) this.#slot.add(COMMAND_CALLS + command, n);
  }

  /** It was answered with an error; it is also one of those that were run. */
  failed(command: number, n = 1): void {
    if (command < MAX_COMMANDS) this.#slot.add(COMMAND_FAILURES + command, n);
  }

  /** `n` commands took so long each, from the request to the reply. */
  observe(durationMs: number, n = 1): void {
    this.#slot.observe(COMMAND_TIMES, durationMs, n);
  }

  /** How many clients this thread has now. */
  clients(open: number): void {
    this.#slot.set(CLIENTS, open);
  }
}
