/** The tables phase → place: what they say, and that messages go where they say. */

import { describe, expect, test } from "vitest";
import { ADMINISTER_KIND, DESCRIBE_KIND, MEMBERSHIP_KIND } from "../../src/fabric/fabric.ts";
import { COPYING_PHASES } from "../../src/protocols/copying/phases.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { PHASES } from "../../src/protocols/phases/table.ts";
import {
  PROTOCOLS,
  type ProtocolName,
  protocolOf,
  threadOf,
  withThreads,
} from "../../src/protocols/places.ts";
import { RECOVERY_PHASES } from "../../src/protocols/recovery/phases/table.ts";

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const AT_PRIMARIES = [kinds.LOCK, kinds.READ_LOCK, kinds.VALIDATE, kinds.COMMIT, kinds.ABORT];
const AT_BACKUPS = [kinds.LOG, kinds.TRUNCATE];

describe.each(NAMES)("%s", (name) => {
  test.each(["nic", "host"] as const)("all messages at the %s", (thread) => {
    const protocol = protocolOf(name, thread);
    for (const kind of [...AT_PRIMARIES, ...AT_BACKUPS, kinds.READ, kinds.SCAN, kinds.SUBMIT]) {
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
  expect(protocolOf("one-sided", "host")).toMatchObject({ execute: "verb", locksOnRead: false });
  expect(protocolOf("rpc", "host")).toMatchObject({ execute: "message", locksOnRead: true });
});

test("what shares state cannot be torn apart", () => {
  for (const kind of [...AT_PRIMARIES, ...AT_BACKUPS]) {
    expect(() => withThreads(protocolOf("rpc", "nic"), { [kind]: "host" })).toThrow(/ended by/);
  }
});

test("a protocol that is not known here reads by message", () => {
  const unknown = protocolOf("of a later version", "nic");
  expect(unknown).toMatchObject({ name: "of a later version", execute: "message" });
});

test("every kind of message has one row: a name, a place, a handler", () => {
  const phases = [...PHASES, ...RECOVERY_PHASES, ...COPYING_PHASES].map(({ kind }) => kind);
  expect(new Set(phases).size).toBe(phases.length);
  const others = [
    kinds.SUBMIT,
    kinds.CALL,
    kinds.OPEN_SESSION,
    kinds.OPEN_CALLS,
    kinds.OUTCOME,
    kinds.CALL_OUTCOME,
    kinds.OPEN_TABLE,
    DESCRIBE_KIND,
    MEMBERSHIP_KIND,
    ADMINISTER_KIND,
  ];
  expect([...phases, ...others].sort()).toEqual(Object.keys(kinds.KIND_NAMES).map(Number).sort());
});
