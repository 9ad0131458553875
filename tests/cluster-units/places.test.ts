/** The tables phase → place: what they say, and that messages go where they say. */

import { describe, expect, test } from "vitest";
import { DESCRIBE_KIND } from "../../src/fabric/fabric.ts";
import { COPYING_HANDLERS } from "../../src/protocols/copying/phases.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { MESSAGES, messageOf, PHASES, type PhaseName } from "../../src/protocols/phases/phases.ts";
import { COMMIT_HANDLERS } from "../../src/protocols/phases/table.ts";
import {
  type Places,
  PROTOCOLS,
  type ProtocolName,
  placesOf,
  protocolOf,
  threadOf,
} from "../../src/protocols/places.ts";
import { RECOVERY_HANDLERS } from "../../src/protocols/recovery/phases/table.ts";
import { failureSync } from "../helpers/store.ts";

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const PHASE_NAMES = Object.keys(PHASES) as PhaseName[];
const SHARING = PHASE_NAMES.filter((phase) => "shares" in PHASES[phase]);

describe.each(NAMES)("%s", (name) => {
  test.each(["nic", "host"] as const)("all messages of transactions at the %s", (thread) => {
    const protocol = protocolOf(name, thread);
    for (const { kind, phase } of MESSAGES) {
      if (phase === "call" || phase === "belong") continue;
      expect(threadOf(protocol, kind), kinds.KIND_NAMES[kind]).toBe(thread);
    }
  });

  test.each(["nic", "host"] as const)(
    "procedures at the host, who-are-you at the NIC: %s",
    (thread) => {
      expect(threadOf(protocolOf(name, thread), kinds.CALL)).toBe("host");
      expect(threadOf(protocolOf(name, thread), DESCRIBE_KIND)).toBe("nic");
    },
  );
});

test("FaRM finds rows by verb, FaSST by message; only FaSST locks as it reads", () => {
  const farm = protocolOf("one-sided", "host");
  expect(farm).toMatchObject({ readsByVerb: true, locksOnRead: false });
  expect(farm.places).toMatchObject({ execute: "verb", coordinate: "host" });
  const fasst = protocolOf("rpc", "host");
  expect(fasst).toMatchObject({ readsByVerb: false, locksOnRead: true });
  expect(fasst.places).toMatchObject({ execute: "host", coordinate: "host" });
});

describe("a mixture", () => {
  test("has the phases where it says, and the others at one thread", () => {
    const mixture: Partial<Places> = { execute: "nic", open: "nic" };
    const protocol = protocolOf("rpc", "host", mixture);
    for (const kind of [kinds.READ, kinds.SCAN, kinds.OPEN_TABLE]) {
      expect(threadOf(protocol, kind)).toBe("nic");
    }
    for (const kind of [kinds.LOCK, kinds.LOG, kinds.SUBMIT, kinds.FETCH_ROWS, kinds.SETTLE]) {
      expect(threadOf(protocol, kind)).toBe("host");
    }
  });

  test("can take the verbs out of a protocol, or put them in", () => {
    expect(protocolOf("one-sided", "nic", { execute: "host" }).readsByVerb).toBe(false);
    const read = protocolOf("rpc", "host", { execute: "verb" });
    expect(read).toMatchObject({ readsByVerb: true, locksOnRead: true });
    expect(threadOf(read, kinds.READ)).toBe("host");
  });

  test.each(SHARING)("that tears %s from what it shares is refused with the reason", (phase) => {
    const error = failureSync("SITU_CONFIG", () => protocolOf("rpc", "nic", { [phase]: "host" }));
    expect(error.message).toMatch(/at the nic .* at the host|at the host .* at the nic/);
    expect(error.message).toContain("both need what LOCK has prepared and LOG has kept");
    expect(error.message).toContain(phase);
  });

  test("that moves all phases that share something is the same as the other thread", () => {
    const all = Object.fromEntries(SHARING.map((phase) => [phase, "host"]));
    const moved = protocolOf("rpc", "nic", { ...all, execute: "host", open: "host" });
    expect(moved).toEqual(protocolOf("rpc", "host"));
  });

  test.each<[unknown, string]>([
    [null, "object"],
    [["nic"], "object"],
    [{ excute: "nic" }, 'no phase "excute"'],
    [{ lock: "verb" }, "lock can be at nic, host"],
    [{ call: "nic" }, "call can be at host"],
    [{ execute: "device" }, "execute can be at verb, nic, host"],
    [{ toString: "nic" }, "no phase"],
  ])("that is wrong, %j, says why", (given, why) => {
    expect(failureSync("SITU_CONFIG", () => placesOf(given)).message).toContain(why);
  });
});

test("a protocol that is not known here reads by message", () => {
  const unknown = protocolOf("of a later version", "nic");
  expect(unknown).toMatchObject({ name: "of a later version", readsByVerb: false });
});

test("every kind of message has one row, a name, and a phase that exists", () => {
  const rows = MESSAGES.map(({ kind }) => kind);
  expect(new Set(rows).size).toBe(rows.length);
  // Memory servers and the NICs of Xenic have handlers of their own (protocols/nam/, protocols/xenic/).
  const isElsewhere = ([name]: [string, unknown]): boolean => /^(NAM|XENIC)_/.test(name);
  const elsewhere = Object.entries(kinds)
    .filter(isElsewhere)
    .map(([, kind]) => Number(kind));
  expect(elsewhere.length).toBeGreaterThan(2);
  const named = Object.keys(kinds.KIND_NAMES).map(Number);
  expect([...rows, ...elsewhere].sort()).toEqual(named.sort());
  for (const { phase } of MESSAGES) expect(PHASES).toHaveProperty(phase);
  expect(messageOf(1)).toBeUndefined();
});

test("handlers of a layer are bound to kinds that the table has", () => {
  const bound = [...COMMIT_HANDLERS, ...RECOVERY_HANDLERS, ...COPYING_HANDLERS];
  for (const { kind } of bound) expect(messageOf(kind), `kind ${kind}`).toBeDefined();
  // What nodes need to go on serving after a change is served without a lease.
  for (const { kind } of RECOVERY_HANDLERS) expect(messageOf(kind)?.needsNoLease).toBe(true);
});
