/**
 * One process of the index storm: changes people in all ways that indexes must follow, and now and
 * then compares indexes and rows in a snapshot. Some open the tables with more indexes than there
 * are, and so build them, while the others go on.
 */

import { type Database, SituError, type Transaction } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { dieAtStep, isStopped, listenForStop, orderOf, repeat } from "../helpers/process-child.ts";
import { indexProblems } from "../helpers/process-rest.ts";
import type { Life } from "../helpers/process-storm.ts";
import {
  AT_FIRST,
  CITIES,
  EMAILS,
  IDS,
  LATER,
  openPeople,
  type People,
  type Person,
  Total,
  VALUES,
} from "./index-store.ts";

export interface IndexOrder extends Life {
  readonly path: string;
  /** Declares the indexes that are not there at first. */
  readonly isLater: boolean;
}

const { path, seed, life, dieAtStep: lastStep, isLater } = orderOf<IndexOrder>();
const TABLES = isLater ? LATER : AT_FIRST;
const MANY = 40;
const random = new Random(seed);
let badges = 0;

dieAtStep(lastStep);
listenForStop();
const db: Database = await openPeople(path, TABLES);

function choose<T>(items: readonly T[]): T {
  return items[random.below(items.length)];
}

function newPerson(id: number): Person {
  return {
    id,
    email: choose(EMAILS),
    city: choose(CITIES),
    score: random.below(20) - 10,
    badge: newBadge(),
  };
}

/** No two people ever have the same, so an index over them can be built as a unique one. */
function newBadge(): string {
  return `badge ${++badges} of life ${life}${"!".repeat(random.below(60))}`;
}

/** Runs a change; a unique value that is taken is the one reason to refuse it. */
function unlessTaken(work: () => void): void {
  try {
    work();
    return;
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_UNIQUE") throw error;
  }
  db.transactSync((tx) => {
    tx.update(Total, 0, { refusals: tx.get(Total, 0)!.refusals + 1 });
  });
}

/** Keys and unique values stay unique under either isolation. */
function transact(body: (tx: Transaction) => void): void {
  const isolation = random.below(3) === 0 ? "snapshot" : "strict-serializable";
  db.transactSync(body, { isolation });
}

function changeOne(people: People): void {
  const { id, ...changes } = newPerson(random.below(IDS));
  const names = (Object.keys(changes) as (keyof typeof changes)[]).filter(
    () => random.below(2) === 0,
  );
  const some = Object.fromEntries(names.map((name) => [name, changes[name]]));
  const dice = random.below(4);
  unlessTaken(() =>
    transact((tx) => {
      if (tx.get(people, id) === undefined) tx.insert(people, { id, ...changes });
      else if (dice === 0) tx.delete(people, id);
      else if (dice === 1) tx.put(people, { id, ...changes });
      else tx.update(people, id, some);
    }),
  );
}

/** Two people change their addresses, by way of one that nobody has. */
function swap(people: People): void {
  const [a, b] = [random.below(IDS), random.below(IDS)];
  transact((tx) => {
    const [one, other] = tx.getMany(people, [a, b]);
    if (one === undefined || other === undefined || a === b) return;
    tx.update(people, a, { email: `swap ${life}` });
    tx.update(people, b, { email: one.email });
    tx.update(people, a, { email: other.email });
  });
}

/** Many at once, so that trees grow and shrink. */
function changeMany(people: People): void {
  const first = random.below(IDS - MANY);
  const removes = random.below(2) === 0;
  transact((tx) => {
    for (let id = first; id < first + MANY; id++) {
      if (removes) {
        tx.delete(people, id);
        continue;
      }
      const row = newPerson(id);
      const holder = tx.get(people, row.email as never, { index: "byEmail" } as never);
      if (holder === undefined || (holder as Person).id === id) tx.put(people, row);
    }
  });
}

/** What an index leads to has the value that was asked for, and is the row that the key leads to. */
function look(people: People): void {
  const email = choose(EMAILS);
  const problem = db.transactSync((tx) => {
    const found = tx.get(people, email as never, { index: "byEmail" } as never) as
      | Person
      | undefined;
    if (found === undefined) return "";
    const row = tx.get(people, found.id);
    return found.email === email && JSON.stringify(row) === JSON.stringify(found)
      ? ""
      : `${email} leads to ${JSON.stringify(found)}, the row is ${JSON.stringify(row)}`;
  });
  if (problem !== "") throw new Error(problem);
}

function compare(people: People): void {
  const snapshot = db.snapshot();
  try {
    const problems = indexProblems(snapshot, people, VALUES);
    if (problems.length > 0) throw new Error(`in a snapshot: ${problems.join("\n")}`);
  } finally {
    snapshot.close();
  }
}

console.log("ready");
await repeat(isStopped, () => {
  const people = choose(TABLES);
  const dice = random.below(300);
  if (dice < 180) changeOne(people);
  else if (dice < 225) swap(people);
  else if (dice < 240) changeMany(people);
  else if (dice < 299) look(people);
  else compare(people);
});
await db.close();
