/** The examples run as a user runs them: compiled, each in a process of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { memoryRoot } from "../../benchmarks/harness/guard/guard.ts";

interface Ended {
  readonly code: number | null;
  readonly lines: string[];
  readonly errors: string;
}

let folder: string;
let child: ChildProcess | undefined;

// Folders of its own, for stores and for their memory: what is left in them was left behind.
beforeEach(() => {
  folder = mkdtempSync(join(memoryRoot(), "situ-examples-test-"));
});

afterEach(() => {
  if (child?.exitCode === null) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

function start(example: string, args: string[] = []): Promise<Ended> {
  const main = fileURLToPath(new URL(`../../dist/examples/${example}/main.js`, import.meta.url));
  if (!existsSync(main)) throw new Error(`${main} is not there: npm run build`);
  const env = { ...process.env, TMPDIR: folder, SITU_MEMORY_DIR: folder };
  const started = spawn(process.execPath, [main, ...args], { env });
  child = started;
  let output = "";
  let errors = "";
  started.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  started.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  return new Promise((resolve, reject) => {
    started.on("error", reject);
    started.on("close", (code) => resolve({ code, lines: output.trimEnd().split("\n"), errors }));
  });
}

const leftBehind = (): string[] => readdirSync(folder);

test("the linked list", async () => {
  const { code, lines, errors } = await start("linked-list");
  expect({ code, errors }, lines.join("\n")).toEqual({ code: 0, errors: "" });
  expect(lines).toContain("as it should be: in order, nothing lost");
  expect(lines.at(-1)).toBe("following a pointer to a freed node: SITU_FREED");
  expect(leftBehind()).toEqual([]);
});

test("the sessions", async () => {
  const { code, lines, errors } = await start("sessions");
  expect({ code, errors }, lines.join("\n")).toEqual({ code: 0, errors: "" });
  expect(lines.at(-1)).toBe("every session got its 10 requests, no more");
  expect(leftBehind()).toEqual([]);
});
