/**
 * A thread that stands still after it was asked for its lease, such as in a collection of garbage or with its machine:
 * others may have begun to serve by then, and what it has read is not told any more.
 */

import { afterEach, beforeEach, expect, test } from "vitest";
import type { TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { type Asked, echo, padded, TestService } from "../helpers/fabric-requests.ts";
import { addressesOf, eventually, openClient, openNode } from "../helpers/fabric-tcp.ts";

let hasLease: boolean;
let standsStill: boolean;
let node: TcpEndpoint;
let client: TcpEndpoint;

beforeEach(async () => {
  hasLease = true;
  standsStill = false;
  const { serve } = new TestService();
  node = await openNode(0, {
    gate: { mayServe: () => hasLease, isWhole: true },
    service: (incoming) => {
      serve(incoming);
      // The lease runs out when the row is read, and the reply written.
      if (standsStill) hasLease = false;
    },
  });
  node.setNodes(addressesOf([node]));
  client = await openClient([node]);
});
afterEach(async () => {
  await client.close();
  await node.close();
});

async function ask(from: TcpEndpoint, word: number): Promise<Asked> {
  const asked = echo(word);
  from.send(0, asked);
  await eventually(() => asked.isOver);
  return asked;
}

test.each(["a client", "the node itself"])("%s is not told what was read", async (who) => {
  const asker = who === "a client" ? client : node;
  expect(await ask(asker, 1)).toMatchObject({ ends: ["replied"], words: padded([1]) });
  standsStill = true;
  expect(await ask(asker, 2)).toMatchObject({ ends: ["SITU_LOST"], words: [] });
  // With a lease again, it serves as before.
  standsStill = false;
  hasLease = true;
  expect(await ask(asker, 3)).toMatchObject({ ends: ["replied"], words: padded([3]) });
});
