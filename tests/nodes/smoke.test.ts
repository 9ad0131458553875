/** The built package on each version of Node.js that it supports, as a user would run it. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { nodeProgram, VERSIONS } from "../../scripts/nodes.mjs";
import { destroy } from "../../src/index.ts";

const dist = fileURLToPath(new URL("../../dist/", import.meta.url));
const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) {
    await destroy(join(folder, "store"));
    rmSync(folder, { recursive: true, force: true });
  }
});

/** Runs a script of dist/ to its end; what it printed last is JSON. */
async function run(version: string, script: string, ...args: string[]): Promise<unknown> {
  const child = spawn(nodeProgram(version), [join(dist, script), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: process.env,
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.stderr += text;
  });
  const [code] = (await once(child, "close")) as [number | null];
  expect(said.stderr).toBe("");
  expect(code, said.stdout).toBe(0);
  return JSON.parse(said.stdout.trim().split("\n").at(-1) ?? "");
}

function smoke(version: string, part: string): Promise<unknown> {
  const folder = mkdtempSync(join(tmpdir(), "situ-nodes-"));
  folders.push(folder);
  mkdirSync(join(folder, "store"));
  return run(version, "tests/nodes/smoke-main.js", part, join(folder, "store"));
}

describe.each(VERSIONS)("Node.js %s", (version) => {
  test("transactions, indexes, scans", async () => {
    expect(await smoke(version, "transactions")).toEqual({
      version,
      count: 5,
      undone: "undone",
      found: [1],
      range: [10, 11, 12],
    });
  });

  test("two processes and a thread on one row", async () => {
    expect(await smoke(version, "processes")).toEqual({ version, codes: [0, 0, 0], count: 1_200 });
  });

  test("recovery from the log, after SIGKILL and without the memory", async () => {
    expect(await smoke(version, "recovery")).toEqual({ version, rows: 400, last: "n399" });
  });

  test("a gateway for Redis clients", async () => {
    expect(await smoke(version, "gateway")).toEqual({
      version,
      heard: "+OK\r\n:42\r\n$2\r\n42\r\n+OK\r\n",
    });
  });
});

// tests/examples/cluster.test.ts does the same on the version that runs the tests.
test.each(VERSIONS.filter((version) => version !== process.versions.node))(
  "a cluster of four nodes on Node.js %s",
  async (version) => {
    const args = ["--seconds", "0.5", "--accounts", "50", "--json"];
    expect(await run(version, "examples/cluster/main.js", ...args)).toMatchObject({ ok: true });
  },
);
