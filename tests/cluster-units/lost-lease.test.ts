/**
 * The host's thread has no fabric that asks for the lease before replies leave (tests/fabric/tcp-lost-lease.test.ts). A
 * thread that stands still after it was asked does not tell what it has read.
 */

import { afterEach, beforeEach, expect, test } from "vitest";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import type { Incoming } from "../../src/fabric/fabric.ts";
import { ReadWords } from "../../src/fabric/verbs.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { OPEN_CALLS } from "../../src/protocols/kinds.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded } from "./fake-endpoint.ts";

let node: SimulatedNode;
/** What the gate says, one answer after the other. */
let answers: boolean[];
/** The bytes of replies that were begun, and calls that were served. */
let replies: Writer[];
let calls: number;

beforeEach(() => {
  const nodes = [{ id: 0, host: "simulated", port: 0 }];
  const configuration = configurationOf({ nodes, backups: 0 }, "the test");
  answers = [];
  replies = [];
  calls = 0;
  node = new SimulatedNode(new SimulatedFabric({ seed: 1 }), 0, configuration, {
    recovers: true,
    mayServe: () => answers.shift() ?? true,
  });
  node.service.handle({ kind: OPEN_CALLS, serve: () => void calls++ });
});
afterEach(() => node.close());

function serveAlone(kind: number, write: (out: Writer) => void = () => {}): void {
  const incoming: Incoming = {
    from: { node: 0, connection: 0 },
    kind,
    body: encoded(write),
    reply: () => {
      const out = new Writer();
      replies.push(out);
      return out;
    },
    defer: () => {
      throw new Error("nothing is deferred");
    },
  };
  node.service.serveAlone(incoming);
}

/** Two words of the node's memory. */
const verb = new ReadWords(0, 0, 2, () => {});
const read = (): void => serveAlone(verb.kind, (out) => verb.encode(out));

test("what was read is not told when the lease has run out meanwhile", () => {
  answers = [true, true];
  read();
  expect(replies[0].at).toBe(2);
  answers = [true, false];
  expect(failureSync("SITU_OVERLOADED", read).message).toMatch(/node 0 has no lease/);
  // It was read: the lease was there when the node was asked.
  expect(replies[1].at).toBe(2);
});

test("without a lease nothing is served", () => {
  answers = [false];
  failureSync("SITU_OVERLOADED", read);
  expect(replies).toEqual([]);
});

test("what was done is told: it says nothing of rows", () => {
  answers = [true, false];
  serveAlone(OPEN_CALLS);
  expect(calls).toBe(1);
});
