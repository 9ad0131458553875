/**
 * Golden scripts of the cluster's phases: each file in cluster/ is a scenario (simulation/cluster/script.ts
 * says what it may contain), then `---`, then the trace that it must give. SITU_UPDATE_SCRIPTS=1 writes the
 * traces anew; look at the difference before you commit it.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runScript } from "../../simulation/cluster/script.ts";

const FOLDER = join(import.meta.dirname, "cluster");
const SEPARATOR = "\n---\n";

const names = readdirSync(FOLDER).filter((name) => name.endsWith(".script"));

test.each(names.sort())("%s", async (name) => {
  const path = join(FOLDER, name);
  const [scenario, expected] = readFileSync(path, "utf8").split(SEPARATOR);
  const trace = await runScript(scenario);
  if (process.env.SITU_UPDATE_SCRIPTS !== undefined) {
    writeFileSync(path, `${scenario.trimEnd()}\n${SEPARATOR}${trace}`);
  } else {
    expect(trace, "SITU_UPDATE_SCRIPTS=1 writes the trace anew").toBe(expected);
  }
});

test("a line that means nothing is refused", async () => {
  await expect(runScript("nodes 3\nnode 1 dances\n")).rejects.toThrow("node 1 dances");
});
