/** A doctor who wants to go home, and who reads before any other has changed anything. */

import type { Isolation } from "../../src/index.ts";
import { orderOf, report, said, waitForGo } from "../helpers/process-child.ts";
import { CELLS, openAnomalies, xOf, yOf } from "./anomalies-store.ts";

export interface DoctorOrder {
  readonly path: string;
  readonly isolation: Isolation;
  readonly ordered: boolean;
  readonly which: 0 | 1;
}

const { path, isolation, ordered, which } = orderOf<DoctorOrder>();
const cells = CELLS[ordered ? 1 : 0];
const ids = which === 0 ? [xOf(0), yOf(0)] : [yOf(0), xOf(0)];

const db = await openAnomalies(path);
await waitForGo();
let attempts = 0;
await db.transact(
  async (tx) => {
    const [me, other] = await tx.getMany(cells, ids);
    if (++attempts === 1) await said("has read");
    if (me?.n === 1 && other?.n === 1) await tx.update(cells, ids[0], { n: 0 });
  },
  { isolation },
);
await db.close();
report({ attempts });
process.stdin.destroy();
