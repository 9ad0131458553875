/**
 * What moves is neither lost nor doubled: clients of several threads move tokens among sets that are
 * large enough to lie in a table of their own, and points among hashes, in every way there is: SMOVE,
 * WATCH with what was read, MULTI, and by swapping names. Others delete and replace copies, so that
 * the sweeper is at work. Whoever reads all of it in one EXEC finds every token once and all points,
 * and each collection as large as it says.
 */

import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { open } from "../../src/database/open.ts";
import { REDIS_TABLES } from "../../src/gateways/redis/tables.ts";
import { Random } from "../../src/runtime/random.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { endAll, enter, newFolder, startGateway } from "./gateways.ts";
import type { RawClient } from "./redis/raw-client.ts";
import { parseReplies, type Reply } from "./resp/parse-replies.ts";

const SEED = fixedSeed(20);
const TOKENS = 400;
const SETS = ["set:0", "set:1", "set:2"];
const HASHES = ["hash:0", "hash:1"];
const COPIES = ["copy:0", "copy:1"];
const FIELDS = 150;
const POINTS = 100;
const MOVERS = 4;
const ROUNDS = 20;

afterEach(endAll);

function elements(reply: Reply): readonly Reply[] {
  if ("array" in reply) return reply.array;
  throw new Error(`no array: ${JSON.stringify(reply)}`);
}

function bulks(reply: Reply): string[] {
  return elements(reply).map((each) => {
    if ("bulk" in each) return each.bulk;
    throw new Error(`no bulk string: ${JSON.stringify(each)}`);
  });
}

/** One client's moves; each leaves all sums as they were, whether it succeeds or not. */
class Mover {
  readonly #client: RawClient;
  readonly #random: Random;

  constructor(client: RawClient, seed: number) {
    this.#client = client;
    this.#random = new Random(seed);
  }

  #one<T>(values: readonly T[]): T {
    return values[this.#random.below(values.length)];
  }

  async run(rounds: number): Promise<void> {
    const moves = [this.#moveMany, this.#moveWatched, this.#swapNames, this.#pay, this.#copy];
    for (let i = 0; i < rounds; i++) {
      for (const reply of await this.#one(moves).call(this)) {
        const [parsed] = parseReplies(reply);
        if ("error" in parsed) throw new Error(parsed.error);
      }
    }
  }

  #moveMany(): Promise<Buffer[]> {
    const move = (): string[] => {
      return ["SMOVE", this.#one(SETS), this.#one(SETS), `token:${this.#random.below(TOKENS)}`];
    };
    return this.#client.sendAll(Array.from({ length: 20 }, move));
  }

  /** A token that was seen there, if it is still there. */
  async #moveWatched(): Promise<Buffer[]> {
    const client = this.#client;
    const from = this.#one(SETS);
    await client.send("WATCH", from);
    const [member] = parseReplies(await client.send("SRANDMEMBER", from));
    if (!("bulk" in member)) return [await client.send("UNWATCH")];
    const to = this.#one(SETS);
    const token = member.bulk;
    return client.sendAll([["MULTI"], ["SREM", from, token], ["SADD", to, token], ["EXEC"]]);
  }

  async #swapNames(): Promise<Buffer[]> {
    const client = this.#client;
    const [a, b] = [this.#one(SETS), this.#one(SETS)];
    await client.send("WATCH", a, b);
    if (a === b || (await client.ask("EXISTS", a, b)) !== ":2\r\n") {
      return [await client.send("UNWATCH")];
    }
    const names = [
      ["RENAME", a, "between"],
      ["RENAME", b, a],
      ["RENAME", "between", b],
    ];
    return client.sendAll([["MULTI"], ...names, ["EXEC"]]);
  }

  #pay(): Promise<Buffer[]> {
    const field = (): string => `field:${this.#random.below(FIELDS)}`;
    const points = 1 + this.#random.below(5);
    const take = ["HINCRBY", this.#one(HASHES), field(), -points];
    const give = ["HINCRBY", this.#one(HASHES), field(), points];
    return this.#client.sendAll([["MULTI"], take, give, ["EXEC"]]);
  }

  #copy(): Promise<Buffer[]> {
    const copy = (): string => this.#one(COPIES);
    return this.#client.sendAll([
      ["COPY", this.#one([...SETS, ...HASHES]), copy(), "REPLACE"],
      ["PEXPIRE", copy(), this.#random.below(20)],
      ["SUNIONSTORE", copy(), ...SETS],
      ["DEL", copy()],
      ["COPY", this.#one(HASHES), copy(), "REPLACE"],
    ]);
  }
}

/** Looks at all of it, at one moment. */
async function look(client: RawClient): Promise<void> {
  const commands = [
    ...SETS.flatMap((name) => [
      ["SMEMBERS", name],
      ["SCARD", name],
    ]),
    ...HASHES.flatMap((name) => [
      ["HVALS", name],
      ["HLEN", name],
    ]),
  ];
  const replies = await client.sendAll([["MULTI"], ...commands, ["EXEC"]]);
  const [exec] = parseReplies(replies[replies.length - 1]);
  const found = elements(exec);
  const tokens: string[] = [];
  let points = 0;
  for (let i = 0; i < found.length; i += 2) {
    const members = bulks(found[i]);
    expect(found[i + 1]).toEqual({ integer: BigInt(members.length) });
    if (i < 2 * SETS.length) tokens.push(...members);
    else for (const value of members) points += Number(value);
  }
  expect(new Set(tokens).size).toBe(TOKENS);
  expect(tokens.length).toBe(TOKENS);
  expect(points).toBe(HASHES.length * FIELDS * POINTS);
}

test.each([1, 2])("tokens and points are conserved, with %d threads", async (threads) => {
  const path = join(newFolder(), "store");
  const gateway = await startGateway({ path, threads });
  const first = await enter(gateway);
  const tokens = Array.from({ length: TOKENS }, (_, i) => `token:${i}`);
  expect(await first.ask("SADD", SETS[0], ...tokens)).toBe(`:${TOKENS}\r\n`);
  const fields = Array.from({ length: FIELDS }, (_, i) => [`field:${i}`, POINTS]).flat();
  for (const name of HASHES) {
    expect(await first.ask("HSET", name, ...fields)).toBe(`:${FIELDS}\r\n`);
  }
  let isOver = false;
  const watching = Array.from({ length: 2 }, async () => {
    const client = await enter(gateway);
    let looks = 0;
    for (; !isOver || looks < 3; looks++) await look(client);
    return looks;
  });
  const moving = Array.from({ length: MOVERS }, async (_, i) => {
    await new Mover(await enter(gateway), SEED * 100 + i).run(ROUNDS);
  });
  try {
    await Promise.all(moving);
  } catch (cause) {
    throw new Error(`seed ${SEED}: ${(cause as Error).message}`, { cause });
  } finally {
    isOver = true;
  }
  for (const looks of await Promise.all(watching)) expect(looks).toBeGreaterThanOrEqual(3);
  await look(first);
  await gateway.close();
  const db = await open({ path, tables: REDIS_TABLES });
  try {
    expect((await db.verify()).problems).toEqual([]);
  } finally {
    await db.close();
  }
});
