// What does it cost others that somebody follows a table? Transfers in one process, in a store that nobody has ever
// watched and in one that another process follows; a round of each in turn. The watcher has caught up
// before the next round begins, so that each round pays for its own changes.
import { tmpdir } from "node:os";
import type { BankTask, Order, Outcome } from "../durable/bank-process.ts";
import { timesMore } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { perSecond } from "../harness/timed-run.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "../trust/measure.ts";
import type { Followed, WatchOrder } from "./watch-process.ts";

const rows = 10_000;

type BankProcess = MeasuringProcess<Order, Outcome>;

export const watch: TrustMeasure = { name: "watch", run };

async function run({ options, progress, memoryFolder }: TrustContext): Promise<TrustResult> {
  const rounds = options.quick ? 2 : 8;
  const ms = options.quick ? 500 : 2_000;
  const plain = task(memoryFolder, options.seed);
  const watched = task(memoryFolder, options.seed);
  const alone = await startBank(plain);
  const beside = await startBank(watched);
  await alone.ask({ kind: "load" });
  await beside.ask({ kind: "load" });
  const watcher = await MeasuringProcess.start<WatchOrder, Followed>(
    new URL("./watch-process.js", import.meta.url),
    watched,
  );
  const without: number[] = [];
  const withWatch: number[] = [];
  let transfers = 0;
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    progress.show(`watch: round ${round} of ${rounds}`);
    const bare = await alone.ask({ kind: "transfer", ms });
    const followed = await beside.ask({ kind: "transfer", ms });
    transfers += followed.run.operations;
    await watcher.ask({ kind: "catch up", changes: 2 * transfers });
    if (round === 0) continue;
    without.push(perSecond(bare.run));
    withWatch.push(perSecond(followed.run));
  }
  const { changes, lagMs } = await watcher.ask({ kind: "catch up", changes: 2 * transfers });
  await Promise.all([alone.stop(), beside.stop()]);
  await watcher.stop();
  return {
    figures: [
      timesMore(
        "transfers with a watch open in another process, against without",
        { atLeast: 0.9 },
        { name: "with a watch", values: withWatch },
        { name: "without", values: without },
      ),
    ],
    notes: [
      `watch: ${changes} changes of ${transfers} transfers were told, each with its row; the watcher was up to ` +
        `${Math.round(lagMs)} ms behind the log. It decodes every row, so beside a process that does nothing ` +
        "but transfers it falls behind, and catches up between the rounds",
    ],
  };
}

function task(memoryFolder: string, seed: number): BankTask {
  const path = temporaryFolder(tmpdir());
  const memoryDir = temporaryFolder(memoryFolder);
  return { path, memoryDir, durability: "lazy", noCheckpoints: true, first: 0, rows, seed };
}

function startBank(given: BankTask): Promise<BankProcess> {
  return MeasuringProcess.start(new URL("../durable/bank-process.js", import.meta.url), given);
}
