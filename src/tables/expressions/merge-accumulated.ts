/** Puts together what several threads have accumulated, each of its share of the rows. */

import { MAX_GROUPS } from "../../runtime/limits.ts";
import { type Accumulated, tooManyGroups } from "./accumulate.ts";
import { bytesKey, compareBytes, compareText, whole } from "./library.ts";
import type { NamedAggregate, Task } from "./program.ts";

type AggregateTask = Task & { kind: "aggregate" };

export function merged(task: AggregateTask, parts: readonly Accumulated[]): Accumulated {
  if (parts.length === 1) return parts[0];
  const groups: (readonly unknown[])[] = [];
  const counts: number[][] = task.values.map(() => []);
  const sums: unknown[][] = task.values.map(() => []);
  const known = new Map<string, number>();
  for (const part of parts) {
    part.groups.forEach((group, from) => {
      const key = keyOf(group);
      let to = known.get(key);
      if (to === undefined) {
        if (groups.length === MAX_GROUPS) tooManyGroups();
        to = groups.push(group) - 1;
        known.set(key, to);
        task.values.forEach((_, i) => {
          counts[i][to!] = part.counts[i][from];
          sums[i][to!] = part.sums[i][from];
        });
        return;
      }
      task.values.forEach((value, i) => {
        const count = part.counts[i][from];
        if (count === 0) return;
        sums[i][to!] =
          counts[i][to!] === 0 ? part.sums[i][from] : both(value, sums[i][to!], part.sums[i][from]);
        counts[i][to!] += count;
      });
    });
  }
  return { groups, counts, sums };
}

/** Of two values that are not null. */
function both({ name, of }: NamedAggregate, a: unknown, b: unknown): unknown {
  if (name === "count") return null;
  if (name === "min" || name === "max") {
    const order = compared(of!.type, a, b);
    return (name === "min") === order <= 0 ? a : b;
  }
  if (typeof a === "bigint") return a + (b as bigint);
  const sum = (a as number) + (b as number);
  return name === "sum" && of!.type === "whole" ? whole(sum) : sum;
}

function compared(type: string, a: unknown, b: unknown): number {
  if (type === "str") return compareText(a as string, b as string);
  if (type === "bytes") return compareBytes(a as Uint8Array, b as Uint8Array);
  return (a as number) < (b as number) ? -1 : (a as number) > (b as number) ? 1 : 0;
}

/** The values of a group as a text: different ones for different values. */
function keyOf(group: readonly unknown[]): string {
  return JSON.stringify(
    group.map((value) => {
      if (value instanceof Uint8Array) return ["bytes", bytesKey(value)];
      if (typeof value === "bigint") return ["big", String(value)];
      // JSON has no NaN and no infinity.
      if (typeof value === "number" && !Number.isFinite(value)) return ["number", String(value)];
      return value;
    }),
  );
}
