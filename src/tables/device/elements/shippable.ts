/** Which operations the threads of the device can carry out; all others run on the host. */

import { SituError } from "../../../runtime/errors.ts";
import type { Program } from "../../expressions/program.ts";
import type { TableStore } from "../../indexes/table-store.ts";

/** Why rows of a table cannot be read there; undefined if they can. */
export function whyNotRead(store: TableStore): string | undefined {
  if (store.refusal !== undefined) throw store.refusal;
  if (store.table.storage !== "device") return "the table is in memory";
  return store.isProjected ? "the table is declared otherwise than it is stored" : undefined;
}

export function refuseUnlessShippable(call: string, store: TableStore): void {
  const why = whyNotRead(store);
  if (why === undefined) return;
  throw new SituError(
    "SITU_UNSUPPORTED",
    `${call}: the device cannot do this, because ${why}: leave place out`,
  );
}

/**
 * Why it is not enough to give rows their new places: something else depends on what they hold. Undefined if it is.
 * Otherwise the device finds the rows, and they are changed one by one, as on the host.
 */
export function whyByRows(store: TableStore, { task }: Program): string | undefined {
  if (store.isRecording) return "the table is watched";
  const indexes = store.storedIndexes;
  if (task.kind === "delete") {
    return indexes.length === 0 ? undefined : "the table has an index";
  }
  const fields = new Set(task.kind === "update" ? task.set.map(([name]) => name) : []);
  const index = indexes.find(({ on }) => on.some((name) => fields.has(name)));
  return index === undefined ? undefined : `index ${index.name} is on a field that it changes`;
}
