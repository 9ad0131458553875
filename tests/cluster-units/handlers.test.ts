/** The table of handlers: who is served, and by what. */

import { expect, test } from "vitest";
import type { Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { type Handler, Handlers } from "../../src/protocols/phases/table.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded } from "./fake-endpoint.ts";

interface Thread {
  readonly served: string[];
}

function handler(kind: number, name: string, more: Partial<Handler<Thread>> = {}): Handler<Thread> {
  const serve = ({ served }: Thread): void => void served.push(name);
  return { kind, sender: "anyone", begins: false, serve, ...more };
}

function incoming(kind: number, node: NodeId, coordinator = 0): Incoming {
  return {
    from: { node, connection: 0 },
    kind,
    body: encoded((out) => out.word(coordinator)),
    reply: () => new Writer(),
    defer: () => {
      throw new Error("nothing is deferred here");
    },
  };
}

test("a kind has one handler, and one that has none is refused", () => {
  const thread = { served: [] };
  const handlers = new Handlers<Thread>([handler(20, "a")], [handler(21, "b")]);
  handlers.add(handler(22, "c"));
  for (const kind of [22, 20, 21]) handlers.serve(thread, incoming(kind, -1));
  expect(thread.served).toEqual(["c", "a", "b"]);
  failureSync("SITU_PROTOCOL", () => handlers.serve(thread, incoming(23, 0)));
  expect(() => handlers.add(handler(20, "again"))).toThrow(/one handler/);
});

test("a coordinator's message is served for its own node only", () => {
  const thread = { served: [] };
  const handlers = new Handlers<Thread>([handler(20, "a", { sender: "coordinator" })]);
  // Each node has two coordinators.
  for (const coordinator of [4, 5]) handlers.serve(thread, incoming(20, 2, coordinator));
  expect(thread.served).toEqual(["a", "a"]);
  for (const node of [-1, 1, 4]) {
    failureSync("SITU_PERMISSION", () => handlers.serve(thread, incoming(20, node, 4)));
  }
});

test("one that is being closed begins nothing, and ends what it has begun", () => {
  const thread = { served: [] };
  const handlers = new Handlers<Thread>([
    handler(20, "begin", { begins: true }),
    handler(21, "end"),
  ]);
  handlers.serve(thread, incoming(20, 0));
  handlers.refuseBeginnings("node 3 is being closed");
  const error = failureSync("SITU_OVERLOADED", () => handlers.serve(thread, incoming(20, 0)));
  expect(error.message).toBe("node 3 is being closed");
  handlers.serve(thread, incoming(21, 0));
  expect(thread.served).toEqual(["begin", "end"]);
});
