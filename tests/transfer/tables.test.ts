/** Rows as text and back: what is dumped can be loaded, and mistakes in a text are told with their line. */

import { describe, expect, it } from "vitest";
import {
  autoIncrement,
  bool,
  bytes,
  enumOf,
  f64,
  i32,
  i53,
  i64,
  json,
  nullable,
  pointer,
  str,
  timestamp,
  u8,
  u32,
  u64,
  uuid,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { type DumpFormat, dumpTable } from "../../src/transfer/dump-table.ts";
import { loadTable } from "../../src/transfer/load-table.ts";
import { fc } from "../helpers/property.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Everything = table(
  "everything",
  {
    id: u32(),
    small: u8(),
    signed: i32(),
    double: f64(),
    yes: bool(),
    big: u64(),
    negative: i64(),
    short: str(40),
    long: str(),
    raw: bytes(),
    any: json(),
    wide: i53(),
    when: timestamp(),
    who: uuid(),
    state: enumOf("draft", "sent, or so"),
    note: nullable(str(20)),
    count: nullable(u64()),
    until: nullable(timestamp()),
  },
  { key: "id", ordered: true },
);

const rows = fc.uniqueArray(
  fc.record({
    id: fc.nat(2 ** 32 - 1),
    small: fc.nat(255),
    signed: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    double: fc.double(),
    yes: fc.boolean(),
    big: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    negative: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    short: fc.string({ unit: "grapheme", maxLength: 8 }).filter((s) => Buffer.byteLength(s) <= 40),
    long: fc.string({ unit: fc.constantFrom("a", ",", '"', "\n", "\r", "é", " ", "\\", "\ufeff") }),
    raw: fc.uint8Array({ maxLength: 40 }),
    any: fc.jsonValue(),
    wide: fc.maxSafeInteger(),
    when: fc.date({ noInvalidDate: true }),
    who: fc.uuid(),
    state: fc.constantFrom("draft", "sent, or so"),
    note: fc.option(fc.string({ unit: "binary-ascii", maxLength: 20 })),
    count: fc.option(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    until: fc.option(fc.date({ noInvalidDate: true })),
  }),
  { selector: ({ id }) => id, maxLength: 12 },
);

async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const piece of pieces) text += piece;
  return text;
}

/** The same text in pieces that end anywhere, also within a character. */
function* pieces(text: string, length: number): Generator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

describe.each(["jsonl", "csv"] as const)("%s", (format: DumpFormat) => {
  it("gives back every row, whatever is in it and wherever the text is cut", async () => {
    const [from, to] = [
      await stores.open({ tables: [Everything] }),
      await stores.open({ tables: [Everything] }),
    ];
    await fc.assert(
      fc.asyncProperty(rows, fc.integer({ min: 1, max: 50 }), async (given, cut) => {
        for (const db of [from, to]) {
          db.transactSync((tx) => {
            for (const { id } of tx.scan(Everything).toArray()) tx.delete(Everything, id);
          });
        }
        from.transactSync((tx) => {
          for (const row of given) tx.insert(Everything, row);
        });
        const text = await textOf(dumpTable(from, Everything, { format }));
        const loaded = await loadTable(to, Everything, pieces(text, cut), { format });
        expect(loaded).toEqual({ rows: given.length, skipped: 0 });
        expect(to.scan(Everything).toArray()).toEqual(from.scan(Everything).toArray());
      }),
      { numRuns: 40 },
    );
  });

  it("fails, replaces or skips where a key is taken", async () => {
    const Word = table("word", { text: str(20), n: u32() }, { key: "text" });
    const db = await stores.open({ tables: [Word] });
    const text = { jsonl: '{"text":"a","n":1}\n\n{"text":"b","n":2}', csv: "n,text\r\n1,a\r\n2,b" };
    db.transactSync((tx) => tx.insert(Word, { text: "b", n: 9 }));
    const load = (onConflict: "fail" | "skip" | "replace") =>
      loadTable(db, Word, [text[format]], { format, onConflict });
    const taken = await failure("SITU_EXISTS", () => load("fail"));
    expect(taken.message).toMatch(/^line 3: /);
    expect(db.get(Word, "a")).toBeUndefined();
    expect(await load("skip")).toEqual({ rows: 1, skipped: 1 });
    expect(db.get(Word, "b")).toEqual({ text: "b", n: 9 });
    expect(await load("replace")).toEqual({ rows: 2, skipped: 0 });
    expect(db.get(Word, "b")).toEqual({ text: "b", n: 2 });
  });
});

describe("mistakes in a text", () => {
  const Order = table("order", { id: u32(), total: i64(), data: bytes() }, { key: "id" });
  it.each([
    ["jsonl", '{"id":1,"total":"1","data":""}\n[1]', /^line 2: a row is a JSON object/],
    ["jsonl", '{"id":1,"total":"1"', /^line 1: .*JSON/],
    ["jsonl", '{"id":1,"total":"1"}', /^line 1: .*data/],
    ["jsonl", '{"id":1,"total":1.5,"data":""}', /^line 1: .*total/],
    ["jsonl", '{"id":1,"total":1,"data":"?"}', /^line 1: bytes are written in base64/],
    ["jsonl", '{"id":1,"total":1,"data":"","more":2}', /^line 1: .*more/],
    ["csv", "id,total,date\n1,2,", /^line 1: .*"date".*id, total, data/],
    ["csv", "id,id,data\n", /^line 1: .*twice/],
    ["csv", 'id,total,data\n1,2,""\n2,3', /^line 3: it has 2 values/],
    ["csv", 'id,total,data\n1,"2,""', /^line 2: a quote is not closed/],
    ["csv", 'id,total,data\n1,"2"x,""', /^line 2: after a closing quote/],
    ["csv", 'id,total,data\nx,2,""', /^line 2: .*id/],
    ["csv", 'id,total,data\n0x10,2,""', /^line 2: .*id.*"0x10"/],
    ["csv", 'id,total,data\n 8,2,""', /^line 2: .*id.*" 8"/],
    ["csv", 'id,total,data\n1,2,a"b\n2,3,c"d', /^line 2: a value with a quote/],
    ["csv", "", /^line 1: there must be a first line with the names/],
  ] as const)("%s %s", async (format, text, message) => {
    const db = await stores.open({ tables: [Order] });
    const error = await failure("SITU_TYPE", () => loadTable(db, Order, [text], { format }));
    expect(error.message).toMatch(message);
    expect(db.count(Order)).toBe(0);
  });

  it("a text that is not UTF-8, a format that there is not, a table with pointers", async () => {
    const Link = table("link", { id: u32(), to: pointer() }, { key: "id" });
    const db = await stores.open({ tables: [Order, Link] });
    const broken = loadTable(db, Order, [
      Buffer.from('{"id":1,"total":1,"data":"\xff"}', "latin1"),
    ]);
    expect((await failure("SITU_TYPE", () => broken)).message).toMatch(/not UTF-8/);
    await failure("SITU_CONFIG", () => loadTable(db, Order, [""], { format: "xml" as DumpFormat }));
    await failure("SITU_CONFIG", () => loadTable(db, Order, [""], { onConflict: "no" as "skip" }));
    await failure("SITU_UNSUPPORTED", () => textOf(dumpTable(db, Link)));
  });

  it("stops when it is told to, and keeps what was committed", async () => {
    const db = await stores.open({ tables: [Order] });
    const abort = new AbortController();
    function* text(): Generator<string> {
      for (let id = 0; ; id++) {
        if (id === 2_000) abort.abort();
        yield `{"id":${id},"total":"0","data":""}\n`;
      }
    }
    await expect(loadTable(db, Order, text(), { signal: abort.signal })).rejects.toThrow(/abort/i);
    expect(db.count(Order)).toBeGreaterThan(1_000);
  });
});

it("a dump is one state, while others write", async () => {
  const Account = table("account", { id: u32(), balance: i32() }, { key: "id" });
  const db = await stores.open({ tables: [Account] });
  const accounts = 5_000;
  db.transactSync((tx) => {
    for (let id = 0; id < accounts; id++) tx.insert(Account, { id, balance: 1 });
  });
  let sum = 0;
  let from = 0;
  for await (const piece of dumpTable(db, Account)) {
    for (const line of piece.trim().split("\n"))
      sum += (JSON.parse(line) as { balance: number }).balance;
    // From rows that may be dumped already to some that are not, and back.
    db.transactSync((tx) => {
      for (const [id, by] of [
        [from, -1],
        [accounts - 1 - from, 1],
      ] as const) {
        tx.update(Account, id, { balance: tx.get(Account, id)!.balance + by });
      }
    });
    from++;
  }
  expect(from).toBeGreaterThan(1);
  expect(sum).toBe(accounts);
});

it("keys that are loaded are not given out again", async () => {
  const Ticket = table("ticket", { id: autoIncrement(), text: str(20) }, { key: "id" });
  const db = await stores.open({ tables: [Ticket] });
  await loadTable(db, Ticket, ['{"id":5000,"text":"a"}\n{"text":"b"}\n']);
  db.transactSync((tx) => tx.insert(Ticket, { text: "c" }));
  const ids = db
    .scan(Ticket)
    .toArray()
    .map(({ id }) => id);
  expect(new Set(ids).size).toBe(3);
  for (let i = 0; i < 6_000; i++) db.transactSync((tx) => tx.insert(Ticket, { text: "d" }));
  expect(db.count(Ticket)).toBe(6_003);
});
