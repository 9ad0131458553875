// Cells as the suite makes them, with figures that tests can compute with in their heads.
import type { EngineName } from "../../benchmarks/engines/engine.ts";
import { summarize } from "../../benchmarks/harness/statistics.ts";
import type { Cell, Entry } from "../../benchmarks/report/result.ts";

export function measured(engine: EngineName, ...perSecond: number[]): Entry {
  return { engine, perSecond, throughput: summarize(perSecond), problems: [] };
}

export function cellOf(id: string, ...entries: Entry[]): Cell {
  return {
    id,
    workload: "smallbank",
    title: `title of ${id}`,
    scale: "",
    source: "",
    mix: [],
    durability: "none",
    processes: 2,
    load: { kind: "closed" },
    rounds: 3,
    roundMs: 100,
    entries,
    notes: [],
  };
}
