/** The shell's history: private, bounded, and never in the way. */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HISTORY_LINES, History } from "../../src/cli/work/shell/history.ts";

let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-history-test-"));
  file = join(folder, "history");
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const modeOf = (path: string): number => statSync(path).mode & 0o777;

test("lines come back, the newest first, in a file that only its owner reads", () => {
  const history = new History(file);
  for (const line of ["get a 1", "", "  ", "scan a\nlimit 1"]) history.add(line);
  expect(new History(file).load()).toEqual(["scan a limit 1", "get a 1"]);
  expect(modeOf(file)).toBe(0o600);
});

test("a file that others could read is closed to them", () => {
  writeFileSync(file, "get a 1\n", { mode: 0o644 });
  expect(new History(file).load()).toEqual(["get a 1"]);
  expect(modeOf(file)).toBe(0o600);
});

test("it does not grow for ever, and keeps no line that is too long", () => {
  const many = Array.from({ length: 3 * HISTORY_LINES }, (_, i) => `get a ${i}`);
  writeFileSync(file, `${many.join("\n")}\n`, { mode: 0o600 });
  const history = new History(file);
  const lines = history.load();
  expect(lines).toHaveLength(HISTORY_LINES);
  expect(lines[0]).toBe(many.at(-1));
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(HISTORY_LINES + 1);
  expect(modeOf(file)).toBe(0o600);
  history.add("x".repeat(100_000));
  expect(readFileSync(file, "utf8")).not.toContain("xxx");
});

test("two shells add to the same file", () => {
  const [a, b] = [new History(file), new History(file)];
  a.add("one");
  b.add("two");
  a.add("three");
  expect(new History(file).load()).toEqual(["three", "two", "one"]);
});

test("where it cannot be, nothing happens", () => {
  const nowhere = new History(join(folder, "no", "folder"));
  nowhere.add("get a 1");
  expect(nowhere.load()).toEqual([]);
});
