/**
 * Changes items, with transactions that stay open for a while after what they have changed: those
 * are the ones that may know nothing of an index that has come up meanwhile.
 */

import type { Transaction } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  dawdle,
  isStopped,
  linger,
  listenForStop,
  orderOf,
  repeat,
  report,
} from "../helpers/process-child.ts";
import { IDS, type Item, itemsWith, openItems, SHELVES } from "./index-online-store.ts";

export interface OnlineOrder {
  readonly path: string;
  readonly which: number;
  readonly seed: number;
  readonly dawdles: boolean;
}

const { path, which, seed, dawdles } = orderOf<OnlineOrder>();
const random = new Random(seed);
const tables = itemsWith(0);
let changes = 0;
/** However slow the machine is. */
const LEAST_CHANGES = 20;

listenForStop();
const db = await openItems(path, tables);
if (dawdles) dawdle(random);

function change(tx: Transaction, of: number, id: number, item: Omit<Item, "id">): void {
  const items = tables[of];
  const { code, shelf } = item;
  if (tx.get(items, id) === undefined) tx.insert(items, { id, ...item });
  else if (shelf % 3 === 0) tx.delete(items, id);
  else if (shelf % 3 === 1) tx.update(items, id, { code, shelf });
  else tx.update(items, id, { shelf });
}

process.stdout.write("ready\n");
await repeat(
  () => isStopped() && changes > LEAST_CHANGES,
  () => {
    const isolation = random.below(4) === 0 ? "snapshot" : "strict-serializable";
    const of = random.below(tables.length);
    const ids = Array.from({ length: 1 + random.below(4) }, () => random.below(IDS));
    const stays = random.below(3) === 0 ? random.below(2_000) : 0;
    const items = ids.map((_, i) => ({
      code: `${which} ${changes} ${i}`,
      shelf: random.below(SHELVES),
    }));
    db.transactSync(
      (tx) => {
        ids.forEach((id, i) => {
          change(tx, of, id, items[i]);
        });
        linger(stays);
      },
      { isolation },
    );
    changes++;
  },
);
await db.close();
report({ changes });
