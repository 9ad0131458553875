/** The table of the crash tests of migrations: as it is declared before, and after. */

import {
  addField,
  type Database,
  dropField,
  dropIndex,
  type OpenOptions,
  open,
  str,
  table,
  u16,
  u32,
} from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";

const fields = { id: u32(), owner: str(20), amount: u32() };
const byOwner = { on: ["owner"] } as const;

export const Item = table("item", fields, { key: "id", indexes: { byOwner } });
/** Ordered, with a field and an index more. */
export const Wider = table(
  "item",
  { ...fields, owner: str(60), extra: u16() },
  { key: "id", ordered: true, indexes: { byOwner, byExtra: { on: ["extra", "id"] } } },
);

/** The same with an index of which the others know nothing: a new one, and then the same on other fields. */
export const ByAmount = table("item", fields, {
  key: "id",
  indexes: { byOwner, byAmount: { on: ["amount"] } },
});
export const ByAmountAndId = table("item", fields, {
  key: "id",
  indexes: { byOwner, byAmount: { on: ["amount", "id"], unique: true } },
});

export const IDS = 60;
export const DEFAULT_EXTRA = 7;

/** There and back again: every second migration undoes the one before. */
export type Direction = "wider" | "back" | "indexed" | "indexed anew";

export function openItems(path: string, options: Partial<OpenOptions> = {}): Promise<Database> {
  const memoryBytes = 32 * 2 ** 20;
  return open({ path, tables: [Item], memoryBytes, timeoutMs: 120_000, ...options });
}

/** Goes on with what was begun, and then in this direction. */
export async function migrateItems(db: Database, direction: Direction): Promise<void> {
  if (direction === "wider") {
    const extra = addField(Wider, "extra", { default: DEFAULT_EXTRA });
    await db.migrate([extra], { tables: [Wider] });
    return;
  }
  if (direction === "back") {
    const steps = [dropIndex("item", "byExtra"), dropField("item", "extra")];
    await db.migrate(steps, { tables: [Item] });
    return;
  }
  await db.migrate([], { tables: [direction === "indexed" ? ByAmount : ByAmountAndId] });
}

/** Whether the store is what a migration in this direction makes of it. */
export function isMigrated(db: Database, direction: Direction): boolean {
  const [{ fields: present, indexes, migration }] = db.stats().tables;
  if (migration !== undefined) return false;
  if (direction === "wider" || direction === "back") {
    return "extra" in present === (direction === "wider");
  }
  const names = indexes.map(({ name }) => name).sort();
  const byAmount = indexes.find(({ name }) => name === "byAmount");
  if (names.join() !== "byAmount,byOwner" || byAmount?.state !== "ready") return false;
  return byAmount.unique === (direction === "indexed anew");
}

export interface ItemRow {
  id: number;
  owner: string;
  amount: number;
}

/** What the rows should be, and changes of them by one who has the old declaration. */
export class ItemModel {
  readonly rows = new Map<number, ItemRow>();
  readonly #random: Random;
  #turn = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** A transaction with a few changes, in either isolation. */
  change(db: Database): void {
    const random = this.#random;
    const isolation = random.below(2) === 0 ? "snapshot" : "strict-serializable";
    const changes = Array.from({ length: 1 + random.below(3) }, () => ({
      id: random.below(IDS),
      what: random.below(4),
      row: { owner: `owner ${random.below(9)}`, amount: ++this.#turn },
    }));
    const after = new Map(this.rows);
    db.transactSync(
      (tx) => {
        after.clear();
        for (const [id, row] of this.rows) after.set(id, row);
        for (const { id, what, row } of changes) {
          const before = after.get(id);
          const found = tx.get(Item, id);
          if (JSON.stringify(found) !== JSON.stringify(before)) {
            throw new Error(`row ${id} is ${JSON.stringify(found)}, not ${JSON.stringify(before)}`);
          }
          if (before === undefined) tx.insert(Item, { id, ...row });
          else if (what === 0) tx.delete(Item, id);
          else if (what === 1) tx.update(Item, id, { amount: row.amount });
          else if (what === 2) tx.update(Item, id, { owner: row.owner });
          else tx.put(Item, { id, ...row });
          if (before === undefined || what === 3) after.set(id, { id, ...row });
          else if (what === 0) after.delete(id);
          else if (what === 1) after.set(id, { ...before, amount: row.amount });
          else after.set(id, { ...before, owner: row.owner });
        }
      },
      { isolation },
    );
    this.rows.clear();
    for (const [id, row] of after) this.rows.set(id, row);
  }

  /** What is wrong with the rows and indexes that somebody with the old declaration sees. */
  problems(db: Database): string[] {
    using snapshot = db.snapshot();
    const found = new Map(
      snapshot
        .scan(Item)
        .toArray()
        .map((row) => [row.id, row]),
    );
    const problems: string[] = [];
    if (found.size !== this.rows.size || snapshot.count(Item) !== this.rows.size) {
      problems.push(`${found.size} rows, not ${this.rows.size}`);
    }
    const owners = new Map<string, number>();
    for (const [id, row] of this.rows) {
      owners.set(row.owner, (owners.get(row.owner) ?? 0) + 1);
      const there = found.get(id);
      if (there?.owner !== row.owner || there.amount !== row.amount) {
        problems.push(`row ${id}: ${JSON.stringify(there)}, not ${JSON.stringify(row)}`);
      }
    }
    for (const [eq, count] of owners) {
      const counted = snapshot.count(Item, { index: "byOwner", eq });
      if (counted !== count) problems.push(`${counted} rows of ${eq}, not ${count}`);
    }
    return problems;
  }
}
