/**
 * EXEC over two threads is strictly serializable: clients append to lists and read them, in MULTI,
 * after a WATCH, by a plain GET and APPEND, and in pipelines; the checker finds whether some order
 * explains all that they saw. A list is a string of numbers with a comma behind each.
 */

import { expect, test } from "vitest";
import type { Operation, Transaction } from "../../../simulation/checkers/history.ts";
import { checkListAppend } from "../../../simulation/checkers/list-append.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { machineMs } from "../../../src/runtime/clock.ts";
import { MIB, seed, temporaryStores } from "../../helpers/store.ts";
import { parseReplies, type Reply } from "../resp/parse-replies.ts";
import { Dice } from "./against-redis.ts";
import { type Argument, RawClient } from "./raw-client.ts";

const CLIENTS = 8;
const TRANSACTIONS = 250;
const KEYS = ["a", "b", "c"];

const stores = temporaryStores();

function listOf(reply: Reply): number[] {
  if ("nil" in reply) return [];
  if (!("bulk" in reply)) throw new Error(`no list: ${JSON.stringify(reply)}`);
  return reply.bulk.split(",").slice(0, -1).map(Number);
}

class Process {
  readonly history: Transaction[] = [];
  readonly #client: RawClient;
  readonly #number: number;
  readonly #dice: Dice;
  #next = 0;

  constructor(client: RawClient, number: number) {
    this.#client = client;
    this.#number = number;
    this.#dice = new Dice(seed + number);
  }

  async work(): Promise<void> {
    const ways = [() => this.#multi(), () => this.#optimistic(), () => this.#plain()];
    for (let i = 0; i < TRANSACTIONS; i++) await this.#dice.one(ways)();
  }

  #value(): number {
    return this.#number + CLIENTS * this.#next++;
  }

  #read(key: string): readonly Argument[] {
    return ["get", key];
  }

  #append(key: string, value: number): readonly Argument[] {
    return ["append", key, `${value},`];
  }

  /** What it is going to do, without what it will have read. */
  #plan(): { readonly key: string; readonly value: number | undefined }[] {
    return this.#dice
      .some(KEYS, 4)
      .map((key) => ({ key, value: this.#dice.rarely(2) ? this.#value() : undefined }));
  }

  async #multi(): Promise<void> {
    const plan = this.#plan();
    const requests = plan.map(({ key, value }) =>
      value === undefined ? this.#read(key) : this.#append(key, value),
    );
    const start = machineMs();
    const replies = await this.#client.sendAll([["multi"], ...requests, ["exec"]]);
    const [reply] = parseReplies(replies.at(-1)!);
    if (!("array" in reply)) throw new Error(JSON.stringify(reply));
    const operations = plan.map(({ key, value }, i): Operation => {
      if (value !== undefined) return { kind: "append", key, value };
      return { kind: "read", key, list: listOf(reply.array[i]) };
    });
    this.#record(start, operations, "ok");
  }

  /** Reads first, and appends to what it has read if that has not changed. */
  async #optimistic(): Promise<void> {
    const [key, other] = [this.#dice.one(KEYS), this.#dice.one(KEYS)];
    const value = this.#value();
    const start = machineMs();
    const [, read] = await this.#client.sendAll([["watch", key, other], this.#read(key)]);
    const replies = await this.#client.sendAll([["multi"], this.#append(other, value), ["exec"]]);
    const [done] = parseReplies(replies[2]);
    const operations: Operation[] = [
      { kind: "read", key, list: listOf(parseReplies(read)[0]) },
      { kind: "append", key: other, value },
    ];
    this.#record(start, operations, "array" in done ? "ok" : "failed");
  }

  /** Each request is a transaction; they are sent together, and follow each other. */
  async #plain(): Promise<void> {
    const plan = this.#plan();
    const requests = plan.map(({ key, value }) =>
      value === undefined ? this.#read(key) : this.#append(key, value),
    );
    const start = machineMs();
    const replies = await this.#client.sendAll(requests);
    plan.forEach(({ key, value }, i) => {
      const [reply] = parseReplies(replies[i]);
      const operation: Operation =
        value === undefined
          ? { kind: "read", key, list: listOf(reply) }
          : { kind: "append", key, value };
      this.#record(start, [operation], "ok");
    });
  }

  #record(start: number, operations: readonly Operation[], outcome: "ok" | "failed"): void {
    const end = machineMs();
    this.history.push({ process: this.#number, start, end, operations, outcome });
  }
}

test("what clients of two threads see has one order, in real time", async () => {
  const gateway = await serve({
    ...{ path: stores.folder(), port: 0, threads: 2, durability: "none", memoryBytes: 64 * MIB },
  });
  stores.later(() => gateway.close());
  const enter = async (): Promise<RawClient> => {
    const client = await RawClient.connect(gateway.port);
    stores.later(() => client.close());
    return client;
  };
  const processes: Process[] = [];
  for (let i = 0; i < CLIENTS; i++) processes.push(new Process(await enter(), i));
  await Promise.all(processes.map((each) => each.work()));

  const last = await enter();
  const finalReads = new Map<string, number[]>();
  for (const key of KEYS) {
    finalReads.set(key, listOf(parseReplies(await last.send("get", key))[0]));
  }
  const history = processes.flatMap((each) => each.history);
  const failed = history.filter(({ outcome }) => outcome === "failed").length;
  // Some that watched were too late, and some were not: else nothing was tried.
  expect(failed).toBeGreaterThan(0);
  expect(failed).toBeLessThan(history.length / 3);
  const result = checkListAppend(history, { isolation: "strict-serializable", finalReads });
  expect(result.anomalies.map(String), `SITU_SEED=${seed}`).toEqual([]);
  expect(result.ok).toBe(true);
});
