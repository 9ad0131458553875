/** Inserts rows whose keys are filled in, in both isolations, and dies at a step if it is told to. */

import { dieAtStep, orderOf } from "../helpers/process-child.ts";
import { Item, openItems } from "./numbers-store.ts";

export interface NumbersOrder {
  readonly path: string;
  readonly by: number;
  readonly rows: number;
  /** SIGKILL before this atomic step; 0 to stay alive. */
  readonly dieAtStep: number;
}

const { path, by, rows, dieAtStep: lastStep } = orderOf<NumbersOrder>();
const db = await openItems(path);
if (lastStep > 0) dieAtStep(lastStep);
for (let position = 0; position < rows; position++) {
  const isolation = position % 2 === 0 ? "strict-serializable" : "snapshot";
  db.transactSync((tx) => tx.insert(Item, { by, position }), { isolation });
}
await db.close();
