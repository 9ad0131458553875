/** Messages about leases as bytes: what is not right in any way is as if it had not come. */

import { expect, test } from "vitest";
import { LeaseDatagrams } from "../../src/cluster/membership/lease-datagrams.ts";
import type { LeaseMessage } from "../../src/cluster/membership/leases.ts";
import { MAX_LEASE_MESSAGE_BYTES } from "../../src/runtime/limits.ts";
import { check, fc } from "../helpers/property.ts";

const message: LeaseMessage = {
  configurationId: 7,
  from: 3,
  instance: "life-of-3",
  toInstance: "life-of-5",
  request: 12,
  grant: 2 ** 40,
  grantMs: 237.5,
};

function bytesOf(from: LeaseDatagrams, to = 5, what = message): Buffer {
  const buffer = Buffer.alloc(MAX_LEASE_MESSAGE_BYTES);
  return buffer.subarray(0, from.encode(buffer, to, what));
}

const three = new LeaseDatagrams({ self: 3, cluster: "shop", secret: "s" });
const five = new LeaseDatagrams({ self: 5, cluster: "shop", secret: "s" });

test("they arrive as they were, with a secret and without", () => {
  expect(five.decode(bytesOf(three))).toEqual(message);
  const open = new LeaseDatagrams({ self: 3, cluster: "shop" });
  expect(new LeaseDatagrams({ self: 5, cluster: "shop" }).decode(bytesOf(open))).toEqual(message);
});

test.each([
  ["another node", 4, "shop", "s"],
  ["another cluster", 5, "shoq", "s"],
  ["another secret", 5, "shop", "t"],
  ["no secret", 5, "shop", undefined],
])("not by %s", (_, self, cluster, secret) => {
  expect(new LeaseDatagrams({ self, cluster, secret }).decode(bytesOf(three))).toBeUndefined();
  const stranger = new LeaseDatagrams({ self: 3, cluster, secret });
  if (self === 5) expect(five.decode(bytesOf(stranger))).toBeUndefined();
});

test("not with any bit changed, nor shorter, nor longer", () => {
  const whole = bytesOf(three);
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole);
    changed[at] ^= 1 << (at % 8);
    expect(five.decode(changed)).toBeUndefined();
    expect(five.decode(whole.subarray(0, at))).toBeUndefined();
  }
  expect(five.decode(Buffer.concat([whole, Buffer.alloc(1)]))).toBeUndefined();
});

test("without a secret, garbage gives no message or a sound one, and never an error", () => {
  const open = new LeaseDatagrams({ self: 5, cluster: "shop" });
  const whole = bytesOf(new LeaseDatagrams({ self: 3, cluster: "shop" }));
  check(
    fc.property(fc.nat(whole.length - 1), fc.uint8Array({ maxLength: 64 }), (at, bytes) => {
      const garbage = Buffer.from(whole);
      garbage.set(bytes.subarray(0, garbage.length - at), at);
      const read = open.decode(garbage);
      if (read === undefined) return;
      expect(Number.isSafeInteger(read.request)).toBe(true);
      expect(read.grantMs).toBeGreaterThanOrEqual(0);
    }),
  );
  expect(open.decode(Buffer.alloc(0))).toBeUndefined();
  expect(open.decode(Buffer.alloc(2_000, 1))).toBeUndefined();
});

test("names that are too long make none", () => {
  const long = { ...message, instance: "x".repeat(MAX_LEASE_MESSAGE_BYTES) };
  expect(bytesOf(three, 5, long)).toHaveLength(0);
});
