/**
 * Many clients at once, on two threads that share the store: random commands of all groups on the
 * same few keys, in pipelines and transactions. Whatever gets in between whom, each request has a
 * reply, what one transaction shows fits together, and in the end the tables do.
 */

import { expect, test } from "vitest";
import { largeIn } from "../../../src/gateways/redis/collections/large.ts";
import {
  REDIS_TABLES,
  RedisExpiries,
  RedisGarbage,
  RedisKeys,
  RedisMembers,
  STRING,
} from "../../../src/gateways/redis/tables.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { eventually, MIB, seed, temporaryStores } from "../../helpers/store.ts";
import { parseReplies } from "../resp/parse-replies.ts";
import { Dice } from "./against-redis.ts";
import { hashSteps } from "./hashes-commands.ts";
import { keyStep } from "./keys-commands.ts";
import { type Argument, RawClient } from "./raw-client.ts";
import { setSteps } from "./sets-commands.ts";
import { stringStep } from "./strings-commands.ts";

const CLIENTS = 8;
const ROUNDS = 150;
const GROUPS = [stringStep, keyStep, hashSteps(true), setSteps(true)];

const stores = temporaryStores();

/** What a client sends in one go. */
function requestsOf(dice: Dice): (readonly Argument[])[] {
  const length = 1 + dice.below(30);
  const requests = Array.from({ length }, () => dice.one(GROUPS)(dice).args);
  if (dice.rarely(4)) requests.unshift(["watch", "a", "b"]);
  return dice.rarely(3) ? [["multi"], ...requests, ["exec"]] : requests;
}

/** A set's size and its members, in one transaction. */
async function checkSet(client: RawClient): Promise<void> {
  const requests = [["unwatch"], ["multi"], ["scard", "a"], ["smembers", "a"], ["exec"]];
  const replies = await client.sendAll(requests);
  const [reply] = parseReplies(replies[4]);
  if (!("array" in reply)) throw new Error(replies[4].toString());
  const [size, members] = reply.array;
  if ("integer" in size && "array" in members) {
    expect(members.array.length, `SITU_SEED=${seed}`).toBe(Number(size.integer));
  }
}

async function storm(port: number, number: number): Promise<void> {
  const dice = new Dice(seed + number);
  const client = await RawClient.connect(port);
  stores.later(() => client.close());
  for (let round = 0; round < ROUNDS; round++) {
    const requests = requestsOf(dice);
    const replies = await client.sendAll(requests);
    for (const reply of replies) {
      // Errors of the store would be told with its code.
      expect(reply.toString("latin1"), `SITU_SEED=${seed}`).not.toMatch(/SITU_|^-OOM/);
    }
    await checkSet(client);
  }
}

test("two threads and many clients on the same keys", async () => {
  const path = stores.folder();
  const gateway = await serve({
    ...{ path, port: 0, threads: 2, durability: "none", memoryBytes: 64 * MIB },
  });
  stores.later(() => gateway.close());
  await Promise.all(Array.from({ length: CLIENTS }, (_, i) => storm(gateway.port, i)));

  const db = await stores.open({ path, tables: REDIS_TABLES });
  await eventually(() => db.count(RedisGarbage) === 0);
  const snapshot = db.snapshot();
  let members = 0;
  let expiring = 0;
  for (const { type, value, expires } of snapshot.scan(RedisKeys)) {
    if (type !== STRING) members += largeIn(value)?.members ?? 0;
    if (expires !== 0) expiring++;
  }
  expect(snapshot.count(RedisMembers)).toBe(members);
  expect(snapshot.count(RedisExpiries)).toBe(expiring);
  snapshot.close();
});
