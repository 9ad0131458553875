/** A table on the device as a kind of structure, for those who make, open and free tables. */

import { deviceOf } from "../../device/device.ts";
import { fileName } from "../../device/page-file.ts";
import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, NO_ADDRESS } from "../../memory/address.ts";
import type { AnyCodec, StoreKind } from "../../stores/kind.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { DeviceStore } from "./device-store.ts";
import { DeviceTable } from "./device-table.ts";
import { startWork } from "./device-work.ts";
import {
  clearRoot,
  createDeviceRoot,
  DELTA_KIND,
  deviceRootAt,
  FREE_KIND,
  type HiddenTables,
  hiddenTablesOf,
  readDeviceRoot,
} from "./hidden-tables.ts";

export function deviceKindOf(table: Table, codec: AnyCodec<never, never>): StoreKind {
  const hidden = hiddenTablesOf(table);
  return {
    ordered: table.ordered,
    overwritesInPlace: false,
    create: (tx) => createDeviceRoot(tx, hidden, codec),
    open: (executor, given, root) =>
      new DeviceStore(openShared(executor, table, hidden, codec as never, root), given),
    dismantle: (tx, _codec, root) => dismantle(tx, hidden, codec, root),
  };
}

/** One for all forms in which an executor has the table open. */
function openShared(
  executor: Executor,
  table: Table,
  hidden: HiddenTables,
  codec: AnyCodec<RowValues, unknown>,
  root: Address,
): DeviceTable {
  const { tables } = deviceOf(executor);
  const known = tables.get(root) as DeviceTable | undefined;
  // Where one was that is gone there may be another one.
  if (known !== undefined && (!known.isGone() || isAt(known, root))) return known;
  const opened = new DeviceTable(executor, table, hidden, codec, root);
  tables.set(root, opened);
  startWork(opened);
  return opened;
}

function isAt({ executor, file }: DeviceTable, root: Address): boolean {
  const { fileHigh, fileLow } = deviceRootAt(executor, root);
  return fileName(fileHigh, fileLow) === file.name;
}

function dismantle(
  tx: Transaction,
  hidden: HiddenTables,
  codec: AnyCodec<never, never>,
  root: Address,
): boolean {
  const { map, delta, free, entry } = readDeviceRoot(tx, root);
  // What was dismantled has no address in the root any more.
  const isThere = (address: Address): boolean => address !== NO_ADDRESS;
  if (isThere(delta)) {
    if (DELTA_KIND.dismantle(tx, codec, delta)) clearRoot(tx, entry, "delta");
    return false;
  }
  if (isThere(map)) {
    if (hidden.mapKind.dismantle(tx, hidden.mapCodec, map)) clearRoot(tx, entry, "map");
    return false;
  }
  if (isThere(free)) {
    if (FREE_KIND.dismantle(tx, hidden.freeCodec, free)) clearRoot(tx, entry, "free");
    return false;
  }
  tx.free(entry);
  return true;
}
