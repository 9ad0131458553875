/**
 * The store of the durable storms. Every writing transaction leaves its number in a ledger that nobody
 * ever deletes from, so that one can tell later whether it has survived, whole; money that must add up
 * with that ledger, row by row; and lists that tell their own past.
 */

import {
  type AsyncTransaction,
  bytes,
  type Database,
  i64,
  type OpenOptions,
  open,
  type Transaction,
  table,
  u32,
} from "../../src/index.ts";

export const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
export const Ledger = table(
  "ledger",
  { id: u32(), from: u32(), to: u32(), amount: i64() },
  { key: "id", ordered: true, indexes: { byFrom: { on: ["from"], kind: "hash" } } },
);
export const List = table("list", { id: u32(), values: bytes() }, { key: "id" });
/** Row 0: the generation of lists that is being written now. */
export const Generation = table("generation", { id: u32(), current: u32() }, { key: "id" });

export const ACCOUNTS = 32;
export const LISTS_PER_GENERATION = 6;
/** Lists longer than this are left alone: reading them would be all that the storm does. */
export const LONG_LIST = 40;
export const FIRST_BALANCE = 1_000n;
/** Numbers of transactions begin with the life that they belong to. */
export const PER_LIFE = 100_000;
/** Values that one transaction may append: they begin with its number. */
export const PER_TRANSACTION = 4;

export function openDurable(path: string, options: Partial<OpenOptions> = {}): Promise<Database> {
  return open({
    path,
    tables: [Account, Ledger, List, Generation],
    memoryBytes: 64 * 2 ** 20,
    timeoutMs: 120_000,
    ...options,
  });
}

export function fillDurable(db: Database): void {
  db.transactSync(
    (tx) => {
      for (let id = 0; id < ACCOUNTS; id++) tx.insert(Account, { id, balance: FIRST_BALANCE });
      tx.insert(Generation, { id: 0, current: 0 });
    },
    { durability: "sync" },
  );
}

export function encodeList(values: readonly number[]): Uint8Array {
  return new Uint8Array(new Float64Array(values).buffer);
}

export function decodeList(data: Uint8Array | undefined): number[] {
  return data === undefined ? [] : [...new Float64Array(data.slice().buffer)];
}

/** What one transaction is about to do. */
export interface Plan {
  readonly number: number;
  readonly isSync: boolean;
  /** Keys of lists, and the value to append; 0 stands for a read. */
  readonly operations: readonly (readonly [key: number, value: number])[];
  /** Undefined for one that only reads. */
  readonly transfer?:
    | { readonly from: number; readonly to: number; readonly amount: number }
    | undefined;
}

/** What a transfer does to which accounts. */
function changes({ from, to, amount }: NonNullable<Plan["transfer"]>): [number, bigint][] {
  return [
    [from, BigInt(-amount)],
    [to, BigInt(amount)],
  ];
}

/** Plays a plan, and returns the lists that it has read. */
export function playPlan(tx: Transaction, plan: Plan): number[][] {
  const lists: number[][] = [];
  for (const [id, value] of plan.operations) {
    const values = decodeList(tx.get(List, id)?.values);
    if (value === 0) lists.push(values);
    else tx.put(List, { id, values: encodeList([...values, value]) });
  }
  if (plan.transfer === undefined) return lists;
  for (const [id, change] of changes(plan.transfer)) {
    tx.update(Account, id, { balance: tx.get(Account, id)!.balance + change });
  }
  const { from, to, amount } = plan.transfer;
  tx.insert(Ledger, { id: plan.number, from, to, amount: BigInt(amount) });
  return lists;
}

/** The same where others may get in between any two steps. */
export async function playPlanAsync(tx: AsyncTransaction, plan: Plan): Promise<number[][]> {
  const lists: number[][] = [];
  for (const [id, value] of plan.operations) {
    const values = decodeList((await tx.get(List, id))?.values);
    if (value === 0) lists.push(values);
    else await tx.put(List, { id, values: encodeList([...values, value]) });
  }
  if (plan.transfer === undefined) return lists;
  for (const [id, change] of changes(plan.transfer)) {
    const row = await tx.get(Account, id);
    await tx.update(Account, id, { balance: row!.balance + change });
  }
  const { from, to, amount } = plan.transfer;
  await tx.insert(Ledger, { id: plan.number, from, to, amount: BigInt(amount) });
  return lists;
}

/** A line of a process's log: what it is about to try, then what became of it. */
export type DurableLine =
  | { readonly at: number; readonly plan: Plan }
  | { readonly at: number; readonly number: number; readonly lists: readonly (readonly number[])[] }
  | { readonly at: number; readonly number: number; readonly failed: string };

/** The log of a process; the round says which processes died together. */
export function logName(round: number, life: number): string {
  return `round-${round}-life-${life}.txt`;
}
