// npm run bench: the suite, one of its workloads, a comparison of two results, or one of the benches
// that look closer at one part. Brings in what Situ is compared with first. A peer that cannot be
// installed does not stop the run: the report names it as missing.
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { optionsUsage, parseBenchArguments } from "../dist/benchmarks/harness/bench-options.js";
import { parseSuiteArguments, suiteUsage } from "../dist/benchmarks/suite/suite-options.js";
import { installEtcd, installPackages, installPostgres, installRedis } from "./peers.mjs";

const closer = {
  memory: {
    about: "reads and transfers on one machine against lmdb, SQLite and Redis",
    needs: [installPackages, installRedis],
  },
  snapshots: {
    about: "what snapshots cost, and ordered tables against lmdb and SQLite",
    needs: [installPackages],
  },
  "cluster-snapshots": {
    about:
      "snapshots of a cluster on loopback: to take one, and transfers beside a client that scans",
    needs: [],
  },
  nam: {
    about:
      "NAM-DB simulated: Figures 4, 6 and 7 of the paper, verbs of a commit; `loopback`: O(4,2) on sockets against rpc",
    needs: [],
    takesNames: true,
  },
  durable: {
    about: "log, commits that wait for the disk and recovery, against PostgreSQL and bare syncs",
    needs: [installPostgres],
  },
  resp: {
    about: "Redis clients at the gateway, against redis-server with redis-benchmark",
    needs: [installRedis],
  },
  fabric: {
    about:
      "messages and a cluster on loopback against Redis and etcd, round trips, simulated FaSST",
    needs: [installPackages, installRedis, installEtcd],
  },
  "hot-row": {
    about:
      "four clients of a cluster increment one row, by calls that are combined and that are not",
    needs: [],
  },
  trust: {
    about:
      "memory that can be used, fairness, the event loop, idle cost; [measure…] for some of them",
    needs: [],
    takesNames: true,
  },
  failover: {
    about: "a cluster whose nodes die and join, and whose etcd stops; [measure…] for some of them",
    needs: [installEtcd],
    takesNames: true,
  },
  lasting: {
    about:
      "log bytes of indexes, orders against SQLite and lmdb, large transactions; [measure…] for some of them",
    needs: [installPackages],
    takesNames: true,
  },
  bulk: {
    about:
      "aggregates and updates of all rows against scans by hand, SQLite and PostgreSQL; [measure…] for some of them",
    needs: [installPackages, installPostgres],
    takesNames: true,
  },
  xenic: {
    about:
      "the paper Xenic: Table 2 counted again, Figures 8 and 9 simulated, nodes against RPC; [measure…] for some of them",
    needs: [],
    takesNames: true,
  },
  "graph-counts": {
    about:
      "memory of edges, reads per operation on a cluster; `graph` runs it after its workloads; [measure…] for some of them",
    needs: [],
    takesNames: true,
  },
  device: {
    about:
      "tables on the device, scanned and updated by its threads, against PostgreSQL; [measure…] for some of them",
    needs: [installPostgres],
    takesNames: true,
  },
};

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const args = process.argv.slice(2);

function usage(problem) {
  console.error(
    `${problem}\n\n${suiteUsage}\n\nnpm run bench -- <part> [options]   a closer look:`,
  );
  for (const [name, { about }] of Object.entries(closer)) {
    console.error(`  ${name.padEnd(12)} ${about}`);
  }
  console.error(`\n${optionsUsage}`);
  process.exit(problem.startsWith("Measures") ? 0 : 2);
}

/** What to run and what it needs. Throws if the arguments make no sense: nothing is installed then. */
function choose() {
  if (args.includes("--compare")) return { bench: "compare", needs: [] };
  const [name] = args.filter((arg) => Object.hasOwn(closer, arg));
  if (name === undefined) {
    const { graphCounts } = parseSuiteArguments(args);
    const needs = [installPackages, installRedis, installPostgres];
    return { bench: "suite", needs, ...(graphCounts && { after: "graph-counts" }) };
  }
  const { names } = parseBenchArguments(args);
  const surplus = names.filter((other) => other !== name).join(" ");
  if (surplus !== "" && closer[name].takesNames !== true)
    throw new TypeError(`one benchmark at a time; "${surplus}" is too much`);
  return { bench: name, needs: closer[name].needs };
}

if (args.includes("--help")) usage("Measures Situ against its peers, in one run.");

let chosen;
try {
  chosen = choose();
} catch (error) {
  usage(error.message);
}
await Promise.all(chosen.needs.map((install) => install()));

const scriptOf = (bench) =>
  bench === "compare"
    ? join(root, "dist", "benchmarks", "report", "compare-main.js")
    : join(root, "dist", "benchmarks", bench, "main.js");
let child;
// The child stops its servers and removes its folders; this process only waits for that. Ctrl-C
// reaches it by itself.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child.kill("SIGTERM"));
const run = (bench, given) =>
  new Promise((resolve) => {
    // Garbage of one contestant is collected before the next one's turn.
    child = spawn(process.execPath, ["--expose-gc", scriptOf(bench), ...given], {
      stdio: "inherit",
    });
    child.on("exit", (code, signal) => {
      if (signal) console.error(`The benchmark was ended by ${signal}.`);
      resolve(signal ? undefined : (code ?? 1));
    });
  });

let code = await run(chosen.bench, args);
if (chosen.after !== undefined && code !== undefined) {
  const shared = args.filter((arg) => arg === "--quick" || arg === "--json");
  code = Math.max(code, (await run(chosen.after, shared)) ?? 1);
}
process.exit(code ?? 1);
