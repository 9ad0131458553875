// The order transaction (orders.ts) against SQLite in `lazy`, one process each, and against the better of lmdb
// and SQLite in `none`, two processes each. The engines take turns in each round.
import { diskFolder } from "../durable/disk.ts";
import { type Bar, compared, type Figure, missingFigure } from "../harness/figures.ts";
import { loadPeer } from "../harness/peers.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { ratiosPerRound, summarize } from "../harness/statistics.ts";
import { perSecond, type TimedRun } from "../harness/timed-run.ts";
import type { TrustContext, TrustMeasure } from "../trust/measure.ts";
import type { EngineName, OrderAnswer, OrderOrder, OrderTask } from "./order-process.ts";
import type { Durability } from "./orders.ts";

type OrderProcess = MeasuringProcess<OrderOrder, OrderAnswer>;

const packages = { sqlite: "better-sqlite3", lmdb: "lmdb" } as const;
type PeerName = keyof typeof packages;
const script = new URL("./order-process.js", import.meta.url);

/** Orders a second of one engine, one entry per round. */
interface Contestant {
  readonly engine: EngineName;
  readonly processes: OrderProcess[];
  readonly rates: number[];
}

async function startContestant(
  { options, memoryFolder }: TrustContext,
  engine: EngineName,
  durability: Durability,
  processes: number,
): Promise<Contestant> {
  const place = {
    folder: temporaryFolder(durability === "lazy" ? diskFolder() : memoryFolder),
    memoryFolder: temporaryFolder(memoryFolder),
    durability,
    isShared: processes > 1,
  };
  const started: OrderProcess[] = [];
  for (let number = 0; number < processes; number++) {
    const orders = options.quick ? 2_000 : 50_000;
    const task: OrderTask = {
      ...place,
      ...{ engine, number, seed: options.seed, orders, isFirst: number === 0 },
    };
    started.push(await MeasuringProcess.start(script, task));
  }
  return { engine, processes: started, rates: [] };
}

async function runRound({ processes }: Contestant, ms: number): Promise<number> {
  const runs = await Promise.all(processes.map((each) => each.ask({ order: "run", ms })));
  return perSecond(...(runs as TimedRun[]));
}

async function finish({ engine, processes }: Contestant): Promise<void> {
  const { orders, counted } = (await processes[0].ask({ order: "count" })) as {
    orders: number;
    counted: number;
  };
  if (orders !== counted) throw new Error(`${engine} has ${orders} orders, and counted ${counted}`);
  for (const each of processes) await each.stop();
}

async function contest(
  context: TrustContext,
  engines: readonly EngineName[],
  durability: Durability,
  processes: number,
): Promise<Contestant[]> {
  const { options, progress } = context;
  const contestants: Contestant[] = [];
  for (const engine of engines) {
    progress.show(`order transaction, ${durability}: loading ${engine}`);
    contestants.push(await startContestant(context, engine, durability, processes));
  }
  for (const each of contestants) await runRound(each, options.roundMs);
  for (let round = 0; round < options.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const each = contestants[(turn + round) % contestants.length];
      progress.show(`order transaction, ${durability}, round ${round + 1}: ${each.engine}`);
      each.rates.push(await runRound(each, options.roundMs));
    }
  }
  for (const each of contestants) await finish(each);
  return contestants;
}

/** Situ against the best of the others. */
function figureOf(name: string, bar: Bar, contestants: readonly Contestant[]): Figure {
  const [situ, ...others] = contestants;
  const median = ({ rates }: Contestant): number => summarize(rates).median;
  const best = others.reduce((a, b) => (median(a) >= median(b) ? a : b));
  const measured = ({ engine, rates }: Contestant) => ({ name: engine, values: rates });
  const ratios = ratiosPerRound(situ.rates, best.rates);
  return compared(name, bar, ratios, measured(situ), measured(best), "per second");
}

function noteOf(title: string, contestants: readonly Contestant[]): string {
  const rates = contestants.map(
    ({ engine, rates }) => `${engine} ${(summarize(rates).median / 1_000).toFixed(1)} k/s`,
  );
  return `order transaction, ${title}: ${rates.join(", ")}`;
}

async function figureAgainst(
  context: TrustContext,
  title: string,
  bar: Bar,
  peers: readonly PeerName[],
  durability: Durability,
  processes: number,
): Promise<{ figure: Figure; note: string }> {
  const name = `order transaction, ${title}`;
  for (const peer of peers) {
    const loaded = loadPeer(packages[peer]);
    if (!loaded.available) {
      return { figure: missingFigure(name, bar, loaded.missing), note: loaded.missing };
    }
  }
  const contestants = await contest(context, ["situ", ...peers], durability, processes);
  return { figure: figureOf(name, bar, contestants), note: noteOf(title, contestants) };
}

export const orderTransaction: TrustMeasure = {
  name: "order-transaction",
  async run(context) {
    const lazy = await figureAgainst(
      context,
      "lazy, against SQLite (WAL, NORMAL)",
      { atLeast: 5 },
      ["sqlite"],
      "lazy",
      1,
    );
    const none = await figureAgainst(
      context,
      "none, two processes, against the best of lmdb and SQLite",
      { atLeast: 8 },
      ["lmdb", "sqlite"],
      "none",
      2,
    );
    return { figures: [lazy.figure, none.figure], notes: [lazy.note, none.note] };
  },
};
