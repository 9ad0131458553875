/** `runAsMicrotask` is queueMicrotask by other means: the same order, the same end of what is thrown. */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { runAsMicrotask } from "../../src/database/run/microtask-queue.ts";

test("in the order of microtasks, after the code that is running", async () => {
  const seen: string[] = [];
  queueMicrotask(() => seen.push("first"));
  runAsMicrotask(() => seen.push("second"));
  queueMicrotask(() => seen.push("third"));
  seen.push("now");
  await new Promise((resolve) => setImmediate(resolve));
  expect(seen).toEqual(["now", "first", "second", "third"]);
});

test("what is thrown is an uncaught error, not a rejection", () => {
  const module = new URL("../../dist/src/database/run/microtask-queue.js", import.meta.url);
  const script = `
    import { runAsMicrotask } from ${JSON.stringify(fileURLToPath(module))};
    process.on("unhandledRejection", () => console.log("rejection"));
    process.on("uncaughtException", ({ message }) => console.log("uncaught", message));
    runAsMicrotask(() => { throw new Error("thrown"); });`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", script], {
    encoding: "utf8",
  });
  expect(stdout).toBe("uncaught thrown\n");
});
