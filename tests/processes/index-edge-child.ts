/** Inserts rows at the right edge of a tree, where all others insert theirs too. */

import { orderOf, repeat, report, waitForGo } from "../helpers/process-child.ts";
import { Counter, Event, openEvents } from "./index-edge-store.ts";

export interface EdgeOrder {
  readonly path: string;
  /** Where ids come from: a row that all increment, or a sequence for each, between the others'. */
  readonly ids: "counter" | "interleaved";
  readonly which: number;
  readonly processes: number;
  readonly durationMs: number;
  readonly leastRows: number;
}

export interface EdgeReport {
  readonly ids: readonly number[];
}

const LONGEST_MS = 240_000;
const { path, ids, which, processes, durationMs, leastRows } = orderOf<EdgeOrder>();
const db = await openEvents(path);
const inserted: number[] = [];

function insert(): void {
  const id = db.transactSync((tx) => {
    let next = inserted.length * processes + which;
    if (ids === "counter") {
      next = tx.get(Counter, 0)!.next;
      tx.update(Counter, 0, { next: next + 1 });
    }
    tx.insert(Event, { id: next, kind: next % 7, text: `event ${next} of ${which}` });
    return next;
  });
  inserted.push(id);
}

await waitForGo();
const beginMs = performance.now();
await repeat(() => {
  const tookMs = performance.now() - beginMs;
  return tookMs > LONGEST_MS || (tookMs > durationMs && inserted.length >= leastRows);
}, insert);
await db.close();
report({ ids: inserted } satisfies EdgeReport);
process.stdin.destroy();
