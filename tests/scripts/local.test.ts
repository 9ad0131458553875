/**
 * Golden scripts about one store: commits, conflicts, deaths, the log, recovery. Each file in local/ is a
 * scenario and the trace that it must give; local-world.ts says what a scenario can do.
 */

import "../helpers/engine-all-atomics.ts";

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { LocalWorld } from "./local-world.ts";
import { checkScript, parseScript, scriptsIn, withTrace } from "./script-file.ts";

const folder = fileURLToPath(new URL("local", import.meta.url));

function run(commands: readonly string[]): string {
  const world = new LocalWorld();
  try {
    return world.run(commands);
  } finally {
    world.dispose();
  }
}

test.each(scriptsIn(folder))("%s", (name) => checkScript(join(folder, name), run));

describe("a script", () => {
  test("has commands and a trace; comments are neither", () => {
    const text = "# why\nA begin\n\n  A commit\n\n---\nA begin\n    # kept\n";
    expect(parseScript(text)).toEqual({
      commands: ["A begin", "A commit"],
      expected: "A begin\n    # kept\n",
    });
    expect(parseScript("A begin\n").expected).toBe(undefined);
  });

  test("gets another trace, and keeps its scenario", () => {
    const first = withTrace("# why\nA begin\n", "one\n");
    expect(first).toBe("# why\nA begin\n\n---\none\n");
    expect(withTrace(first, "two\n")).toBe("# why\nA begin\n\n---\ntwo\n");
  });

  test.each([["A dance"], ["A begin", "A read z"], ["A begin", "A commit dies after noon"]])(
    "that makes no sense is refused: %s",
    (...commands) => {
      expect(() => run(["values x=1", ...commands])).toThrow();
    },
  );
});
