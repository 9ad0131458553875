/**
 * How much a change of an indexed field writes to the log: what has changed in a node, not the node. And that what was
 * logged so is recovered, with indexes that agree with the rows.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import { BATCH_HEADER_BYTES } from "../../src/log/segments/format.ts";
import { JOURNAL_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { loseMemory } from "../helpers/logged-stores.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Numbered = table(
  "numbered",
  { id: u32(), score: u32() },
  { key: "id", indexes: { byScore: { on: ["score"] } } },
);
const Named = table(
  "named",
  { id: str(), score: u32() },
  { key: "id", indexes: { byScore: { on: ["score"] } } },
);
const Order = table(
  "order",
  { id: u32(), customer: u32(), status: u32(), placed: u32(), total: u32(), reference: str(32) },
  {
    key: "id",
    indexes: {
      byCustomer: { on: ["customer"] },
      byStatus: { on: ["status", "placed"] },
      byTotal: { on: ["total"] },
    },
  },
);
const Wide = table(
  "wide",
  { id: u32(), score: u32(), text: str(4_000) },
  { key: "id", indexes: { byScore: { on: ["score"] } } },
);
const tables = [Numbered, Named, Order, Wide] as const;
const ROWS = 1_500;
const CHANGES = 200;

/** Bytes of log for each of some changes, without the headers of batches: their number is a matter of timing. */
async function bytesOf(db: Database, change: () => void): Promise<number> {
  await db.durable();
  const before = payloadBytes(db);
  for (let i = 0; i < CHANGES; i++) change();
  await db.durable();
  return (payloadBytes(db) - before) / CHANGES;
}

function payloadBytes(db: Database): number {
  const { logBytes, batches } = db.stats().durability;
  return logBytes - batches * BATCH_HEADER_BYTES;
}

describe("bytes of log", () => {
  it("are few for changes of indexed fields, and recovery makes the same of them", async () => {
    const path = stores.folder();
    const options = {
      path,
      tables: [...tables],
      memoryBytes: 32 * MIB,
      durability: "lazy",
      timeoutMs: 60_000,
    } as const;
    const random = new Random(5);
    const score = (): number => random.below(1_000_000);
    const order = (id: number) => {
      const customer = random.below(1_000);
      const [status, placed, total] = [id % 5, 1_700_000_000 + id, score()];
      return { id, customer, status, placed, total, reference: `order-${id}` };
    };
    const db = await open(options);
    for (let from = 0; from < ROWS; from += 250) {
      db.transactSync((tx) => {
        for (let id = from; id < from + 250; id++) {
          tx.insert(Numbered, { id, score: score() });
          tx.insert(Named, { id: `customer-${id}`, score: score() });
          tx.insert(Order, order(id));
        }
      });
    }
    const numbered = await bytesOf(db, () => {
      const id = random.below(ROWS);
      db.transactSync((tx) => tx.update(Numbered, id, { score: score() }));
    });
    // With a checkpoint between changes and changes.
    await db.checkpoint();
    const named = await bytesOf(db, () => {
      const id = `customer-${random.below(ROWS)}`;
      db.transactSync((tx) => tx.update(Named, id, { score: score() }));
    });
    let next = ROWS;
    const ordered = await bytesOf(db, () => {
      db.transactSync((tx) => tx.insert(Order, order(next++)));
    });
    expect(numbered).toBeLessThan(200);
    expect(named).toBeLessThan(200);
    expect(ordered).toBeLessThan(2_000);
    const state = (of: Database) => ({
      numbered: of.scan(Numbered, { index: "byScore" }).toArray(),
      named: of.scan(Named, { index: "byScore" }).toArray(),
      orders: of.scan(Order, { index: "byTotal" }).toArray(),
    });
    const before = state(db);
    await db.close();
    loseMemory(path);
    const again = await stores.open(options);
    expect(again.recovered).toBeDefined();
    expect(state(again)).toEqual(before);
    expect((await again.verify()).problems).toEqual([]);
  });

  it("let one transaction be larger than a journal, and recovery has all of it", async () => {
    const path = stores.folder();
    const options = {
      path,
      tables: [...tables],
      memoryBytes: 64 * MIB,
      durability: "lazy",
      timeoutMs: 60_000,
    } as const;
    const random = new Random(6);
    const rows = 1_500;
    const text = "what is long ".repeat(250);
    const db = await open(options);
    for (let round = 0; round < 2; round++) {
      db.transactSync((tx) => {
        for (let id = round * rows; id < (round + 1) * rows; id++) {
          tx.insert(Wide, { id, score: random.below(1_000_000), text });
        }
      });
    }
    await db.durable();
    expect(db.stats().durability.logBytes).toBeGreaterThan(2 * JOURNAL_BYTES);
    await db.close();
    loseMemory(path);
    const again = await stores.open(options);
    expect(again.count(Wide)).toBe(2 * rows);
    expect((await again.verify()).problems).toEqual([]);
  });
});
