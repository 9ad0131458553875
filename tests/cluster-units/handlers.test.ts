/** The registry of a thread: who is served, and by what. */

import { expect, test } from "vitest";
import type { Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import {
  CALL,
  COMMIT,
  LOCK,
  LOG,
  NEED_RECOVERY,
  OPEN_CALLS,
  OPEN_SESSION,
  READ,
  SCAN,
  SUBMIT,
} from "../../src/protocols/kinds.ts";
import { type Handler, Registry } from "../../src/protocols/phases/registry.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded } from "./fake-endpoint.ts";

interface Thread {
  readonly served: string[];
}

function handler(kind: number, name: string): Handler<Thread> {
  return { kind, serve: ({ served }) => void served.push(name) };
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
  const registry = new Registry<Thread>([handler(READ, "a")], [handler(SCAN, "b")]);
  registry.add(handler(SUBMIT, "c"));
  for (const kind of [SUBMIT, READ, SCAN]) registry.serve(thread, incoming(kind, -1));
  expect(thread.served).toEqual(["c", "a", "b"]);
  failureSync("SITU_PROTOCOL", () => registry.serve(thread, incoming(COMMIT, 0)));
  expect(() => registry.add(handler(READ, "again"))).toThrow(/one handler/);
  expect(() => registry.add(handler(200, "of no phase"))).toThrow(/row in the table/);
});

test("a coordinator's message is served for its own node only", () => {
  const thread = { served: [] };
  const registry = new Registry<Thread>([handler(LOG, "a")]);
  // Each node has two coordinators.
  for (const coordinator of [4, 5]) registry.serve(thread, incoming(LOG, 2, coordinator));
  expect(thread.served).toEqual(["a", "a"]);
  for (const node of [-1, 1, 4]) {
    failureSync("SITU_PERMISSION", () => registry.serve(thread, incoming(LOG, node, 4)));
  }
});

test("what nodes send each other is not served for clients", () => {
  const thread = { served: [] };
  const registry = new Registry<Thread>([handler(NEED_RECOVERY, "a")]);
  registry.serve(thread, incoming(NEED_RECOVERY, 1));
  failureSync("SITU_PERMISSION", () => registry.serve(thread, incoming(NEED_RECOVERY, -1)));
  expect(thread.served).toEqual(["a"]);
});

test("one that is being closed begins nothing, and ends what it has begun", () => {
  const thread = { served: [] };
  const registry = new Registry<Thread>([handler(LOCK, "begin"), handler(COMMIT, "end")]);
  registry.serve(thread, incoming(LOCK, 0));
  registry.refuseBeginnings("node 3 is being closed");
  const error = failureSync("SITU_OVERLOADED", () => registry.serve(thread, incoming(LOCK, 0)));
  expect(error.message).toBe("node 3 is being closed");
  registry.serve(thread, incoming(COMMIT, 0));
  expect(thread.served).toEqual(["begin", "end"]);
});

test.each([SUBMIT, OPEN_SESSION, CALL, OPEN_CALLS])(
  "one that is being closed begins nothing for clients (kind %d)",
  (kind) => {
    const thread = { served: [] };
    const registry = new Registry<Thread>([handler(kind, "begin")]);
    registry.refuseBeginnings("node 3 is being closed");
    failureSync("SITU_OVERLOADED", () => registry.serve(thread, incoming(kind, -1)));
    expect(thread.served).toEqual([]);
  },
);
