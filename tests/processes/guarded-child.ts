/**
 * A run of its own, as a test file is one: it owns a process that has gone astray in every way that
 * it can (it hears no signal, its parent is gone, it is stopped), a store that is open, and folders.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownerOfThis, redirectFolders } from "../../benchmarks/harness/guard/guard.ts";
import { open, table, u32 } from "../../src/index.ts";
import { report } from "../helpers/process-child.ts";

const LEAF = `
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => {});
  console.log(process.pid);
  setInterval(() => {}, 1_000);
`;
/** Starts the leaf in a session of its own, and ends: nobody is its parent any more. */
const BRANCH = `
  const options = { detached: true, stdio: ["ignore", "inherit", "inherit"] };
  require("node:child_process").spawn(process.execPath, ["-e", process.argv[1]], options).unref();
`;

const { disk, memory } = redirectFolders(ownerOfThis("guarded"));
const folder = mkdtempSync(join(tmpdir(), "folder-"));
writeFileSync(join(folder, "file"), "");
await open({ path: join(folder, "store"), tables: [table("t", { id: u32() }, { key: "id" })] });
const branch = spawn(process.execPath, ["-e", BRANCH, LEAF], {
  stdio: ["ignore", "pipe", "inherit"],
});
branch.stdout.setEncoding("utf8").once("data", (text: string) => {
  const pid = Number(text);
  process.kill(pid, "SIGSTOP");
  report({ pid, disk, memory, run: process.env.GUARD_RUN });
});
setInterval(() => {}, 1_000);
