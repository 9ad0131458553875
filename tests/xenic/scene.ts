/** Single transactions on a small cluster of Xenic, looked at message by message. */

import { PlainBus } from "../../simulation/xenic/bus.ts";
import { XenicCluster, type XenicClusterOptions } from "../../simulation/xenic/cluster.ts";
import {
  AT_HOST,
  AT_NIC,
  argsOf,
  LIST_PROCEDURES,
  LIST_WORDS,
  type ListAccess,
  listsOf,
  TWO_SHOTS,
  wantedBy,
} from "../../simulation/xenic/list-procedures.ts";
import { KIND_NAMES } from "../../src/protocols/kinds.ts";
import type { XenicOutcome } from "../../src/protocols/xenic/coordinator.ts";
import { XENIC_LOW_US } from "../../src/runtime/limits.ts";

/** One hop on the simulated wire. */
const HOP_US = 10;

export interface Case {
  readonly procedure: number;
  readonly accesses: readonly ListAccess[];
}

const read = (key: number): ListAccess => ({ key, value: undefined });
const write = (key: number): ListAccess => ({ key, value: 100 + key });

/**
 * Six servers, server 0 coordinates; the row of key k is of shard k mod 6, whose backups are the next two. It is a backup of none of
 * the remote shards that are written here.
 */
export const CASES = {
  "at the host": { procedure: AT_HOST, accesses: [write(1), write(2), read(3)] },
  "at the host, nothing to validate": { procedure: AT_HOST, accesses: [write(1), write(2)] },
  "at the NIC": { procedure: AT_NIC, accesses: [write(1), write(2), read(3)] },
  "two shots": { procedure: TWO_SHOTS, accesses: [write(1), write(2), read(3)] },
  "one remote shard": { procedure: AT_NIC, accesses: [write(1), write(7), read(13)] },
  "the own shard and a remote one": { procedure: AT_NIC, accesses: [write(0), read(6), write(3)] },
  "local write": { procedure: AT_NIC, accesses: [write(0), read(6)] },
  "local read": { procedure: AT_NIC, accesses: [read(0), read(6)] },
  "read at two shards": { procedure: AT_HOST, accesses: [read(1), read(2)] },
  "read at one remote shard": { procedure: AT_NIC, accesses: [read(1), read(7)] },
} as const satisfies Record<string, Case>;

export class XenicScene {
  readonly cluster: XenicCluster;
  outcome: XenicOutcome | undefined;
  outcomeUs = 0;

  constructor(options: Partial<XenicClusterOptions> = {}) {
    this.cluster = new XenicCluster({
      seed: 1,
      servers: 6,
      copies: 3,
      shapes: [{ rows: 16, valueWords: LIST_WORDS }],
      procedures: LIST_PROCEDURES,
      memoryBytes: 1 << 15,
      busOf: (fabric, id) => new PlainBus(fabric.world, fabric.machine(id), 0),
      ...options,
    });
  }

  begin({ procedure, accesses }: Case, at = 0): void {
    const { fabric, servers } = this.cluster;
    const work = { procedure, args: argsOf(accesses), ...wantedBy(procedure, accesses) };
    servers[at].submit(work, (outcome) => {
      this.outcome = outcome;
      this.outcomeUs = fabric.nowUs;
    });
  }

  /** Until everything is done but what is told in the background. */
  settle(): void {
    const { fabric } = this.cluster;
    fabric.run(fabric.nowUs + XENIC_LOW_US - 1);
  }

  /** Message delays until the host was told. */
  get delays(): number {
    return this.outcomeUs / HOP_US;
  }

  get crossings(): number {
    return this.cluster.servers[0].counts.crossings;
  }

  /** Messages between nodes, by their names. */
  messages(): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { counts: each } of this.cluster.servers) {
      for (const [kind, count] of each.sent) {
        counts[KIND_NAMES[kind]] = (counts[KIND_NAMES[kind]] ?? 0) + count;
      }
    }
    return counts;
  }

  /** The list of a key, as a transaction of its own reads it. */
  list(key: number, at: number): readonly number[] {
    const { fabric } = this.cluster;
    this.outcome = undefined;
    this.begin({ procedure: AT_NIC, accesses: [read(key)] }, at);
    fabric.run(fabric.nowUs + 1_000);
    const outcome = this.outcome as XenicOutcome | undefined;
    if (outcome?.kind !== "committed") throw new Error(`list ${key} cannot be read`);
    return listsOf(outcome.result)[0];
  }

  /** Locks and pins that are left, and transactions that somebody still holds. */
  leftovers(): number {
    let sum = 0;
    for (const { nic } of this.cluster.living) {
      for (const { locked, pins } of nic.rows.indexes) sum += locked + pins;
      sum += [...nic.held.states()].length;
    }
    return sum;
  }
}
