// `npm run bench -- hot-row`: increments of one row of a cluster, three nodes on loopback and four clients,
// by a procedure whose calls are combined and by one whose calls are not. Beside them the same on
// rows of their own, which nobody else wants.

import { makeRow } from "../fabric/accounts.ts";
import { Account, type Bank, connect, nodeCount, startCluster } from "../fabric/cluster.ts";
import { parseBenchArguments } from "../harness/bench-options.ts";
import { measured, timesFaster } from "../harness/figures.ts";
import { type InFlightContestant, measureInFlight } from "../harness/in-flight.ts";
import { describeMachine } from "../harness/machine.ts";
import { createProgress } from "../harness/progress.ts";
import { renderText } from "../harness/report.ts";
import { releaseAll } from "../harness/resources.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";
const clientCount = 4;
const inFlight = 64;
const rows = 1_000;
const hotRow = 0;
const warmUpMs = 2_000;
/** Calls that are not combined may wait for long. */
const timeoutMs = 60_000;
const bar = { atLeast: 4 };
const names = {
  combined: "one row, calls combined",
  apart: "one row, each a transaction",
  spread: "rows of their own",
} as const;

async function main(): Promise<void> {
  const { options } = parseBenchArguments(process.argv.slice(2));
  const { quick, json, rounds } = options;
  const progress = createProgress();
  progress.show("starting and loading a cluster");
  const cluster = await startCluster("rpc", rows, memoryFolder);
  const others = Array.from({ length: clientCount - 1 }, () => connect(cluster.configuration));
  const clients = [cluster.db, ...(await Promise.all(others))];
  const added = new Map<number, number>();
  const increments = (
    name: string,
    call: (db: Bank, id: number) => Promise<unknown>,
    rowOf: (turn: number) => number,
  ): InFlightContestant => {
    let turn = 0;
    return {
      name,
      async one() {
        turn++;
        const id = rowOf(turn);
        await call(clients[turn % clientCount], id);
        added.set(id, (added.get(id) ?? 0) + 1);
      },
    };
  };
  const hot = (): number => hotRow;
  const combined = (db: Bank, id: number): Promise<unknown> =>
    db.call("increment", [id], { near: [Account, id], timeoutMs });
  const apart = (db: Bank, id: number): Promise<unknown> =>
    db.call("incrementApart", [id], { near: [Account, id], timeoutMs });
  const contestants = [
    increments(names.combined, combined, hot),
    increments(names.apart, apart, hot),
    increments(names.spread, combined, (turn) => 1 + (turn % (rows - 1))),
  ];
  const plan = { inFlight, warmUpMs, rounds, roundMs: quick ? 1_500 : 3_000 };
  const timings = await measureInFlight(contestants, plan, progress);
  progress.show("checking that every increment counts once");
  for (const [id, count] of added) {
    const before = makeRow(id).balance;
    const { balance } = (await cluster.db.get(Account, id))!;
    if (balance !== before + BigInt(count)) {
      throw new Error(`row ${id} has ${balance - before} increments of ${count}`);
    }
    await cluster.db.put(Account, makeRow(id));
  }
  for (const client of clients.slice(1)) await client.close();
  await cluster.close();
  progress.clear();
  const figures = [
    timesFaster(
      "combined-vs-apart",
      bar,
      measured(timings, names.combined),
      measured(timings, names.apart),
    ),
  ];
  const conditions = [
    ...describeMachine(),
    `${nodeCount} nodes, three copies of each row, durability "none", protocol "rpc"; ${clientCount} ` +
      `clients in one process, ${inFlight} calls in flight`,
    `${rounds} rounds, interleaved, turns of ${plan.roundMs} ms; every increment was counted in the end`,
  ];
  console.log(renderText({ bench: "hot-row", conditions, timings, figures, notes: [] }));
  if (json) console.log(JSON.stringify({ bench: "hot-row", figures, reported: { timings } }));
}

try {
  await main();
} finally {
  releaseAll();
}
