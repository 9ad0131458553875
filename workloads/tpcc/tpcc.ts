/**
 * TPC-C: a wholesaler with warehouses takes orders, payments and deliveries. Think times are off, and
 * warehouses do not grow with the throughput: this is a workload with TPC-C's transactions, not a
 * result that could be compared with published ones.
 */

import { Scattered, Zipfian } from "../random/zipfian.ts";
import type { Workload } from "../workload.ts";
import { checkTpcc } from "./check.ts";
import { fullMix, newOrderMix, type TpccScale } from "./parameters.ts";
import { initialRows } from "./rows.ts";
import { TpccSession } from "./session.ts";
import type { TpccStore } from "./store.ts";
import { tpccTables } from "./tables.ts";

export interface TpccOptions {
  /** Only New-Order, as papers measure it; otherwise the full mix. */
  readonly newOrderOnly?: boolean;
  /** The percentage of orders and payments that use another warehouse, 0 to 100. */
  readonly remotePercent?: number;
  /** Items are drawn zipfian with this theta, and not by NURand. */
  readonly itemTheta?: number;
}

/** Bytes of the columns; the specification's are nearly the same (clause 1.4). */
const bytesOf = { warehouse: 89, district: 95, customer: 655 + 46, item: 82, stock: 306 } as const;
/** An order has 10 lines of 54 bytes on average; a third of them have a new order of 8. */
const ORDER_BYTES = 24 + 10 * 54 + 3;

export function tpcc(scale: TpccScale, options: TpccOptions = {}): Workload<TpccStore> {
  const { warehouses } = scale;
  if (!Number.isSafeInteger(warehouses) || warehouses < 1 || warehouses > 65_535) {
    throw new RangeError(`TPC-C needs 1 to 65535 warehouses, not ${warehouses}`);
  }
  const { newOrderOnly = false, remotePercent, itemTheta } = options;
  if (remotePercent !== undefined && !(remotePercent >= 0 && remotePercent <= 100)) {
    throw new RangeError(`the degree of distribution is 0 to 100 %, not ${remotePercent}`);
  }
  const itemsBy =
    itemTheta === undefined ? undefined : new Scattered(new Zipfian(scale.items, itemTheta));
  const mix = newOrderOnly ? newOrderMix : fullMix;
  return {
    name: newOrderOnly ? "tpcc-new-order" : "tpcc",
    source: "TPC-C Standard Specification 5.11: tables, population, transactions, mix and NURand",
    mix,
    tables: tpccTables,
    scale: scaleText(scale, options),
    bytes: bytesIn(scale),
    rows: () => initialRows(scale),
    session: (store, { seed, lane, lanes }) =>
      new TpccSession(store, { mix, seed, lane, lanes, scale, remotePercent, itemsBy }),
    check: (read, tally) => checkTpcc(scale, read, tally),
  };
}

function bytesIn({ warehouses, items, customers }: TpccScale): number {
  const perDistrict = bytesOf.district + customers * (bytesOf.customer + ORDER_BYTES);
  const perWarehouse = bytesOf.warehouse + items * bytesOf.stock + 10 * perDistrict;
  return items * bytesOf.item + warehouses * perWarehouse;
}

function scaleText(scale: TpccScale, { remotePercent, itemTheta }: TpccOptions): string {
  const { warehouses, items, customers } = scale;
  const count = warehouses === 1 ? "1 warehouse" : `${warehouses} warehouses`;
  return [
    `${count}, ${items.toLocaleString("en")} items, ${customers.toLocaleString("en")} customers per district`,
    ...(remotePercent === undefined ? [] : [`${remotePercent} % remote`]),
    ...(itemTheta === undefined ? [] : [`items zipfian ${itemTheta}`]),
  ].join(", ");
}
