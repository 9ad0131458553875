/** The tables phase → place: what they say, and that messages go where they say. */

import { describe, expect, test } from "vitest";
import { DESCRIBE_KIND } from "../../src/fabric/fabric.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { PROTOCOLS, type ProtocolName, placesOf, threadOf } from "../../src/protocols/places.ts";

const NAMES = Object.keys(PROTOCOLS) as ProtocolName[];
const AT_PRIMARIES = [kinds.LOCK, kinds.READ_LOCK, kinds.VALIDATE, kinds.COMMIT, kinds.ABORT];
const AT_BACKUPS = [kinds.LOG, kinds.TRUNCATE];

describe.each(NAMES)("%s", (name) => {
  test.each(["nic", "host"] as const)("all messages at the %s", (thread) => {
    const places = placesOf(name, thread);
    for (const kind of [...AT_PRIMARIES, ...AT_BACKUPS, kinds.READ, kinds.SCAN, kinds.SUBMIT]) {
      expect(threadOf(places, kind), kinds.KIND_NAMES[kind]).toBe(thread);
    }
  });

  test.each(["nic", "host"] as const)(
    "procedures at the host, who-are-you at the NIC: %s",
    (thread) => {
      expect(threadOf(placesOf(name, thread), kinds.CALL)).toBe("host");
      expect(threadOf(placesOf(name, thread), DESCRIBE_KIND)).toBe("nic");
    },
  );
});

test("FaRM finds rows by verb, FaSST by message; only FaSST locks as it reads", () => {
  expect(placesOf("one-sided", "host")).toMatchObject({ execute: "verb", locksOnRead: false });
  expect(placesOf("rpc", "host")).toMatchObject({ execute: "host", locksOnRead: true });
});

test("copies at one thread and locks at the other", () => {
  const mixed = { ...placesOf("rpc", "nic"), log: "host", truncate: "host" } as const;
  for (const kind of AT_BACKUPS) expect(threadOf(mixed, kind)).toBe("host");
  for (const kind of AT_PRIMARIES) expect(threadOf(mixed, kind)).toBe("nic");
});
