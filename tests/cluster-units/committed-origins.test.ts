/** What copies remember of transactions that have ended: for whom they were committed. */

import { expect, test } from "vitest";
import { CommittedOrigins } from "../../src/cluster/committed-origins.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { View } from "../../src/cluster/view.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { Name } from "../../src/protocols/names.ts";
import type { Origin } from "../../src/protocols/origin.ts";
import { AT_BACKUP, Head, recordOf } from "../../src/protocols/records.ts";
import {
  MAX_COMBINED_CALLS,
  MAX_SESSION_NAME_LENGTH,
  SESSION_SLOTS,
} from "../../src/runtime/limits.ts";
import { ManualClock } from "./fake-endpoint.ts";

function recordFor(origin: Origin | undefined): Int32Array {
  const out = new Writer();
  const name = Object.assign(new Name(), { coordinator: 3, sequence: 2 ** 40 + 1, low: 7 });
  new Head(name, 5, origin, [1, 2, 300]).encode(out);
  for (let i = 0; i < 500; i++) out.word(i);
  return recordOf(AT_BACKUP, { views: out.views }, 0, out.at);
}

test("the origin of a record, however long its session's name is", () => {
  const committed = new CommittedOrigins(new ManualClock());
  const names = ["s", "a client", "größer", "ü".repeat(MAX_SESSION_NAME_LENGTH)];
  for (const [number, session] of names.entries()) {
    expect(committed.has({ session, number })).toBe(false);
    committed.note(recordFor({ session, number }));
    expect(committed.has({ session, number })).toBe(true);
    expect(committed.has({ session, number: number + 1 })).toBe(false);
  }
  committed.note(recordFor(undefined));
});

test("all whose calls a transaction has carried out", () => {
  const committed = new CommittedOrigins(new ManualClock());
  const session = "ü".repeat(MAX_SESSION_NAME_LENGTH);
  const others = Array.from({ length: MAX_COMBINED_CALLS - 1 }, (_, i) => ({
    session: `${i}${session}`.slice(0, MAX_SESSION_NAME_LENGTH),
    number: i + 5,
  }));
  committed.note(recordFor({ session, number: 4, others }));
  for (const origin of [{ session, number: 4 }, ...others]) {
    expect(committed.has(origin)).toBe(true);
    expect(committed.has({ ...origin, number: origin.number + 1 })).toBe(false);
  }
});

test("the last number of each slot, in whichever order they come", () => {
  const committed = new CommittedOrigins(new ManualClock());
  const session = "s";
  committed.add({ session, number: SESSION_SLOTS + 1 });
  committed.add({ session, number: 1 });
  committed.add({ session, number: 2 });
  expect(committed.has({ session, number: SESSION_SLOTS + 1 })).toBe(true);
  expect(committed.has({ session, number: 1 })).toBe(false);
  expect(committed.has({ session, number: 2 })).toBe(true);
});

test("beyond the limit the most silent session is forgotten, and it says since when it knows all", () => {
  const clock = new ManualClock();
  const committed = new CommittedOrigins(clock, 3);
  clock.advance(10_000);
  committed.add({ session: "a", number: 0 });
  clock.advance(5_000);
  committed.add({ session: "b", number: 0 });
  committed.add({ session: "c", number: 0 });
  clock.advance(2_000);
  committed.add({ session: "a", number: 1 });
  expect(committed.completeMs).toBe(2_000);
  expect(committed.has({ session: "b", number: 0 })).toBe(false);
  for (const number of [0, 1]) expect(committed.has({ session: "a", number })).toBe(true);
  committed.add({ session: "d", number: 0 });
  expect(committed.completeMs).toBe(2_000);
});

test("of a partition that it lost and got back, it knows nothing that came before; a new one changes nothing", () => {
  const clock = new ManualClock();
  const viewOf = (copies: number[][]): View =>
    new View({
      self: 1,
      instance: "a test",
      configuration: configurationOf(
        {
          nodes: [0, 1, 2].map((id) => ({ id, host: "a", port: 1 })),
          backups: 1,
          partitions: copies.length,
          placement: copies.map(([primary, ...backups]) => [primary, backups, [], 1, 1]),
        },
        "a test",
      ),
      protocol: "rpc",
    });
  const committed = new CommittedOrigins(clock);
  clock.advance(1_000);
  const first = viewOf([
    [0, 1],
    [1, 2],
    [0, 2],
  ]);
  const more = viewOf([
    [1, 0],
    [1, 2],
    [0, 1],
  ]);
  const without = viewOf([
    [1, 0],
    [0, 2],
    [0, 1],
  ]);
  committed.adopted(first, more);
  expect(committed.completeMs).toBe(1_000);
  committed.adopted(more, without);
  expect(committed.completeMs).toBe(1_000);
  expect([...committed.regained()]).toEqual([]);
  clock.advance(500);
  committed.adopted(without, more);
  clock.advance(20);
  // Of the others it has forgotten nothing.
  expect(committed.completeMs).toBe(1_520);
  expect([...committed.regained()]).toEqual([[1, 20]]);
});
