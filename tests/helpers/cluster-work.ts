/** Client processes at work on a real cluster, and what must hold when they are done. */

import { expect } from "vitest";
import type { FinalReads, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend } from "../../simulation/checkers/list-append.ts";
import type { Table } from "../../src/index.ts";
import type { ClientOrder, ClientReport } from "../cluster/history-child.ts";
import { Account, List } from "../cluster/procedures.ts";
import type { RealCluster } from "./cluster.ts";
import { Talker } from "./process-group.ts";

export const WORK_TABLES = [Account, List] as unknown as readonly Table[];
const KEYS = 12;
const ACCOUNTS = 40;
const BALANCE = 100n;

export type CrewOptions = Partial<Pick<ClientOrder, "timeoutMs" | "least">>;

export class ClientCrew {
  readonly members: Talker[];
  readonly #cluster: RealCluster;
  readonly #seed: number;

  private constructor(
    cluster: RealCluster,
    size: number,
    seed: number,
    { timeoutMs = 120_000, least = { transactions: 0, transfers: 0 } }: CrewOptions,
  ) {
    this.#cluster = cluster;
    this.#seed = seed;
    this.members = Array.from({ length: size }, (_, process) => {
      const { connect } = cluster;
      const keys = { keys: KEYS, accounts: ACCOUNTS, timeoutMs, least };
      const order: ClientOrder = { connect, process, seed: seed * 100 + process, ...keys };
      return new Talker("../cluster/history-child", order);
    });
  }

  static async start(
    cluster: RealCluster,
    size: number,
    seed: number,
    options: CrewOptions = {},
  ): Promise<ClientCrew> {
    const db = await cluster.client(WORK_TABLES);
    await db.transact(async (tx) => {
      for (let id = 0; id < ACCOUNTS; id++) await tx.put(Account, { id, balance: BALANCE });
    });
    const crew = new ClientCrew(cluster, size, seed, options);
    await Promise.all(crew.members.map((member) => member.hear("ready")));
    return crew;
  }

  /** Lets those that live come to their end; the history of all that told theirs. */
  async end(isKilled: (member: number) => boolean = () => false): Promise<ClientReport[]> {
    const living = this.members.filter((_, i) => !isKilled(i));
    for (const { running } of living) running.child.stdin?.end();
    return Promise.all(living.map((member) => member.report<ClientReport>()));
  }

  /** Strict serializability, the sum, and copies that agree. Closes the cluster. */
  async check(reports: readonly ClientReport[], hasUntold = false): Promise<void> {
    const told = `seed ${this.#seed}`;
    const db = await this.#cluster.client(WORK_TABLES);
    const finalReads = new Map<number, readonly number[]>();
    let sum = 0n;
    await db.transact(async (tx) => {
      finalReads.clear();
      sum = 0n;
      for (let key = 0; key < KEYS; key++) {
        const row = await tx.get(List, key);
        if (row !== undefined) finalReads.set(key, row.values);
      }
      for (let id = 0; id < ACCOUNTS; id++) sum += (await tx.get(Account, id))!.balance;
    });
    expect(sum, told).toBe(BALANCE * BigInt(ACCOUNTS));
    const history: Transaction[] = reports.flatMap((each) => each.history);
    if (hasUntold) history.push(...untold(history, finalReads));
    const { ok, anomalies } = checkListAppend(history, {
      isolation: "strict-serializable",
      finalReads: finalReads as FinalReads,
    });
    expect(ok, `${told}\n${JSON.stringify(anomalies.slice(0, 3), undefined, 1)}`).toBe(true);
    await this.#cluster.copiesApplied();
    expect(await this.#cluster.close(), told).toEqual([0, 0, 0]);
    expect(await this.#cluster.problems(WORK_TABLES), told).toEqual([]);
  }
}

/** Values of processes that were killed: each of an append that nobody can tell the outcome of. */
function untold(history: readonly Transaction[], finalReads: FinalReads): Transaction[] {
  const known = new Set<number>();
  for (const { operations } of history) {
    for (const each of operations) if (each.kind === "append") known.add(each.value);
  }
  const seen = new Map<number, number>();
  const look = (key: number, list: readonly number[]): void => {
    for (const value of list) if (!known.has(value)) seen.set(value, key);
  };
  for (const [key, list] of finalReads) look(Number(key), list);
  for (const { operations } of history) {
    for (const each of operations) if (each.kind === "read") look(Number(each.key), each.list);
  }
  // One transaction each would be too many: those of one were made together, and are told as one.
  return [...seen].map(([value, key]) => ({
    process: 1_000 + value,
    start: 0,
    end: 0,
    operations: [{ kind: "append", key, value }],
    outcome: "unknown",
  }));
}
