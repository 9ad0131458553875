// From what the workers of an engine counted in all rounds to the figures of the report.
import type { EngineName } from "../engines/engine.ts";
import { summarize } from "../harness/statistics.ts";
import type { Entry } from "../report/result.ts";
import { Latencies } from "./latencies.ts";
import type { RunAnswer } from "./worker-process.ts";

/** `rounds`: the answers of all processes, round by round. */
export function entryOf(
  engine: EngineName,
  settings: string,
  rounds: readonly (readonly RunAnswer[])[],
  problems: readonly string[],
): Entry {
  const all = rounds.flat();
  const sum = (count: (answer: RunAnswer) => number): number =>
    all.reduce((total, answer) => total + count(answer), 0);
  const transactions = Math.max(
    1,
    sum((answer) => answer.transactions),
  );
  const dropped = sum((answer) => answer.dropped);
  const perSecond = rounds.map((answers) =>
    answers.reduce((rate, run) => rate + (run.transactions * 1_000) / run.elapsedMs, 0),
  );
  const [first, ...others] = all.map(({ latencies }) => Latencies.decode(latencies));
  for (const other of others) first.add(other);
  const latency = first.summary();
  return {
    engine,
    settings,
    perSecond,
    throughput: summarize(perSecond),
    ...(latency === undefined ? {} : { latency }),
    retriesPerTransaction: sum((answer) => answer.retries) / transactions,
    refusedPart: sum((answer) => answer.refused) / transactions,
    droppedPart: dropped / (transactions + dropped),
    problems,
  };
}
