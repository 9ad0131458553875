/**
 * Is the history of one register linearizable, where every write writes a value of its own? Gibbons
 * and Korach (Testing Shared Memories, 1997): a write and all reads of its value are a cluster. Let f
 * be the first end and s the last start in it. If f < s, the value must have been there all the time
 * from f to s (a forward zone); otherwise there is a moment between s and f at which all of it can
 * have happened (a backward zone). The register is linearizable if and only if no read ends before
 * its write starts, no two forward zones overlap, and no backward zone lies inside a forward one.
 */

export interface RegisterWrite {
  readonly value: number;
  readonly start: number;
  /** Infinity if nobody knows whether it was done: it may then have been done at any later time. */
  readonly end: number;
}

export interface RegisterRead {
  readonly value: number;
  readonly start: number;
  readonly end: number;
}

/** What a register holds before the first write. */
export const INITIAL = 0;

interface Zone {
  readonly value: number;
  readonly from: number;
  readonly to: number;
  readonly isForward: boolean;
}

/** Sentences about what is wrong; empty if the register is linearizable. */
export function checkRegister(
  writes: readonly RegisterWrite[],
  reads: readonly RegisterRead[],
): string[] {
  const problems: string[] = [];
  const clusters = new Map<number, { start: number; firstEnd: number; lastStart: number }>();
  clusters.set(INITIAL, { start: -1, firstEnd: -1, lastStart: -1 });
  for (const { value, start, end } of writes) {
    clusters.set(value, { start, firstEnd: end, lastStart: start });
  }
  const seen = new Set<number>([INITIAL]);
  for (const { value, start, end } of reads) {
    const cluster = clusters.get(value);
    if (cluster === undefined) {
      problems.push(`a read from ${start} to ${end} found ${value}, which nobody wrote`);
      continue;
    }
    if (end < cluster.start) {
      problems.push(`a read found ${value} at ${end}, before it was written at ${cluster.start}`);
    }
    seen.add(value);
    cluster.firstEnd = Math.min(cluster.firstEnd, end);
    cluster.lastStart = Math.max(cluster.lastStart, start);
  }
  const zones: Zone[] = [];
  for (const [value, { firstEnd, lastStart }] of clusters) {
    // Nobody knows whether it was done, and nobody saw it: as if it was not.
    if (firstEnd === Number.POSITIVE_INFINITY && !seen.has(value)) continue;
    const isForward = firstEnd < lastStart;
    const [from, to] = isForward ? [firstEnd, lastStart] : [lastStart, firstEnd];
    zones.push({ value, from, to, isForward });
  }
  zones.sort((a, b) => a.from - b.from || a.to - b.to);
  for (let i = 0; i < zones.length; i++) {
    const zone = zones[i];
    for (let k = i + 1; k < zones.length && zones[k].from < zone.to; k++) {
      const later = zones[k];
      // Equal moments order nothing: a zone that begins where the other does is not inside of it.
      const isInside = later.from > zone.from && later.to < zone.to;
      if (zone.isForward && (later.isForward || isInside)) problems.push(overlap(zone, later));
    }
  }
  return problems;
}

function overlap(zone: Zone, other: Zone): string {
  return (
    `${zone.value} was the value from ${zone.from} to ${zone.to}, but ` +
    `${other.value} was it between ${other.from} and ${other.to}`
  );
}
