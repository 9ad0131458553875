/** The procedures of a node: once for each number, and nothing that one returns or throws ends the node. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Call } from "../../src/cluster/call.ts";
import type { Incoming, Ticket } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { type ProcedureHost, Procedures } from "../../src/node/procedures.ts";
import { CALL, OPEN_CALLS } from "../../src/protocols/kinds.ts";
import { MAX_FRAME_BYTES, MAX_RUNNING_CALLS } from "../../src/runtime/limits.ts";
import { eventually, failure, sleep } from "../helpers/store.ts";
import { encoded, readerOf } from "./fake-endpoint.ts";

const MODULE = `
let runs = 0;
const made = (name, body) => ({ kind: "situ procedure", name, body, tables: [], at: undefined });
export const add = made("add", async (tx, a, b) => a + b);
export const count = made("count", async () => ++runs);
export const slow = made("slow", () => new Promise((resolve) => setTimeout(() => resolve(++runs), 30)));
export const returnsFunction = made("returns a function", () => () => {});
export const returnsCycle = made("returns a cycle", () => { const a = {}; a.a = a; return a; });
export const returnsMuch = made("returns much", () => "x".repeat(${MAX_FRAME_BYTES}));
export const throwsNothing = made("throws null", () => { throw null; });
export const throwsOdd = made("throws an odd object", () => { throw Object.create(null); });
export const throwsCoded = made("throws a coded error", () => { throw Object.assign(new Error("gone"), { code: "SITU_FULL" }); });
export const throws = made("throws", () => { throw new RangeError("too far"); });
export const gate = made("gate", () => globalThis.situTestGate);
export const somethingElse = 7;
`;

let folder: string;
let procedures: Procedures;
let opened: number;
let committed: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "situ-test-procedures-"));
  const path = join(folder, "procedures.mjs");
  writeFileSync(path, MODULE);
  procedures = await Procedures.load([path]);
  procedures.serveOpen({
    from: { node: -1, connection: 0 },
    kind: OPEN_CALLS,
    body: encoded((out) => out.text("s")),
    reply: () => new Writer(),
    defer: () => expect.fail("a session is opened at once"),
  });
  opened = 0;
  committed = 0;
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** As much of a host as procedures need that have no tables. */
const host = {
  db: {
    openTables: async () => void opened++,
    transactFor: async (_: unknown, __: number, body: (tx: unknown) => unknown) => {
      const returned = await body({});
      committed++;
      return returned;
    },
  },
  service: { self: 0 },
  meet: async () => {},
} as unknown as ProcedureHost;

interface Answered {
  readonly replies: unknown[];
}

/** Calls a procedure as a message would, and collects what goes back. */
function call(name: string, number: number, ...values: unknown[]): Answered {
  return callWithin(60_000, name, number, ...values);
}

function callWithin(leftMs: number, name: string, number: number, ...values: unknown[]): Answered {
  const replies: unknown[] = [];
  const called = { procedure: name, values, isPassedOn: false };
  const message = new Call(0, { session: "s", number }, called, { leftMs: () => leftMs });
  const ticket: Ticket = {
    isWanted: true,
    reply(write) {
      const out = new Writer();
      write(out);
      message.waiting = { ended: () => {} };
      message.replied(readerOf(out.views.i32.slice(0, out.at)));
      const { returned, error } = message;
      if (error !== undefined) throw error;
      replies.push(returned!.isDone ? returned!.value : returned!.error.code);
    },
    fail: (error) => void replies.push(`failed ${error.code}`),
  };
  const incoming: Incoming = {
    from: { node: -1, connection: 0 },
    kind: CALL,
    body: encoded((out) => message.encode(out)),
    reply: () => new Writer(),
    defer: () => ticket,
  };
  procedures.serve(host, incoming);
  return { replies };
}

async function answerOf(name: string, number: number, ...values: unknown[]): Promise<unknown> {
  const { replies } = call(name, number, ...values);
  await eventually(() => replies.length > 0);
  return replies[0];
}

describe("procedures", () => {
  test("are found in modules; what is none is passed over; two of one name are refused", async () => {
    expect(procedures.names).toContain("add");
    expect(procedures.names).toHaveLength(11);
    const path = join(folder, "procedures.mjs");
    await failure("SITU_CONFIG", () => Procedures.load([path, path]));
    await failure("SITU_CONFIG", () => Procedures.load([join(folder, "none.mjs")]));
  });

  test("run with their arguments; their tables are opened once", async () => {
    expect(await answerOf("add", 0, 2, 3)).toBe(5);
    expect(await answerOf("add", 1, "a", "b")).toBe("ab");
    expect(opened).toBe(1);
    expect(await answerOf("nobody", 2)).toBe("SITU_UNKNOWN_PROCEDURE");
  });

  test("run once for each number: who asks again gets the first result, or waits for it", async () => {
    const first = await answerOf("count", 0);
    expect(await answerOf("count", 0)).toBe(first);
    expect(await answerOf("count", 1)).not.toBe(first);
    const [slow, again] = [call("slow", 2), call("slow", 2)];
    await eventually(() => slow.replies.length > 0 && again.replies.length > 0);
    expect(again.replies).toEqual(slow.replies);
  });

  test.each([
    ["returns a function", "SITU_TYPE"],
    ["returns a cycle", "SITU_TOO_LARGE"],
    ["returns much", "SITU_TOO_LARGE"],
    ["throws null", "SITU_PROCEDURE"],
    ["throws an odd object", "SITU_PROCEDURE"],
    ["throws", "SITU_PROCEDURE"],
    ["throws a coded error", "SITU_FULL"],
  ])(
    "one that %s fails with %s, each time it is asked for, and commits nothing",
    async (name, code) => {
      expect(await answerOf(name, 0)).toBe(code);
      expect(await answerOf(name, 0)).toBe(code);
      expect(committed).toBe(0);
      expect(await answerOf("add", 1, 1, 1)).toBe(2);
    },
  );

  test("so many run at once; the others wait, and one whose time is over by then is not begun", async () => {
    let open = (): void => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    Object.assign(globalThis, { situTestGate: gate });
    try {
      const before = (await answerOf("count", 0)) as number;
      const running = Array.from({ length: MAX_RUNNING_CALLS }, (_, i) => call("gate", 1 + i));
      await sleep(20);
      const waiting = call("add", 2_000, 1, 2);
      const late = callWithin(1, "count", 2_001);
      const later = call("count", 2_002);
      await sleep(20);
      expect([running, waiting, late, later].flat().flatMap(({ replies }) => replies)).toEqual([]);
      open();
      await eventually(() => running.every(({ replies }) => replies.length > 0));
      await eventually(() => later.replies.length > 0);
      expect(waiting.replies).toEqual([3]);
      expect(late.replies).toEqual(["SITU_OVERLOADED"]);
      expect(later.replies).toEqual([before + 1]);
    } finally {
      Reflect.deleteProperty(globalThis, "situTestGate");
    }
  });
});
