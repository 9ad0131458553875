/** The cluster example, as a user runs it: a node is killed, nothing is lost, and nothing is left behind. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { memoryRoot } from "../../benchmarks/harness/guard/guard.ts";

const MAIN = fileURLToPath(new URL("../../dist/examples/cluster/main.js", import.meta.url));

let folder: string;
let child: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(memoryRoot(), "situ-examples-test-"));
});

afterEach(() => {
  if (child?.exitCode === null) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

interface Heard {
  stdout: string;
  stderr: string;
}

function start(
  args: readonly string[],
  more: NodeJS.ProcessEnv = {},
): { process: ChildProcess; heard: Heard } {
  const env = { ...process.env, TMPDIR: folder, SITU_MEMORY_DIR: folder, ...more };
  const started = spawn(process.execPath, [MAIN, ...args], { env });
  child = started;
  const heard: Heard = { stdout: "", stderr: "" };
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    heard.stdout += text;
  });
  started.stderr.setEncoding("utf8").on("data", (text: string) => {
    heard.stderr += text;
  });
  return { process: started, heard };
}

/** Processes of etcd and nodes that it told of, and that are still there. */
function leftRunning({ stdout }: Heard): number[] {
  const pids = [...stdout.matchAll(/process (\d+)/g)].map(([, pid]) => Number(pid));
  expect(pids).toHaveLength(5);
  return pids.filter((pid) => {
    try {
      return /situ-cli|etcd/.test(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
    } catch {
      return false;
    }
  });
}

test("a node of four is killed, and no transfer is lost or done twice", async () => {
  const { process: started, heard } = start(["--seconds", "0.6", "--accounts", "300", "--json"]);
  await once(started, "close");
  expect({ code: started.exitCode, stderr: heard.stderr }, heard.stdout).toEqual({
    code: 0,
    stderr: "",
  });
  const result = JSON.parse(heard.stdout.trim().split("\n").at(-1)!) as {
    readonly primaryOf: readonly number[];
    readonly transactions: number;
    readonly calls: number;
    readonly killed: number;
    readonly gapMs: number;
    readonly othersGapMs: number;
  };
  expect(result).toMatchObject({ ok: true, accounts: 300, wrong: 0, sum: 300_000 });
  expect(result.primaryOf).toHaveLength(4);
  expect(result.primaryOf.reduce((sum, each) => sum + each, 0)).toBe(300);
  for (const each of result.primaryOf) expect(each).toBeGreaterThan(0);
  const { transactions, calls, gapMs, othersGapMs, killed } = result;
  for (const each of [transactions, calls, gapMs, othersGapMs]) expect(each).toBeGreaterThan(0);
  expect(heard.stdout).toContain(`node ${killed} is killed`);
  expect(heard.stdout).toContain(`node ${killed} is back`);
  expect(heard.stdout).toContain("status: healthy");
  expect(heard.stdout).toContain("the sum holds.");
  expect(leftRunning(heard)).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});

test("without etcd it says what to install, and leaves nothing", async () => {
  const { process: started, heard } = start([], { PATH: folder });
  await once(started, "close");
  expect(started.exitCode).toBe(1);
  expect(heard.stderr).toContain("etcd is not installed. On Debian and Ubuntu: sudo apt-get");
  expect(readdirSync(folder)).toEqual([]);
});

test("SIGINT ends it early and leaves nothing", async () => {
  const { process: started, heard } = start(["--seconds", "60"]);
  const closed = once(started, "close");
  while (!heard.stdout.includes("is the primary of") && started.exitCode === null) {
    await setTimeout(20);
  }
  started.kill("SIGINT");
  await closed;
  expect(started.exitCode, heard.stderr).toBe(130);
  expect(leftRunning(heard)).toEqual([]);
  expect(readdirSync(folder)).toEqual([]);
});
