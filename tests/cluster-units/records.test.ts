/** The record of a transaction: what it says of it, and what of garbage is refused. */

import { expect, test } from "vitest";
import { Writer } from "../../src/fabric/wire.ts";
import { Name } from "../../src/protocols/names.ts";
import type { Origin } from "../../src/protocols/origin.ts";
import {
  AT_BACKUP,
  AT_PRIMARY,
  Head,
  RecordReader,
  recordOf,
  skipHead,
} from "../../src/protocols/records.ts";
import { encodeWrites, skipWrites, WriteList, writesIn } from "../../src/protocols/writes.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded } from "./fake-endpoint.ts";

function headOf(origin: Origin | undefined, partitions: readonly number[]): Head {
  const name = Object.assign(new Name(), { coordinator: 5, sequence: 2 ** 50 + 1, low: 2 ** 50 });
  return new Head(name, 7, origin, partitions);
}

function writes(): WriteList {
  const list = new WriteList(new Writer());
  list.put(5, 3, Int32Array.of(1, 2), 0, 2);
  list.remove(5, 4, "key");
  return list;
}

const ORIGINS: readonly (Origin | undefined)[] = [
  undefined,
  { session: "a", number: 0 },
  { session: "session-1", number: 2 ** 40 },
  {
    session: "first",
    number: 3,
    others: [
      { session: "a", number: 0 },
      { session: "größer", number: 2 ** 40 },
    ],
  },
];

test.each([AT_PRIMARY, AT_BACKUP] as const)("is read as it was sent, role %i", (role) => {
  const reader = new RecordReader();
  for (const origin of ORIGINS) {
    for (const partitions of [[], [3], [3, 4, 900]]) {
      const head = headOf(origin, partitions);
      const list = writes();
      const body = encoded((out) => {
        head.encode(out);
        encodeWrites(out, list.words(), list.count);
        out.word(77);
      });
      const start = body.at;
      expect(skipHead(body, new Name())).toEqual(head.name);
      skipWrites(body);
      const record = recordOf(role, body, start, body.at);
      expect(body.word()).toBe(77);
      expect(record[1]).toBe(role);
      const again = reader.open(record);
      expect(Head.decode(again)).toEqual(head);
      const read = [...writesIn(again)].map(({ table, partition }) => [table, partition]);
      expect(read).toEqual([
        [5, 3],
        [5, 4],
      ]);
    }
  }
});

test("of another version is refused, and says what to do", () => {
  const error = failureSync("SITU_LAYOUT", () => new RecordReader().open(Int32Array.of(3, 0)));
  expect(error.message).toMatch(/start that version once more/);
});

test("cut anywhere, its head is refused", () => {
  for (const origin of ORIGINS.slice(2)) expectCutRefused(origin);
});

function expectCutRefused(origin: Origin | undefined): void {
  const whole = encoded((out) => headOf(origin, [1, 2]).encode(out));
  for (let end = whole.at; end < whole.end; end++) {
    for (const read of [(): unknown => Head.decode(whole), () => skipHead(whole, new Name())]) {
      const { at, end: last } = whole;
      whole.end = end;
      failureSync("SITU_PROTOCOL", read);
      whole.at = at;
      whole.end = last;
    }
  }
}

test("records of all lengths stay what they are while others are made", () => {
  const words = Int32Array.from({ length: 4_096 }, (_, i) => i);
  const body = encoded((out) => out.words(words, 0, words.length));
  const lengths = Array.from({ length: 300 }, (_, i) => (i * 37) % 600);
  const records = lengths.map((length, i) => recordOf(AT_PRIMARY, body, i, i + length));
  for (const [i, record] of records.entries()) {
    const padding = lengths[i] % 2 === 1 ? [0] : [];
    expect([...record.subarray(2)]).toEqual([...words.subarray(i, i + lengths[i]), ...padding]);
  }
});
