/** Checks over what several processes have read and written, each a list of sentences. */

import type { PairRead, Place, SideWrite } from "../processes/anomalies-orders.ts";

const MOST = 5;

function byPlace<T extends { readonly place: Place }>(items: readonly T[]): Map<Place, T[]> {
  const groups = new Map<Place, T[]>();
  for (const item of items) {
    const group = groups.get(item.place);
    if (group === undefined) groups.set(item.place, [item]);
    else group.push(item);
  }
  return groups;
}

/**
 * Long forks. Where x and y only grow, all pairs that anybody has read stand in one order: of any
 * two, one has seen at least what the other has.
 */
export function longForks(reads: readonly PairRead[]): string[] {
  const found: string[] = [];
  for (const [place, group] of byPlace(reads)) {
    const sorted = group.toSorted((a, b) => a.x - b.x || a.y - b.y);
    for (let i = 1; i < sorted.length && found.length < MOST; i++) {
      const [a, b] = [sorted[i - 1], sorted[i]];
      if (b.y < a.y) found.push(`${place}: (${a.x}, ${a.y}) and (${b.x}, ${b.y})`);
    }
  }
  return found;
}

/** Reads that began when a newer value had been written or read, and did not see it. */
export function staleReads(reads: readonly PairRead[], writes: readonly SideWrite[]): string[] {
  const found: string[] = [];
  const written = byPlace(writes);
  for (const [place, group] of byPlace(reads)) {
    const known = [
      ...group.map(({ x, y, end }) => ({ x, y, end })),
      ...(written.get(place) ?? []).map(({ side, n, end }) => ({
        x: side === "x" ? n : 0,
        y: side === "y" ? n : 0,
        end,
      })),
    ].sort((a, b) => a.end - b.end);
    let next = 0;
    let [x, y] = [0, 0];
    for (const read of group.toSorted((a, b) => a.start - b.start)) {
      for (; next < known.length && known[next].end < read.start; next++) {
        x = Math.max(x, known[next].x);
        y = Math.max(y, known[next].y);
      }
      if ((read.x >= x && read.y >= y) || found.length >= MOST) continue;
      found.push(`${place}: (${read.x}, ${read.y}) after (${x}, ${y}) was there`);
    }
  }
  return found;
}
