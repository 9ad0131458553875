/** Messages about the configuration as they travel: whole, or refused. */

import { expect, test } from "vitest";
import {
  MembershipRequest,
  membershipMessageOf,
} from "../../src/cluster/membership/membership-request.ts";
import type { MembershipMessage } from "../../src/cluster/membership/messages.ts";
import { succeeding } from "../../src/cluster/membership/succession.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { configurationWith } from "./lease-group.ts";

const first = configurationWith(1, ["0.0", "1.0", "2.0"]);
const second = succeeding(first, false, configurationWith(2, ["0.0", "1.0"]));
const node = first.nodes[1];

const MESSAGES: readonly MembershipMessage[] = [
  { what: "probe", configurationId: 3, attempt: 7 },
  {
    what: "probed",
    configurationId: 3,
    attempt: 7,
    instance: "1.0",
    hasManager: true,
    joining: undefined,
  },
  {
    what: "probed",
    configurationId: 0,
    attempt: 7,
    instance: "1.1",
    hasManager: false,
    joining: node,
  },
  { what: "new configuration", configuration: second },
  { what: "acknowledged", configurationId: 2, instance: "1.0", remainingMs: 12.5 },
  { what: "committed", configurationId: 2 },
  { what: "join", node, hasItsData: true },
  { what: "filled", configurationId: 2, instance: "1.0", partitions: [0, 7] },
  { what: "refused", instance: "1.1", why: "no room" },
];

function textOf(message: MembershipMessage): string {
  const out = new Writer();
  new MembershipRequest(message).encode(out);
  return new Reader(out.views).reset(out.views, 0, out.at).text();
}

test.each(MESSAGES.map((each) => [each.what, each] as const))("%s", (_, message) => {
  expect(membershipMessageOf(textOf(message), "a test")).toEqual(message);
});

test.each([
  ["no JSON", "{"],
  ["nothing", "null"],
  ["what nobody knows", '{"what":"hello"}'],
  ["no number", '{"what":"probe","configurationId":"1","attempt":1}'],
  ["a negative one", '{"what":"probe","configurationId":-1,"attempt":1}'],
  ["no life", '{"what":"acknowledged","configurationId":1,"remainingMs":1}'],
  ["no time", '{"what":"acknowledged","configurationId":1,"instance":"a","remainingMs":-1}'],
  ["no list", '{"what":"filled","configurationId":1,"instance":"a","partitions":[-1]}'],
  ["no configuration", '{"what":"new configuration","configuration":{"nodes":[]}}'],
  ["no address", '{"what":"join","node":{"id":1}}'],
])("refused: %s", (_, text) => {
  expect(() => membershipMessageOf(text, "node 1")).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^SITU_(PROTOCOL|CONFIG)$/) }),
  );
});
