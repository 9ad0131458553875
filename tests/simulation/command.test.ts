/** The command: what it prints, and what it says to wrong arguments. */

import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const COMMAND = join(import.meta.dirname, "..", "..", "dist", "simulation", "main.js");

function simulate(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [COMMAND, ...args]);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
    });
    child.on("close", (code) => resolve({ code: code ?? -1, stdout, stderr }));
  });
}

test("a run that holds: a summary for people, and the hash as the last line", async () => {
  const args = ["--seed", "5", "--nodes", "2", "--workload", "bank", "--transactions", "10"];
  const { code, stdout, stderr } = await simulate(...args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout).toMatch(/^seed 5: 2 nodes/);
  expect(stdout).toContain("all hold");
  expect(stdout).toMatch(/\n[0-9a-f]{16}\n$/);
});

test("--json: the report as one line before the hash", async () => {
  const { code, stdout } = await simulate("--json", "--transactions", "5", "--faults", "none");
  expect(code).toBe(0);
  const [line, hash] = stdout.trimEnd().split("\n");
  expect(JSON.parse(line)).toMatchObject({ problems: [], traceHash: hash });
});

test("--protocol xenic: list-append under every table of places and techniques", async () => {
  const args = ["--protocol", "xenic", "--seed", "3", "--transactions", "40", "--faults", "heavy"];
  const { code, stdout, stderr } = await simulate(...args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  expect(stdout.match(/^seed 3: 5 servers, .*, faults: heavy: 40 committed/gm)).toHaveLength(5);
  expect(stdout).toMatch(/\n[0-9a-f]{16}\n$/);
});

test.each([
  [["--nodes", "0"], "--nodes is a whole number from 1 to"],
  [["--seed", "1.5"], "--seed is a whole number"],
  [["--workload", "nothing"], "--workload is one of append, bank, registers, batches"],
  [["--faults", "many"], "--faults is one of none, light, heavy"],
  [["--protocol", "tcp"], "--protocol is one of one-sided, rpc"],
  [["--protocol", "xenic", "--nodes", "1"], "--nodes is a whole number from 2 to"],
  [["--protocol", "xenic", "--faults", "power"], "--faults is one of none, light, heavy, failover"],
  [["--protocol", "xenic", "--clients", "3"], "--clients"],
  [["--speed", "9"], "--speed"],
  [["what"], "what"],
])("wrong arguments %j: refused with code 2", async (args, message) => {
  const { code, stdout, stderr } = await simulate(...args);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  expect(stderr).toContain(message);
  expect(stderr).toContain("npm run simulate -- ");
});
