// The order transaction: one row with three indexes is inserted, and the customer's row changes.
//
//   INSERT INTO orders (id, customer, status, placed, total, reference) VALUES (…)
//   UPDATE customers SET orders = orders + 1, spent = spent + total WHERE id = customer
//
// Indexes, all ordered: (customer), (status, placed), (total). Ids and times ascend, customers and totals are
// random, one of five statuses. 50,000 orders of 10,000 customers are there before.
import { f64, str, table, u32 } from "situ";

export const CUSTOMERS = 10_000;
export const STATUSES = 5;
export const TOTALS = 1_000_000;
/** Each process numbers its orders from a place of its own. */
export const IDS_PER_PROCESS = 2 ** 28;

export const Customers = table(
  "customers",
  { id: u32(), orders: u32(), spent: f64() },
  { key: "id" },
);

export const Orders = table(
  "orders",
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

export interface Order {
  readonly id: number;
  readonly customer: number;
  readonly status: number;
  readonly placed: number;
  readonly total: number;
  readonly reference: string;
}

/** One order after the other. */
export function orderSource(process: number, random: () => number): () => Order {
  let id = process * IDS_PER_PROCESS;
  return () => {
    id++;
    return {
      id,
      customer: Math.floor(random() * CUSTOMERS),
      status: id % STATUSES,
      placed: 1_700_000_000 + (id % IDS_PER_PROCESS),
      total: Math.floor(random() * TOTALS),
      reference: `order-${id}`,
    };
  };
}

/** An engine that has the two tables, in a process of its own. */
export interface OrderEngine {
  /** Customers without orders. */
  addCustomers(): void;
  /** The order transaction. */
  place(order: Order): void;
  /** Orders that are there, by the third index, and those that the customers have. */
  count(): { readonly orders: number; readonly counted: number };
  close(): Promise<void>;
}

export type Durability = "none" | "lazy";

export interface OrderPlace {
  /** A folder for files, and one in memory. */
  readonly folder: string;
  readonly memoryFolder: string;
  readonly durability: Durability;
  /** Whether other processes use it too. */
  readonly isShared: boolean;
  readonly isFirst: boolean;
}
