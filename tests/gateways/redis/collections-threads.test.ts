/**
 * Hashes and sets of one store, changed by clients of several threads at once: nothing is lost or
 * doubled. The threads run the compiled form: `npm run build` first.
 */

import { expect, test } from "vitest";
import { serve } from "../../../src/gateways/serve.ts";
import { Random } from "../../../src/runtime/random.ts";
import { MIB, seed, temporaryStores } from "../../helpers/store.ts";
import { parseReplies, type Reply } from "../resp/parse-replies.ts";
import { RawClient } from "./raw-client.ts";

const stores = temporaryStores();

const CLIENTS = 4;
const ROUNDS = 150;
const SETS = ["a", "b", "c"];

function texts(bytes: Buffer): string[] {
  const [reply] = parseReplies(bytes);
  if (!("array" in reply)) throw new Error(`no array: ${bytes.toString("latin1")}`);
  return reply.array.map((each: Reply) => ("bulk" in each ? each.bulk.toString() : ""));
}

test("members move between large sets and counters of a hash are raised", async () => {
  const options = { path: stores.folder(), port: 0, threads: 2, memoryBytes: 64 * MIB } as const;
  const gateway = await serve({ ...options, durability: "none" });
  stores.later(() => gateway.close());
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => RawClient.connect(gateway.port)),
  );
  stores.later(() => {
    for (const client of clients) client.close();
  });
  const [first] = clients;
  const members = Array.from({ length: 600 }, (_, i) => `member:${i}`);
  await first.ask("sadd", "a", ...members);
  await first.ask("hset", "h", ...members.flatMap((each) => [each, 0]));

  let raised = 0;
  const work = async (client: RawClient, from: number): Promise<void> => {
    const random = new Random(from);
    for (let round = 0; round < ROUNDS; round++) {
      const requests = Array.from({ length: 4 }, () => {
        const member = members[random.below(members.length)];
        const [source, target] = [SETS[random.below(3)], SETS[random.below(3)]];
        return random.below(3) === 0
          ? ["hincrby", "h", member, 1]
          : ["smove", source, target, member];
      });
      const replies = await client.sendAll(requests);
      raised += requests.filter(([name]) => name === "hincrby").length;
      for (const reply of replies) expect(reply.toString("latin1")).toMatch(/^:\d+\r\n$/);
      // Taken out of one and put into another, in one transaction each.
      const [popped] = parseReplies(await client.send("spop", SETS[random.below(3)]));
      if ("bulk" in popped) await client.ask("sadd", SETS[random.below(3)], popped.bulk);
    }
  };
  await Promise.all(clients.map((client, i) => work(client, seed + i)));

  const all: string[] = [];
  for (const key of SETS) {
    const found = texts(await first.send("smembers", key));
    expect(await first.ask("scard", key)).toBe(`:${found.length}\r\n`);
    all.push(...found);
  }
  expect(all.toSorted(), `SITU_SEED=${seed}`).toEqual(members.toSorted());
  const counters = texts(await first.send("hvals", "h"));
  expect(counters.reduce((sum, each) => sum + Number(each), 0)).toBe(raised);
});
