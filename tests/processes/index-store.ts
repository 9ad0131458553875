/** People in a hashed and an ordered table, with indexes of every kind, some of them added later. */

import { type Database, i32, open, str, type Table, table, u32 } from "../../src/index.ts";

export interface Person {
  id: number;
  email: string;
  city: string;
  score: number;
  badge: string;
}
export type People = Table<Person, number, Partial<Omit<Person, "id">>>;

const person = { id: u32(), email: str(24), city: str(12), score: i32(), badge: str() };
const first = {
  byEmail: { on: ["email"], unique: true, kind: "hash" },
  byCity: { on: ["city"] },
  byCityHash: { on: ["city"], kind: "hash" },
  byScore: { on: ["score", "city"] },
} as const;
const later = {
  ...first,
  byBadge: { on: ["badge"], unique: true },
  byBadgeHash: { on: ["badge"], unique: true, kind: "hash" },
  byCityAndEmail: { on: ["city", "email"] },
  byScoreHash: { on: ["score"], kind: "hash" },
} as const;

/** The tables as they are declared at first, and by those who add indexes. */
export const AT_FIRST: readonly People[] = [
  table("hashed", person, { key: "id", indexes: first }),
  table("ordered", person, { key: "id", ordered: true, indexes: first }),
];
export const LATER: readonly People[] = [
  table("hashed", person, { key: "id", indexes: later }),
  table("ordered", person, { key: "id", ordered: true, indexes: later }),
];
export const Total = table("total", { id: u32(), refusals: u32() }, { key: "id" });

export const IDS = 600;
/** Fewer than ids: many try to have the same. */
export const EMAILS = Array.from({ length: 350 }, (_, n) => `mail-${n}`);
export const CITIES = Array.from({ length: 8 }, (_, n) => `city-${n}`);

/** Values that rows may have, or may have had. */
export const VALUES = {
  byEmail: EMAILS,
  byCity: CITIES,
  byCityHash: CITIES,
} as const;

export function openPeople(path: string, people: readonly People[]): Promise<Database> {
  return open({ path, tables: [...people, Total], memoryBytes: 64 * 2 ** 20, timeoutMs: 120_000 });
}

export function fillPeople(db: Database): void {
  db.transactSync((tx) => tx.insert(Total, { id: 0, refusals: 0 }));
  for (const people of AT_FIRST) {
    db.transactSync((tx) => {
      for (let id = 0; id < 300; id++) {
        tx.insert(people, {
          id,
          email: EMAILS[id],
          city: CITIES[id % CITIES.length],
          score: id % 10,
          badge: `badge of ${id}`,
        });
      }
    });
  }
}
