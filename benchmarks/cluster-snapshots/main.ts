// `npm run bench -- cluster-snapshots`: what a snapshot of three nodes on loopback takes, against a round trip, and what
// transfers lose beside a client that scans snapshots of the cluster all the time.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ProtocolName } from "../../src/protocols/places.ts";
import {
  Account,
  type Cluster,
  keyOfEachPrimary,
  pairsOnTwoPrimaries,
  startCluster,
} from "../fabric/cluster.ts";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { describeMachine } from "../harness/machine.ts";
import { keyMask } from "../harness/random.ts";
import { releaseAll } from "../harness/resources.ts";
import { summarize } from "../harness/statistics.ts";
import type { ToScanner } from "./scanner-process.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
const inFlight = 16;
const samples = 400;
const warmUpMs = 1_000;
/** Beside nobody, beside a process that reads its own memory, beside one that scans snapshots. */
const BESIDE = ["rest", "memory", "snapshots"] as const;

interface Turn {
  readonly perSecond: number;
  /** Attempts that did not commit, of a thousand that did. */
  readonly aborts: number;
  /** Those of transfers whose rows no other transfer had at that time: a snapshot is left as the cause. */
  readonly unexplained: number;
}

/** A transfer that is under way. */
interface Transfer {
  /** Whether another one had one of its rows meanwhile, or just before. */
  isShared: boolean;
}

/** After so many others have begun, nothing of a transfer that has ended is left at the nodes. */
const SETTLED_AFTER = 64;

/** Tells transfers that can be in each other's way from others. */
class RowUse {
  readonly #active = new Map<number, Set<Transfer>>();
  readonly #endedAt = new Map<number, number>();
  #begun = 0;

  begin(rows: readonly number[]): Transfer {
    const transfer = { isShared: false };
    this.#begun++;
    for (const row of rows) {
      const others = this.#active.get(row) ?? new Set();
      this.#active.set(row, others);
      for (const other of others) other.isShared = true;
      const endedAt = this.#endedAt.get(row) ?? Number.NEGATIVE_INFINITY;
      if (others.size > 0 || this.#begun - endedAt <= SETTLED_AFTER) transfer.isShared = true;
      others.add(transfer);
    }
    return transfer;
  }

  end(transfer: Transfer, rows: readonly number[]): void {
    for (const row of rows) {
      this.#active.get(row)?.delete(transfer);
      this.#endedAt.set(row, this.#begun);
    }
  }
}

const rowUse = new RowUse();

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, seed, rounds } = options;
  const rows = quick ? 5_000 : 20_000;
  const turnMs = quick ? 1_000 : 2_000;
  const lines = [
    "Situ benchmark: cluster-snapshots",
    ...describeMachine().map((line) => `  ${line}`),
  ];
  lines.push(
    `  3 nodes, 2 backups, durability "none"; ${rows} rows; transfers of 2 rows of different primaries, ${inFlight} in ` +
      `flight; ${rounds} rounds, interleaved, turns of ${turnMs} ms; medians, and min .. max`,
  );
  for (const protocol of ["rpc", "one-sided"] as const) {
    lines.push("", ...(await measure(protocol, rows, turnMs, rounds, seed)));
  }
  console.log(lines.join("\n"));
}

async function measure(
  protocol: ProtocolName,
  rows: number,
  turnMs: number,
  rounds: number,
  seed: number,
): Promise<string[]> {
  const cluster = await startCluster(protocol, rows, memoryFolder);
  const taken = await timesOf(cluster);
  const pairs = pairsOnTwoPrimaries(cluster.configuration, rows, seed);
  const scanner = await startScanner(cluster);
  const turns = new Map<ToScanner, Turn[]>(BESIDE.map((beside) => [beside, []]));
  let passes = 0;
  await transfers(cluster, pairs, warmUpMs);
  for (let round = 0; round < rounds; round++) {
    for (const beside of BESIDE) {
      scanner.send(beside);
      if (beside === "rest") await once(scanner, "message");
      await transfers(cluster, pairs, turnMs / 4);
      turns.get(beside)?.push(await transfers(cluster, pairs, turnMs));
      scanner.send("rest");
      const [told] = (await once(scanner, "message")) as [{ passes: number }];
      if (beside === "snapshots") passes += told.passes;
    }
  }
  scanner.send("end");
  await once(scanner, "exit");
  await cluster.close();
  const of = (beside: ToScanner): readonly Turn[] => turns.get(beside) ?? [];
  const ratio = (over: ToScanner, under: ToScanner): string =>
    shown(of(over).map(({ perSecond }, i) => perSecond / of(under)[i].perSecond));
  const aborts = (beside: ToScanner): string => shown(of(beside).map((turn) => turn.aborts));
  const unexplained = (beside: ToScanner): number =>
    of(beside).reduce((sum, turn) => sum + turn.unexplained, 0);
  return [
    protocol,
    `  a round trip to all 3 nodes (3 gets at once)      ${shown(taken.roundTrip)} µs`,
    `  to take a snapshot of 3 nodes                     ${shown(taken.snapshot)} µs`,
    `  that is, in round trips                           ${shown(taken.ratios)}      bar: at most 3`,
    `  transfers a second, beside nobody                 ${shown(of("rest").map((turn) => turn.perSecond))}`,
    `  beside a client that scans snapshots (${passes} scans)  ${ratio("snapshots", "rest")} of that   bar: 0.8`,
    `  beside a process that reads its own memory        ${ratio("memory", "rest")} of that`,
    `  aborts per 1000 commits, beside nobody            ${aborts("rest")}`,
    `  aborts per 1000 commits, beside snapshots         ${aborts("snapshots")}`,
    `  aborts in all that no other transfer explains     ${unexplained("rest")} beside nobody, ${unexplained("snapshots")} beside snapshots`,
  ];
}

/** Without load, in microseconds. */
async function timesOf({ db, configuration }: Cluster): Promise<{
  readonly roundTrip: number[];
  readonly snapshot: number[];
  readonly ratios: number[];
}> {
  const keys = keyOfEachPrimary(configuration);
  const roundTrip: number[] = [];
  const snapshot: number[] = [];
  for (let i = -50; i < samples; i++) {
    const first = performance.now();
    await Promise.all(keys.map((key) => db.get(Account, key)));
    const second = performance.now();
    const taken = await db.snapshot();
    const third = performance.now();
    await taken.close();
    if (i < 0) continue;
    roundTrip.push(1e3 * (second - first));
    snapshot.push(1e3 * (third - second));
  }
  const each = summarize(roundTrip).median;
  return { roundTrip, snapshot, ratios: snapshot.map((time) => time / each) };
}

async function transfers({ db }: Cluster, pairs: Int32Array, ms: number): Promise<Turn> {
  const endMs = performance.now() + ms;
  let commits = 0;
  let attempts = 0;
  let unexplained = 0;
  let cursor = 0;
  const work = async (): Promise<void> => {
    while (performance.now() < endMs) {
      cursor = (cursor + 2) & keyMask;
      const [from, to] = [pairs[cursor], pairs[cursor + 1]];
      const use = rowUse.begin([from, to]);
      let tries = 0;
      await db.transact(async (tx) => {
        tries++;
        const [giver, taker] = await tx.getMany(Account, [from, to]);
        if (giver === undefined || taker === undefined) throw new Error("situ lost a row");
        void tx.put(Account, { ...giver, balance: giver.balance - 1n });
        void tx.put(Account, { ...taker, balance: taker.balance + 1n });
      });
      rowUse.end(use, [from, to]);
      commits++;
      attempts += tries;
      if (!use.isShared) unexplained += tries - 1;
    }
  };
  const startMs = performance.now();
  await Promise.all(Array.from({ length: inFlight }, work));
  const seconds = (performance.now() - startMs) / 1e3;
  return {
    perSecond: commits / seconds,
    aborts: (1e3 * (attempts - commits)) / commits,
    unexplained,
  };
}

async function startScanner({ configuration }: Cluster): Promise<ChildProcess> {
  const connect = configuration.nodes.map(({ host, port }) => `${host}:${port}`).join(",");
  const file = fileURLToPath(new URL("./scanner-process.js", import.meta.url));
  const scanner = fork(file, [connect, configuration.cluster]);
  await once(scanner, "message");
  return scanner;
}

function shown(values: readonly number[]): string {
  const { median, min, max } = summarize(values);
  const digits = median < 10 ? 2 : 0;
  return `${median.toFixed(digits)} (${min.toFixed(digits)} .. ${max.toFixed(digits)})`;
}

try {
  await main();
} finally {
  // Also after a failure: the nodes and their folders in /dev/shm must not stay.
  releaseAll();
}
