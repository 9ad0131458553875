/** A process that has a store open, writes its log, and does nothing else until its input ends. */

import { listenForStop, orderOf, said } from "../helpers/process-child.ts";
import { openDurable } from "./durable-store.ts";

const { path } = orderOf<{ readonly path: string }>();
const db = await openDurable(path);
// Once something has got to disk, there is somebody who gets it there.
await db.durable();
while (db.stats().durability.writer?.pid !== process.pid) {
  await new Promise((resolve) => setTimeout(resolve, 5));
}
listenForStop();
await said("ready");
await db.close();
