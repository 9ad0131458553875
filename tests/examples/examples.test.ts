/** The examples run as a user runs them: compiled, each in a process of its own. */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
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

describe("the bank", () => {
  interface Result {
    readonly ok: boolean;
    readonly sum: { readonly before: number; readonly after: number };
    readonly transfers: number;
    readonly marks: number;
    readonly tellers: readonly { readonly id: number; readonly transfers: number }[];
    readonly killed: { readonly id: number; readonly recoveredAfterMs?: number };
    readonly audits: { readonly families: number; readonly outOfBalance: number };
    readonly counters: { readonly recoveries: number };
  }

  test("one of the processes is killed, and the sum holds", async () => {
    const args = ["--seconds", "1", "--tellers", "3", "--accounts", "500", "--json"];
    const { code, lines, errors } = await start("bank", args);
    expect({ code, errors }, lines.join("\n")).toEqual({ code: 0, errors: "" });
    const result = JSON.parse(lines.at(-1)!) as Result;
    expect(result.ok).toBe(true);
    expect(result.sum).toEqual({ before: 500_000, after: 500_000 });
    expect(result.marks).toBe(2 * result.transfers);
    expect(result.tellers.map(({ id }) => id)).toEqual([1, 2, 3]);
    for (const { transfers } of result.tellers) expect(transfers).toBeGreaterThan(0);
    expect(result.killed.recoveredAfterMs).toBeDefined();
    expect(result.counters.recoveries).toBe(1);
    expect(result.audits.families).toBeGreaterThan(0);
    expect(result.audits.outOfBalance).toBe(0);
    expect(lines).toContain("  The sum holds.");
    // No terminal, so nothing that only a terminal understands.
    expect(lines.join("")).not.toContain("\x1b");
    expect(leftBehind()).toEqual([]);
  });

  test.each([
    [["--tellers", "1"], "--tellers is a number from 2 to 32"],
    [["--tellers", "2.5"], "--tellers is a whole number"],
    [["--seconds", "soon"], '--seconds is a number from 0.5 to 3600, not "soon"'],
    [["--accounts", "15"], "--accounts is a multiple of 10"],
    [["--acounts", "20"], "Unknown option '--acounts'"],
  ])("%j is explained", async (args, why) => {
    const { code, errors } = await start("bank", args);
    expect(code).toBe(2);
    expect(errors).toContain(why);
    expect(errors).toContain("--json");
  });

  test.each(["SIGINT", "SIGTERM"] as const)("%s ends it and leaves nothing", async (signal) => {
    const ended = start("bank", ["--seconds", "30", "--accounts", "100"]);
    const isAtWork = (): boolean => leftBehind().some((name) => name.startsWith("situ-bank-"));
    while (!isAtWork()) await setTimeout(10);
    await setTimeout(500);
    child!.kill(signal);
    expect((await ended).code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(leftBehind()).toEqual([]);
  });
});

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
