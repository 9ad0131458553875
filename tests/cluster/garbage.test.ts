/**
 * Bodies that make no sense, of every kind of message, at the service of a node: real messages with
 * words changed, and noise. Each is answered or refused with a code; nothing else is ever thrown;
 * what is at rest afterwards is sound and unlocked, and serves others as before.
 *
 *   SITU_SEED=7 SITU_SOAK=20 npx vitest run tests/cluster/garbage.test.ts
 */

import { afterEach, describe, expect, test } from "vitest";
import { disagreements, leftOvers, unsound } from "../../simulation/cluster/rest.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { bytes, f64, i64, json, str, table, u32 } from "../../src/index.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { Random } from "../../src/runtime/random.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import type { Table } from "../../src/tables/table.ts";
import {
  ALL_KINDS,
  FuzzedCluster,
  mutated,
  nameAt,
  noise,
  type Recorded,
  renamed,
} from "../helpers/cluster-fuzz.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";

const SEEDS = [...new Set([1, 2, 3].map(fixedSeed))];
const ROUNDS = 6_000 * SOAK;

const Account = table("accounts", { id: u32(), balance: i64() }, { key: "id" });
const Note = table(
  "notes",
  { name: str(), text: str(), size: u32(), ratio: f64(), data: bytes(), more: json() },
  { key: "name", ordered: true, indexes: { bySize: { on: ["size"], kind: "ordered" } } },
);
const Pair = table("pairs", { a: str(8), b: u32(), n: u32() }, { key: ["a", "b"] });
const TABLES = [Account, Note, Pair] as unknown as readonly Table[];

let cluster: FuzzedCluster | undefined;

afterEach(async () => {
  await cluster?.close();
  cluster = undefined;
});

/** All kinds of messages that clients and coordinators send. */
async function work(db: RemoteDatabase, random: Random): Promise<void> {
  for (let i = 0; i < 30; i++) {
    await db.transact(async (tx) => {
      const id = random.below(40);
      const found = await tx.get(Account, id);
      await tx.put(Account, { id, balance: (found?.balance ?? 0n) + 1n });
      await tx.put(Account, { id: id + 1, balance: 5n });
      const name = `note ${random.below(20)}`;
      await tx.put(Note, {
        name,
        text: "x".repeat(random.below(300)),
        size: i,
        ratio: 0.5,
        data: Buffer.from("ab"),
        more: { i },
      });
      await tx.put(Pair, { a: `p${random.below(5)}`, b: random.below(4), n: i });
      if (i % 5 === 0) await tx.delete(Account, random.below(40));
      if (i % 7 === 0) await tx.delete(Note, `note ${random.below(20)}`);
    });
    if (i % 3 === 0) await db.get(Account, random.below(40));
    if (i % 4 === 0) await db.transact((tx) => tx.getMany(Note, ["note 1", "note 2", "note 9"]));
    if (i % 10 === 0) {
      for await (const _ of db.scan(Note, { limit: 5 })) void _;
      for await (const _ of db.scan(Note, { index: "bySize", gte: 3, lt: 9 })) void _;
      await db.count(Pair);
      const snapshot = await db.snapshot();
      await snapshot.get(Account, random.below(40));
      for await (const _ of snapshot.scan(Note, { limit: 5 })) void _;
      await snapshot.close();
    }
  }
}

async function prepared(seed: number): Promise<{ fuzzed: FuzzedCluster; db: RemoteDatabase }> {
  const fuzzed = new FuzzedCluster(seed);
  cluster = fuzzed;
  const db = await fuzzed.client(TABLES);
  await fuzzed.run(() => work(db, new Random(seed)));
  fuzzed.fabric.run();
  const heard = new Set(fuzzed.recorded.map(({ kind }) => kind));
  const unheard: readonly number[] = [
    ...[kinds.OPEN_CALLS, kinds.CALL, kinds.ABORT, kinds.READ_LOCK],
    // Sent after a restart, or a death.
    ...[kinds.FIND, kinds.DECIDE, kinds.NEED_RECOVERY, kinds.FETCH_TX_STATE],
    ...[kinds.REPLICATE_TX_STATE, kinds.RECOVERY_VOTE, kinds.REQUEST_VOTE],
    ...[kinds.COMMIT_RECOVERY, kinds.ABORT_RECOVERY, kinds.TRUNCATE_RECOVERY],
    ...[kinds.OUTCOME, kinds.CALL_OUTCOME, kinds.SETTLE, kinds.FETCH_TABLES],
    ...[kinds.FETCH_ENDS, kinds.FETCH_ROWS],
  ];
  for (const kind of ALL_KINDS) if (!unheard.includes(kind)) expect(heard).toContain(kind);
  return { fuzzed, db };
}

/** A READ as a procedure sends it, which locks. */
function lockingRead({ words }: Recorded): Recorded {
  const out = new Writer();
  // The name, which is given later, and the round.
  for (let i = 0; i < 6; i++) out.word(0);
  out.word(1);
  out.words(words, 0, words.length);
  return { kind: kinds.READ_LOCK, words: out.views.i32.slice(0, out.at) };
}

/** Another session each time: SUBMIT under a number that was used gives the first outcome. */
function newSession(message: Recorded, number: number): Recorded {
  if (message.kind !== kinds.SUBMIT) return message;
  const words = message.words.slice();
  // Instance and session are texts; then, at an even word, the number.
  const instanceWords = 1 + ((words[0] + 3) >> 2);
  const sessionWords = 1 + ((words[instanceWords] + 3) >> 2);
  const at = (instanceWords + sessionWords + 1) & ~1;
  words.set(new Int32Array(new Float64Array([1_000 + number]).buffer), at);
  return { kind: message.kind, words };
}

function fuzz(fuzzed: FuzzedCluster, random: Random, isFromNode: boolean): Recorded[] {
  const sent: Recorded[] = [];
  const { recorded } = fuzzed;
  const byKind = ALL_KINDS.map((kind) => recorded.filter((each) => each.kind === kind));
  const samples = byKind.filter((list) => list.length > 0);
  const before = [...samples.map((list) => [...list])];
  for (let round = 0; round < ROUNDS; round++) {
    const list = before[random.below(before.length)];
    let message = newSession(list[random.below(list.length)], round);
    if (message.kind === kinds.READ && random.below(2) === 0) message = lockingRead(message);
    // Of a transaction of its own, or of one of those before it.
    message = renamed(message, 10 + round - random.below(6));
    if (random.below(6) > 0) message = { ...message, words: mutated(message.words, random) };
    if (random.below(10) === 0) {
      const kind = ALL_KINDS[random.below(ALL_KINDS.length)];
      message = { kind, words: random.below(2) === 0 ? noise(random) : message.words };
    }
    sent.push(message);
    fuzzed.serve(random.below(3), message.kind, message.words, isFromNode);
    if (round % 16 === 0) fuzzed.pass();
  }
  fuzzed.pass();
  return sent;
}

/** What a coordinator would do in the end: nothing that was sent in a name stays open. */
function endAll(fuzzed: FuzzedCluster, sent: readonly Recorded[]): void {
  const names = new Map<string, Int32Array>();
  for (const message of sent) {
    const at = nameAt(message);
    if (at < 0) continue;
    const words = new Int32Array(6);
    words[0] = message.words[at];
    words.set(message.words.slice(2, 4), 2);
    names.set(words.join(), words);
  }
  for (const words of names.values()) {
    for (let node = 0; node < 3; node++) {
      // The name, and no epoch.
      fuzzed.serve(node, kinds.ABORT, new Int32Array([...words, 0, 0]), true);
      // One that is committed, none that is aborted.
      const truncate = new Int32Array(9);
      truncate[0] = words[0];
      truncate[4] = 1;
      truncate.set(words.slice(2, 4), 6);
      fuzzed.serve(node, kinds.TRUNCATE, truncate, true);
    }
  }
  fuzzed.fabric.run();
}

async function othersGoOn(fuzzed: FuzzedCluster): Promise<void> {
  const other = await fuzzed.client(TABLES);
  const sum = await fuzzed.run(async () => {
    for (let i = 0; i < 5; i++) {
      await other.transact(async (tx) => {
        for (let id = 5_000; id < 5_010; id++) {
          const { balance } = (await tx.get(Account, id)) ?? { balance: 0n };
          await tx.put(Account, { id, balance: balance + 1n });
        }
      });
    }
    const rows = await other.transact((tx) =>
      tx.getMany(
        Account,
        Array.from({ length: 10 }, (_, i) => 5_000 + i),
      ),
    );
    return rows.reduce((total, row) => total + (row?.balance ?? 0n), 0n);
  });
  expect(sum).toBe(50n);
}

describe.each(SEEDS)("garbage (seed %i)", (seed) => {
  test("from clients", async () => {
    const { fuzzed } = await prepared(seed);
    fuzz(fuzzed, new Random(seed), false);
    expect(leftOvers(fuzzed.nodes)).toEqual([]);
    await othersGoOn(fuzzed);
    fuzzed.fabric.run();
    expect([...fuzzed.codes.keys()]).toEqual(
      expect.arrayContaining(["SITU_PROTOCOL", "SITU_PERMISSION"]),
    );
    expect(fuzzed.replies).toBeGreaterThan(ROUNDS / 20);
    expect(leftOvers(fuzzed.nodes)).toEqual([]);
    expect(disagreements(fuzzed.nodes, TABLES, fuzzed.placement)).toEqual([]);
    expect(await unsound(fuzzed.nodes)).toEqual([]);
  });

  test("from a node", async () => {
    const { fuzzed } = await prepared(seed);
    const sent = fuzz(fuzzed, new Random(seed), true);
    endAll(fuzzed, sent);
    expect(leftOvers(fuzzed.nodes)).toEqual([]);
    await othersGoOn(fuzzed);
    fuzzed.fabric.run();
    expect([...fuzzed.codes.keys()]).toContain("SITU_PROTOCOL");
    expect(fuzzed.replies).toBeGreaterThan(ROUNDS / 20);
    expect(await unsound(fuzzed.nodes)).toEqual([]);
  });

  test("schemas", async () => {
    const { fuzzed } = await prepared(seed);
    const random = new Random(seed);
    const schemas = TABLES.map((each) => JSON.parse(JSON.stringify(schemaOf(each))) as Json);
    for (let round = 0; round < ROUNDS / 6; round++) {
      const schema = structuredClone(schemas[random.below(schemas.length)]);
      for (let changes = 1 + random.below(2); changes > 0; changes--) deform(schema, random);
      const out = new Writer();
      out.text(JSON.stringify(schema));
      const words = out.views.i32.slice(0, out.at);
      fuzzed.serve(random.below(3), kinds.OPEN_TABLE, words, false);
    }
    expect([...fuzzed.codes.keys()]).toEqual(
      expect.arrayContaining(["SITU_PROTOCOL", "SITU_SCHEMA"]),
    );
    await othersGoOn(fuzzed);
    expect(await unsound(fuzzed.nodes)).toEqual([]);
  });
});

type Json = Record<string, unknown>;
const VALUES: readonly unknown[] = [
  null,
  0,
  -1,
  1.5,
  "",
  "situ x",
  "id",
  "u32",
  "str(255)",
  "str(999999999)",
  "json",
  true,
  [],
  {},
  [null],
  [["id"]],
  { id: "u32" },
  "constructor",
  "x".repeat(300),
];

/** Changes something somewhere: a value, a name, or that it is there at all. */
function deform(at: Json, random: Random): void {
  const names = Object.keys(at);
  const name = names[random.below(names.length)];
  if (name === undefined) return;
  const inner = at[name];
  if (typeof inner === "object" && inner !== null && random.below(3) > 0) {
    deform(inner as Json, random);
    return;
  }
  const value = VALUES[random.below(VALUES.length)];
  switch (random.below(4)) {
    case 0:
      if (Array.isArray(at)) at.splice(Number(name), 1);
      else delete at[name];
      break;
    case 1:
      if (Array.isArray(at)) at.push(value);
      else at[`${name}2`] = inner;
      break;
    default:
      at[name] = structuredClone(value);
  }
}
