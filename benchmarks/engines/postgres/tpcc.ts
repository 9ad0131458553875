// TPC-C on PostgreSQL: each transaction is one call of a function (tpcc-functions.ts).
import type { OrderStatusResult, StatusLine, TpccStore } from "../../../workloads/tpcc/store.ts";
import type { Statement } from "./connection.ts";
import { type Database, listOf } from "./database.ts";
import { rolledBackCode } from "./tpcc-functions.ts";

const newOrder: Statement = {
  name: "new_order",
  text: "SELECT * FROM tpcc_new_order($1, $2, $3, $4, $5, $6, $7)",
};
const payment: Statement = {
  name: "payment",
  text: "SELECT * FROM tpcc_payment($1, $2, $3, $4, $5, $6, $7, $8, $9)",
};
const orderStatus: Statement = {
  name: "order_status",
  text: "SELECT * FROM tpcc_order_status($1, $2, $3, $4)",
};
const delivery: Statement = { name: "delivery", text: "SELECT tpcc_delivery($1, $2, $3)" };
const stockLevel: Statement = {
  name: "stock_level",
  text: "SELECT tpcc_stock_level($1, $2, $3)",
};

type Row = Readonly<Record<string, number & string>>;

export function postgresTpcc(database: Database): TpccStore {
  return {
    async newOrder({ warehouse, district, customer, date, items, supplies, quantities }) {
      const lists = [items, supplies, quantities].map((list) => listOf(list, list.length));
      try {
        const values = [warehouse, district, customer, date, ...lists];
        const { order_id, total, discount, credit, originals } = (
          await database.write(newOrder, values)
        ).rows[0] as Row;
        return { order: order_id, total, discount, credit, originals };
      } catch (error) {
        if ((error as { readonly code?: string }).code === rolledBackCode) return undefined;
        throw error;
      }
    },

    async payment(input) {
      const { warehouse, district, customerWarehouse, customerDistrict, amount, date } = input;
      const whose = [customerWarehouse, customerDistrict, input.customer, input.last];
      const values = [warehouse, district, ...whose, amount, date, input.history];
      const { rows } = await database.write(payment, values);
      const { customer_id, balance, credit, data } = rows[0] as Row;
      return { customer: customer_id, balance, credit, data };
    },

    async orderStatus({ customerWarehouse, customerDistrict, customer: number, last }) {
      const values = [customerWarehouse, customerDistrict, number, last];
      const rows = (await database.read(orderStatus, values)).rows as unknown as StatusRow[];
      const { customer_id: customer, balance, order_id: order, entered: date, carrier } = rows[0];
      const lines = rows.map(({ item, supply, quantity, amount, delivered }) => {
        return { item, supply, quantity, amount, delivered };
      });
      return { customer, balance, order, date, carrier, lines };
    },

    async delivery(warehouse, carrier, date) {
      const { rows } = await database.write(delivery, [warehouse, carrier, date]);
      const text = rows[0].tpcc_delivery as string;
      return text.slice(1, -1).split(",").map(Number);
    },

    async stockLevel(warehouse, district, threshold) {
      const { rows } = await database.read(stockLevel, [warehouse, district, threshold]);
      return rows[0].tpcc_stock_level as number;
    },
  };
}

interface StatusRow extends StatusLine, Pick<OrderStatusResult, "balance" | "carrier"> {
  readonly customer_id: number;
  readonly order_id: number;
  readonly entered: number;
}
