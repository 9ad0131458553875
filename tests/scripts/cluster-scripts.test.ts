/**
 * Golden scripts of the cluster's phases: each file in cluster/ is a scenario (simulation/cluster/script.ts
 * says what it may contain), then the trace that it must give (script-file.ts).
 */

import { join } from "node:path";
import { expect, test } from "vitest";
import { runScript } from "../../simulation/cluster/script.ts";
import { checkScript, scriptsIn } from "./script-file.ts";

const FOLDER = join(import.meta.dirname, "cluster");

test.each(scriptsIn(FOLDER))("%s", (name) =>
  checkScript(join(FOLDER, name), (commands) => runScript(commands.join("\n"))),
);

test("a line that means nothing is refused", async () => {
  await expect(runScript("nodes 3\nnode 1 dances\n")).rejects.toThrow("node 1 dances");
});
