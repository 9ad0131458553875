/** An update by the code of the device's threads, in this thread: where a test has limits or a disk of its own. */

import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { updateProgram } from "../../src/tables/bulk/requests.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { type Changed, ChangeJob } from "../../src/tables/device/elements/change-job.ts";
import { RememberedMaps } from "../../src/tables/device/elements/map-steps.ts";
import { SIGNAL_WORDS } from "../../src/tables/device/elements/messages.ts";
import { Projections } from "../../src/tables/device/elements/projection.ts";
import { programText } from "../../src/tables/expressions/program.ts";
import type { Table } from "../../src/tables/table.ts";

/** `options` are those of `updateWhere`. */
export async function changeHere(
  { executor }: LocalDatabase,
  of: unknown,
  options: object,
): Promise<Changed> {
  const table = of as Table;
  const store = openTable(executor, table);
  const [{ table: shared }] = workOf(knownDevice(executor)!);
  const maps = new RememberedMaps();
  const opened = { executor, store, shared, projections: new Projections(), maps };
  const job = new ChangeJob(opened, {
    kind: "change",
    id: 1,
    table,
    root: store.root,
    program: programText(updateProgram(table, options, true)),
    momentMs: 0,
    timeoutMs: 10_000,
    waits: false,
    signals: new Int32Array(new SharedArrayBuffer(SIGNAL_WORDS * 4)),
    death: undefined,
  });
  try {
    return await job.run(() => store);
  } finally {
    await job.end();
  }
}
