// `npm run bench -- nam loopback`: O(4,2), a transaction that reads four rows and writes two of them, by NAM-DB's protocol and by the
// protocol "rpc", on three server processes each and two copies of each row, all on loopback. One client, in this process, drives
// both in turns. What the servers count tells the messages of a transaction; what the kernel counts on loopback, its bytes.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as situ from "situ";
import type { BenchOptions } from "../harness/bench-options.ts";
import { freePorts } from "../harness/free-ports.ts";
import { describeMachine } from "../harness/machine.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { summarize } from "../harness/statistics.ts";
import type { ServerCounts } from "./loopback-server.ts";

const PROTOCOLS = ["nam", "rpc"] as const;
type Protocol = (typeof PROTOCOLS)[number];

const SERVERS = 3;
const COPIES = 2;
const IN_FLIGHT = 16;
const READ_ROWS = 4;
const ROWS_PER_LOAD = 100;
const START_BALANCE = 1_000n;
const MEMORY_BYTES = 256 * 2 ** 20;
const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

const { f64, i64, table, u32 } = situ;
const Account = table("account", { id: u32(), balance: i64(), rate: f64() }, { key: "id" });

interface Contestant {
  readonly protocol: Protocol;
  readonly servers: readonly ChildProcess[];
  readonly db: Awaited<ReturnType<typeof connect>>;
  readonly turns: Turn[];
}

interface Turn {
  readonly perSecond: number;
  readonly medianUs: number;
  readonly messages: number;
  readonly bytes: number;
  readonly writes: number;
  readonly retries: number;
}

function connect(connectTo: readonly string[], cluster: string, rows: number) {
  const extents = { account: { rows } };
  return situ.open({ connect: connectTo, cluster, tables: [Account], extents });
}

async function startContestant(protocol: Protocol, rows: number): Promise<Contestant> {
  const ports = await freePorts(SERVERS);
  const name = `bench-${protocol}-${process.pid}`;
  const nodes = ports.map((port, id) => ({ id, host: "127.0.0.1", port }));
  const cluster =
    protocol === "nam" ? { cluster: name, nodes } : { cluster: name, nodes, backups: COPIES - 1 };
  const script = fileURLToPath(new URL("./loopback-server.js", import.meta.url));
  const env = { ...process.env, SITU_MEMORY_DIR: temporaryFolder(memoryFolder) };
  const servers = ports.map((_, id) => {
    const own =
      protocol === "nam"
        ? { copies: COPIES }
        : { path: join(temporaryFolder(tmpdir()), "store"), durability: "none" };
    const file = { id, cluster, protocol, memoryBytes: MEMORY_BYTES, ...own };
    return fork(script, [JSON.stringify(file)], { env });
  });
  await Promise.all(servers.map((server) => once(server, "message")));
  const db = await connect(
    ports.map((port) => `127.0.0.1:${port}`),
    name,
    rows,
  );
  for (let first = 0; first < rows; first += ROWS_PER_LOAD) {
    await db.transact(
      (tx) => {
        const end = Math.min(first + ROWS_PER_LOAD, rows);
        for (let id = first; id < end; id++) {
          void tx.put(Account, { id, balance: START_BALANCE, rate: 0.5 });
        }
      },
      { isolation: "snapshot" },
    );
  }
  return { protocol, servers, db, turns: [] };
}

/** What rpc promises is more; with nam it has to be asked for what there is. */
function optionsOf(protocol: Protocol): situ.TransactOptions {
  return protocol === "nam" ? { isolation: "snapshot" } : {};
}

async function countsOf({ servers }: Contestant): Promise<ServerCounts> {
  const all = await Promise.all(
    servers.map(async (server) => {
      server.send("counts");
      const [counts] = (await once(server, "message")) as [ServerCounts];
      return counts;
    }),
  );
  return {
    served: all.reduce((sum, { served }) => sum + served, 0),
    writes: all.reduce((sum, { writes }) => sum + writes, 0),
  };
}

/** All that was sent over loopback, with the headers of TCP and its acknowledgements; NaN where the kernel does not say. */
function loopbackBytes(): number {
  try {
    const line = readFileSync("/proc/net/dev", "utf8").match(/^\s*lo:\s*(\d+)/m);
    return Number(line?.[1]);
  } catch {
    return Number.NaN;
  }
}

async function run(contestant: Contestant, rows: number, seed: number, ms: number): Promise<Turn> {
  const { db, protocol } = contestant;
  const options = optionsOf(protocol);
  const times: number[] = [];
  let attempts = 0;
  let random = seed;
  const nextRow = (): number => {
    random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((random / 2 ** 32) * rows);
  };
  const counted = await countsOf(contestant);
  const bytes = loopbackBytes();
  const startMs = performance.now();
  const work = async (): Promise<void> => {
    while (performance.now() < startMs + ms) {
      const ids = new Set<number>();
      while (ids.size < READ_ROWS) ids.add(nextRow());
      const beginMs = performance.now();
      await db.transact(async (tx) => {
        attempts++;
        const [giver, taker] = await tx.getMany(Account, ids);
        if (giver === undefined || taker === undefined) throw new Error("a row is lost");
        void tx.put(Account, { ...giver, balance: giver.balance - 1n });
        void tx.put(Account, { ...taker, balance: taker.balance + 1n });
      }, options);
      times.push(1e3 * (performance.now() - beginMs));
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, work));
  const seconds = (performance.now() - startMs) / 1e3;
  const sent = loopbackBytes() - bytes;
  const after = await countsOf(contestant);
  return {
    perSecond: times.length / seconds,
    medianUs: summarize(times).median,
    messages: (after.served - counted.served) / times.length,
    bytes: sent / times.length,
    writes: (after.writes - counted.writes) / times.length,
    retries: (1e3 * (attempts - times.length)) / times.length,
  };
}

/** No money is lost. */
async function check({ db, protocol }: Contestant, rows: number): Promise<void> {
  let sum = 0n;
  for (let first = 0; first < rows; first += ROWS_PER_LOAD) {
    const ids = Array.from({ length: Math.min(ROWS_PER_LOAD, rows - first) }, (_, i) => first + i);
    for (const row of await db.getMany(Account, ids)) sum += row?.balance ?? 0n;
  }
  if (sum !== START_BALANCE * BigInt(rows)) throw new Error(`${protocol} has lost money`);
}

async function close({ db, servers }: Contestant): Promise<void> {
  await db.close();
  await Promise.all(
    servers.map(async (server) => {
      server.send("end");
      await once(server, "exit");
    }),
  );
}

export async function tellLoopback({ quick, rounds, seed }: BenchOptions): Promise<string[]> {
  const rows = quick ? 2_000 : 20_000;
  const turnMs = quick ? 500 : 2_000;
  const contestants: Contestant[] = [];
  try {
    for (const protocol of PROTOCOLS) contestants.push(await startContestant(protocol, rows));
    for (const each of contestants) await run(each, rows, seed, turnMs / 2);
    for (let round = 1; round <= rounds; round++) {
      for (const each of contestants) {
        each.turns.push(await run(each, rows, seed + round, turnMs));
      }
    }
    for (const each of contestants) await check(each, rows);
  } finally {
    for (const each of contestants) await close(each);
  }
  const [nam, rpc] = contestants;
  const ratios = nam.turns.map(({ perSecond }, i) => perSecond / rpc.turns[i].perSecond);
  const cells = (name: keyof Turn, digits: number): string =>
    contestants
      .map(({ turns }) =>
        shown(
          turns.map((turn) => turn[name]),
          digits,
        ),
      )
      .join(" | ");
  return [
    "Situ benchmark: nam loopback",
    ...describeMachine().map((line) => `  ${line}`),
    `  O(4,2): reads ${READ_ROWS} rows of ${rows} and writes 2 of them; ${SERVERS} servers, ${COPIES} copies, ${IN_FLIGHT} in flight; ` +
      `${rounds} rounds, interleaved, turns of ${turnMs} ms; medians, and min .. max`,
    "  nam: snapshot isolation; rpc: strict serializability",
    "",
    `| | ${PROTOCOLS.join(" | ")} |`,
    "|---|---|---|",
    `| transactions a second | ${cells("perSecond", 0)} |`,
    `| µs for each, median | ${cells("medianUs", 0)} |`,
    `| messages that servers serve, for each | ${cells("messages", 1)} |`,
    `| writes to sockets by servers, for each | ${cells("writes", 1)} |`,
    `| bytes on loopback, for each (with TCP's headers) | ${cells("bytes", 0)} |`,
    `| attempts that were run again, of 1000 | ${cells("retries", 1)} |`,
    "",
    `nam, in transactions a second, against rpc: ${shown(ratios, 2)}`,
  ];
}

function shown(values: readonly number[], digits: number): string {
  const { median, min, max } = summarize(values);
  return `${median.toFixed(digits)} (${min.toFixed(digits)} .. ${max.toFixed(digits)})`;
}
