// Whole runs: what they write, what they say, and what they leave behind.
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Entry, SuiteResult } from "../../benchmarks/report/result.ts";
import {
  anyExists,
  benchScript,
  foldersOf,
  isAlive,
  isGone,
  isWorker,
  resultIn,
  small,
  start,
  testFolder,
} from "./suite-run.ts";

const three = ["--engines", "situ,sqlite,redis"];

function entryOf(result: SuiteResult, engine: string): Entry {
  const entry = result.cells[0].entries.find((each) => each.engine === engine);
  if (entry === undefined) throw new Error(`no entry of ${engine}`);
  return entry;
}

describe("a run", () => {
  test("writes its results, and two of them can be compared", async () => {
    const folder = testFolder();
    const [before, after] = [join(folder, "before"), join(folder, "after")];
    const args = ["smallbank", ...three, ...small, "--processes", "2", "--json"];
    const run = start([...args, "--out", before]);
    expect(await run.code, run.stderr).toBe(0);
    const result = resultIn(before);
    expect(JSON.parse(run.stdout.trim().split("\n").at(-1) ?? "")).toEqual(result);
    expect(result.cells.map(({ id }) => id)).toEqual(["smallbank-none-2"]);
    expect(result.cells[0].processes).toBe(2);
    for (const engine of ["situ", "sqlite", "redis"]) {
      const entry = entryOf(result, engine);
      expect(entry.problems, engine).toEqual([]);
      expect(entry.missing, engine).toBe(undefined);
      expect(entry.perSecond, engine).toHaveLength(1);
      expect(entry.throughput?.median, engine).toBeGreaterThan(0);
      expect(entry.latency?.count, engine).toBeGreaterThan(0);
      expect(entry.settings, engine).not.toBe("");
    }
    expect(entryOf(result, "redis").inFlight).toBe(64);
    expect(entryOf(result, "sqlite").inFlight).toBe(1);
    // Conditions of its own: nothing is claimed, though the cell's id is one of the suite's.
    expect(result.bars).toEqual([]);
    expect(readFileSync(join(before, "report.md"), "utf8")).toContain("SmallBank, two processes");
    expect(readFileSync(join(before, "report.html"), "utf8")).toContain("SmallBank");
    cpSync(before, after, { recursive: true });
    const compared = start(["--compare", before, after], { script: benchScript });
    expect(await compared.code, compared.stderr).toBe(0);
    expect(compared.stdout).toContain("SmallBank");
  });

  test("can be an open loop", async () => {
    const out = join(testFolder(), "out");
    const rate = ["--rate", "400", "--processes", "2"];
    const run = start([
      "smallbank",
      ...three,
      ...small,
      "--round-ms",
      "250",
      ...rate,
      "--out",
      out,
    ]);
    expect(await run.code, run.stderr).toBe(0);
    const result = resultIn(out);
    expect(result.cells[0].load).toEqual({ kind: "open", perSecond: 400 });
    for (const { engine, latency, perSecond = [], inFlight, problems } of result.cells[0].entries) {
      // Both processes begin 50 each in a quarter of a second, whatever the engine can do.
      expect(latency?.count, engine).toBe(100);
      expect(perSecond[0], engine).toBeLessThanOrEqual(400);
      expect(inFlight, engine).toBe(undefined);
      expect(problems, engine).toEqual([]);
    }
  });

  test("goes on without a peer that is not there, and says why", async () => {
    const folder = testFolder();
    const [out, nothing] = [join(folder, "out"), join(folder, "nothing")];
    mkdirSync(nothing);
    const env = { ...process.env, PATH: nothing };
    const run = start(["smallbank", ...three, ...small, "--out", out], { env });
    expect(await run.code, run.stderr).toBe(0);
    expect(run.stderr).toContain("redis is missing: redis-server is not installed");
    const result = resultIn(out);
    expect(entryOf(result, "redis")).toEqual({
      engine: "redis",
      missing: "redis-server is not installed",
    });
    for (const engine of ["situ", "sqlite"]) {
      expect(entryOf(result, engine).throughput?.median, engine).toBeGreaterThan(0);
    }
    const versions = result.engines.map(({ engine, missing }) => ({ engine, missing }));
    expect(versions).toContainEqual({ engine: "redis", missing: "redis-server is not installed" });
    expect(readFileSync(join(out, "report.md"), "utf8")).toContain("redis-server is not installed");
  });
});

describe("a group of the suite", () => {
  test("measures all of its cells on the same rows, and claims no bar without all peers", async () => {
    const out = join(testFolder(), "out");
    const rounds = ["--quick", "--rounds", "1", "--round-ms", "60"];
    const run = start(["--only", "tatp", "--engines", "situ,sqlite", ...rounds, "--out", out]);
    expect(await run.code, run.stderr).toBe(0);
    const { cells, bars } = resultIn(out);
    expect(cells.map(({ id }) => id)).toEqual(["tatp-none-1", "tatp-none-2", "tatp-none-4"]);
    for (const { id, entries } of cells) {
      expect(entries.map(({ engine }) => engine)).toEqual(["situ", "sqlite"]);
      for (const { engine, problems, throughput } of entries) {
        expect(problems, `${id} ${engine}`).toEqual([]);
        expect(throughput?.median, `${id} ${engine}`).toBeGreaterThan(0);
      }
      // Where one process runs, SQLite is opened for one.
      const { settings } = entries[1];
      expect(settings, id).toContain(id === "tatp-none-1" ? ":memory:" : "busy timeout");
    }
    expect(bars).toHaveLength(1);
    expect(bars[0]).toMatchObject({ cell: "tatp-none-2", missing: "lmdb: not part of this run" });
    expect(bars[0].met).toBe(undefined);
  });
});

describe("a worker that is killed", () => {
  test("while it is another one's turn is named, and the others go on", async () => {
    const out = join(testFolder(), "out");
    const two = ["--engines", "situ,sqlite", "--processes", "2"];
    const run = start(["smallbank", ...two, ...small, "--rounds", "2", "--out", out]);
    const all = await run.until(
      (each) => each.filter((worker) => isWorker(worker, "sqlite")).length === 2,
    );
    const [first] = all.filter((worker) => isWorker(worker, "sqlite"));
    process.kill(first.pid, "SIGKILL");
    expect(await run.code, run.stderr).toBe(0);
    const result = resultIn(out);
    expect(entryOf(result, "sqlite").missing).toMatch(/worker-process ended early \(SIGKILL\)/);
    const situ = entryOf(result, "situ");
    expect(situ.perSecond).toHaveLength(2);
    expect(situ.problems).toEqual([]);
    expect(readFileSync(join(out, "report.md"), "utf8")).toContain("worker-process ended early");
    expect(await isGone(() => all.some(isAlive))).toBe(true);
    expect(foldersOf(all)).not.toEqual([]);
    expect(foldersOf(all).filter((folder) => existsSync(folder))).toEqual([]);
  });

  test("in the middle of a round is named as well", async () => {
    const out = join(testFolder(), "out");
    const alone = ["--engines", "situ", "--processes", "2", "--round-ms", "100000"];
    const run = start(["smallbank", ...small, ...alone, "--out", out]);
    const all = await run.until(
      (each) => each.filter((worker) => isWorker(worker, "situ")).length === 2,
    );
    // It may still warm up: that is its turn, too.
    await run.until(() => all.filter((worker) => isWorker(worker, "situ")).every(hasWorked));
    const [, second] = all.filter((worker) => isWorker(worker, "situ"));
    process.kill(second.pid, "SIGKILL");
    expect(await run.code, run.stderr).toBe(0);
    expect(entryOf(resultIn(out), "situ").missing).toMatch(
      /^failed in smallbank-none-2: worker-process ended early \(SIGKILL\)/,
    );
    expect(await isGone(() => all.some(isAlive) || anyExists(foldersOf(all)))).toBe(true);
  });
});

/** In hundredths of a second, as Linux counts; starting alone takes less than two seconds. */
function hasWorked({ pid }: { pid: number }): boolean {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]) > 200;
}

describe("Ctrl-C", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("%s leaves nothing behind", async (signal) => {
    const out = join(testFolder(), "out");
    const all5 = ["--engines", "situ,lmdb,sqlite,redis,postgres"];
    const run = start(["smallbank", ...all5, ...small, "--round-ms", "100000", "--out", out]);
    const all = await run.until((each) => each.some((worker) => isWorker(worker, "postgres")));
    const folders = foldersOf(all);
    // Situ's two, redis's, PostgreSQL's, lmdb's; SQLite is in its process.
    expect(folders.length).toBeGreaterThanOrEqual(5);
    expect(folders.filter((folder) => existsSync(folder))).toEqual(folders);
    run.kill(signal);
    expect(await run.code).toBe(1);
    expect(await isGone(() => all.some(isAlive))).toBe(true);
    expect(folders.filter((folder) => existsSync(folder))).toEqual([]);
    expect(existsSync(out)).toBe(false);
  });
});

describe("what makes no sense", () => {
  test.each([
    ["smallbank", "--rounds", "0"],
    ["no-such-workload"],
    ["--engines", "situ,oracle"],
    ["smallbank", "--rate", "5", "--in-flight", "5"],
    ["--nonsense"],
  ])("%s %s %s ends with exit code 2 and writes nothing", async (...args) => {
    const out = join(testFolder(), "out");
    const given = [...args.filter((each) => each !== undefined), "--out", out];
    // What is refused is the same for the script that builds first: once is enough.
    for (const script of args[0] === "--nonsense" ? [undefined, benchScript] : [undefined]) {
      const run = start(given, script === undefined ? {} : { script });
      expect(await run.code).toBe(2);
      expect(run.stdout).toBe("");
      expect(run.stderr).toContain("npm run bench -- <workload>");
      expect(existsSync(out)).toBe(false);
    }
  });

  test("such as a file for the folder of the report", async () => {
    const file = join(testFolder(), "file");
    writeFileSync(file, "mine");
    const run = start(["smallbank", ...small, "--out", file]);
    expect(await run.code).toBe(2);
    expect(run.stderr).toContain("that is a file");
    expect(readFileSync(file, "utf8")).toBe("mine");
  });

  test("such as results to compare that are not there", async () => {
    const folder = testFolder();
    writeFileSync(join(folder, "results.json"), "{");
    for (const [args, message] of [
      [["/no/such/result", folder], 'there is no result at "/no/such/result"'],
      [[folder, folder], "is no JSON"],
      [[folder], "two results to compare, not 1"],
      [[], "two results to compare, not 0"],
    ] as const) {
      const run = start(["--compare", ...args], { script: benchScript });
      expect(await run.code, args.join(" ")).toBe(2);
      expect(run.stderr).toContain(message);
      expect(run.stdout).toBe("");
    }
  });
});
