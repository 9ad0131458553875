/** Writes items until it is killed, or prints what it is told of them, as JSON lines. */

import { isStopped, listenForStop, orderOf } from "../helpers/process-child.ts";
import { ITEMS, Item, openItems, touch } from "./watch-store.ts";

export interface WatchOrder {
  readonly path: string;
  readonly role: "writer" | "watcher";
  readonly from?: string;
  readonly seed?: number;
}

const order = orderOf<WatchOrder>();
// Before the store is open: the parent may be done with a writer that has just been started.
listenForStop();
const db = await openItems(order.path);
if (order.role === "watcher") {
  process.stdin.on("end", () => void db.close());
  try {
    for await (const { type, key, row, position } of db.watch(Item, {
      from: order.from ?? "now",
    })) {
      process.stdout.write(`${JSON.stringify({ type, key, row, position })}\n`);
    }
  } catch (error) {
    if ((error as { code?: string }).code !== "SITU_CLOSED") throw error;
  }
} else {
  for (
    let n = order.seed ?? 0;
    !isStopped();
    n = (Math.imul(n, 1_103_515_245) + 12_345) & 0x7fffffff
  ) {
    const choice = n >> 8;
    db.transactSync(
      (tx) => {
        touch(tx, choice % ITEMS, choice >> 4);
        touch(tx, (choice >> 7) % ITEMS, choice >> 5);
      },
      (choice & 1) === 0 ? {} : { isolation: "snapshot" },
    );
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await db.close();
}
