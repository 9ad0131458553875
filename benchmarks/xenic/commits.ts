// What commits cost on three real nodes: messages between nodes, by their kinds, and how often hosts were called. Everything is counted,
// so the machine does not matter; a commit for which something was asked again, since the machine was busy, is repeated.
//
// Each node has a copy of every row. `a`, `b` and `c` are rows whose primaries are nodes 0, 1 and 2, and node 0 coordinates what is
// called. What the paper has (§4.2) is said for the same nodes: a message of a node to itself is none, and backups that are the
// coordinator need none. What comes on top is the LOG to a primary whose backup coordinates (decision 0130).
import { open, type RemoteDatabase } from "situ";
import type { XenicNode, XenicNodeStats } from "../../src/node/xenic/xenic-node.ts";
import { fixedPlacement } from "../../src/protocols/xenic/fixed-placement.ts";
import { Cell } from "./procedures.ts";

type Row = "a" | "b" | "c" | "b2";

interface Kind {
  readonly how: "atNic" | "inShots" | "atHost" | "client";
  readonly reads: readonly Row[];
  readonly writes: readonly Row[];
  /** As the paper has it, on these nodes. */
  readonly paper: number;
}

export const KINDS = {
  "own shard": { how: "atNic", reads: [], writes: ["a"], paper: 4 },
  "one remote shard": { how: "atNic", reads: [], writes: ["b"], paper: 6 },
  "own and one remote shard": { how: "atNic", reads: [], writes: ["a", "b"], paper: 9 },
  "two remote shards": { how: "atNic", reads: [], writes: ["b", "c"], paper: 12 },
  "two remote shards, one only read": { how: "atNic", reads: ["c"], writes: ["b"], paper: 10 },
  "two shots": { how: "inShots", reads: ["b"], writes: ["c"], paper: 10 },
  "read at one remote shard": { how: "atNic", reads: ["b", "b2"], writes: [], paper: 2 },
  "read at two remote shards": { how: "atNic", reads: ["b", "c"], writes: [], paper: 8 },
  "at the host, own and one remote shard": {
    how: "atHost",
    reads: [],
    writes: ["a", "b"],
    paper: 10,
  },
  "by a client, two shards, one only read": {
    how: "client",
    reads: ["c"],
    writes: ["b"],
    paper: 6,
  },
} as const satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;

export interface CountedCommit {
  /** By their names, without those that only tell which transactions are over. */
  readonly messages: Readonly<Record<string, number>>;
  /** Those. */
  readonly told: number;
  /** Calls of the host and requests that crossed to or from it, by node. */
  readonly hostCalls: readonly number[];
  readonly crossings: readonly number[];
  /** Records that the host of each node has applied. */
  readonly applied: readonly number[];
}

const TELLING = ["low", "length of the log"];
const ATTEMPTS = 50;
const LOOK_MS = 10;

export async function countCommits(
  nodes: readonly XenicNode[],
  connect: readonly string[],
): Promise<ReadonlyMap<KindName, CountedCommit>> {
  const db = await open({ connect, tables: [Cell], timeoutMs: 60_000 });
  try {
    const rows = rowsOf(nodes.length);
    for (const id of Object.values(rows)) await db.put(Cell, { id, value: 1 });
    const counted = new Map<KindName, CountedCommit>();
    for (const name of Object.keys(KINDS) as KindName[]) {
      // A host opens the tables of a procedure the first time.
      await runKind(db, KINDS[name], rows);
      counted.set(name, await countOne(nodes, () => runKind(db, KINDS[name], rows)));
    }
    return counted;
  } finally {
    await db.close();
  }
}

function rowsOf(nodes: number): Readonly<Record<Row, number>> {
  const { primaryOf, shardOf } = fixedPlacement([...Array(nodes).keys()], nodes - 1, 1);
  const found: number[][] = Array.from({ length: nodes }, () => []);
  for (let key = 0; found.some(({ length }) => length < 2); key++) {
    found[primaryOf(shardOf(0, key))].push(key);
  }
  return { a: found[0][0], b: found[1][0], c: found[2][0], b2: found[1][1] };
}

async function runKind(
  db: RemoteDatabase,
  { how, reads, writes }: Kind,
  rows: Readonly<Record<Row, number>>,
): Promise<void> {
  const [read, written] = [reads, writes].map((names) => names.map((name) => rows[name]));
  if (how !== "client") {
    await db.call(how, [read, written], { near: [Cell, rows.a] });
    return;
  }
  await db.transact(async (tx) => {
    await tx.getMany(Cell, [...read, ...written]);
    for (const id of written) void tx.put(Cell, { id, value: 1 });
  });
}

async function countOne(
  nodes: readonly XenicNode[],
  run: () => Promise<void>,
): Promise<CountedCommit> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const before = await atRest(nodes);
    await run();
    const after = await atRest(nodes);
    if (after.every(({ repeated }, i) => repeated === before[i].repeated)) {
      return difference(before, after);
    }
  }
  throw new Error("questions are asked again all the time: the machine is too busy to count");
}

/** Nothing is under way, everything is applied, and the hosts sleep. */
async function atRest(nodes: readonly XenicNode[]): Promise<XenicNodeStats[]> {
  for (;;) {
    const stats = await Promise.all(nodes.map((node) => node.stats()));
    const isResting = ({ open: count, commitRecords, logRecords, isHostAsleep }: XenicNodeStats) =>
      count + commitRecords + logRecords === 0 && isHostAsleep;
    if (stats.every(isResting)) return stats;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

function difference(
  before: readonly XenicNodeStats[],
  after: readonly XenicNodeStats[],
): CountedCommit {
  const messages: Record<string, number> = {};
  let told = 0;
  for (const [i, { sent }] of after.entries()) {
    for (const [kind, count] of Object.entries(sent)) {
      const more = count - (before[i].sent[kind] ?? 0);
      if (TELLING.includes(kind)) told += more;
      else if (more > 0) messages[kind] = (messages[kind] ?? 0) + more;
    }
  }
  const each = (of: (stats: XenicNodeStats) => number): number[] =>
    after.map((stats, i) => of(stats) - of(before[i]));
  return {
    messages,
    told,
    hostCalls: each(({ hostCalls }) => hostCalls),
    crossings: each(({ crossings }) => crossings),
    applied: each(({ applied }) => applied),
  };
}

export function tellCommits(counted: ReadonlyMap<KindName, CountedCommit>): string[] {
  const sum = (values: Iterable<number>): number =>
    [...values].reduce((all, each) => all + each, 0);
  return [
    "A commit on three nodes with three copies, counted: messages between nodes; calls of hosts to their logs, which sleep before; requests that cross to or from a host",
    "",
    "| commit | messages | the paper's | which | told later | host calls | crossings |",
    "|---|---|---|---|---|---|---|",
    ...[...counted].map(([name, { messages, told, hostCalls, crossings }]) => {
      const which = Object.entries(messages).map(([kind, count]) => `${count} ${kind}`);
      const cells = [
        name,
        sum(Object.values(messages)),
        KINDS[name].paper,
        which.join(", "),
        told,
        hostCalls.join(" + "),
        sum(crossings),
      ];
      return `| ${cells.join(" | ")} |`;
    }),
  ];
}
