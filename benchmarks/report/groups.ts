// How cells are put together on a page: by workload, and by number of processes.
import { workloadTitle } from "./format.ts";
import type { Cell } from "./result.ts";

export interface WorkloadGroup {
  readonly workload: string;
  readonly title: string;
  /** Cells of a workload may differ in scale: all that there are. */
  readonly sources: readonly string[];
  readonly scales: readonly string[];
  readonly mix: Cell["mix"];
  readonly cells: readonly Cell[];
}

/** In the order of the run. */
export function byWorkload(cells: readonly Cell[]): WorkloadGroup[] {
  const workloads = different(cells.map(({ workload }) => workload));
  return workloads.map((workload) => {
    const own = cells.filter((cell) => cell.workload === workload);
    return {
      workload,
      title: workloadTitle(workload),
      sources: different(own.map(({ source }) => source)),
      scales: different(own.map(({ scale }) => scale)),
      mix: own[0].mix,
      cells: own,
    };
  });
}

/** Cells that differ in nothing but the number of processes, at least two, the fewest first. */
export interface ScalingGroup {
  readonly id: string;
  readonly title: string;
  readonly cells: readonly Cell[];
}

export function byProcesses(cells: readonly Cell[]): ScalingGroup[] {
  const groups = new Map<string, Cell[]>();
  for (const cell of cells) {
    // An open loop does what it is asked: more processes cannot show in it.
    if (cell.load.kind === "open") continue;
    const { workload, durability, scale, load } = cell;
    const key = JSON.stringify([workload, durability, scale, load.inFlight]);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [cell]);
    else if (!group.some(({ processes }) => processes === cell.processes)) group.push(cell);
  }
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map((group) => ({
      id: `scaling-${group[0].id}`,
      title: workloadTitle(group[0].workload),
      cells: [...group].sort((left, right) => left.processes - right.processes),
    }));
}

function different(values: readonly string[]): string[] {
  return [...new Set(values)];
}
