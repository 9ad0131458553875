// What a figure was measured on: without it, a ratio from another day cannot be judged.
import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os";

export function describeMachine(): string[] {
  const model = cpus()[0]?.model.trim() ?? "unknown CPU";
  const memory = Math.round(totalmem() / 2 ** 30);
  const load = loadavg()[0].toFixed(2);
  return [
    `${model}, ${availableParallelism()} cores, ${memory} GiB, ${process.arch}`,
    `${type()} ${release()}, Node ${process.version}, load before the start ${load}`,
  ];
}
