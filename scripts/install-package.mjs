// Installs one package from npm into a folder of its own, for tests that need several versions of a program.
import { spawnSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Whether it is there, in the end. An install that was interrupted has another name. */
export function installPackage(wanted, place, isThere) {
  if (isThere()) return true;
  const unfinished = `${place}-unfinished`;
  for (const old of [place, unfinished]) rmSync(old, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  writeFileSync(join(unfinished, "package.json"), JSON.stringify({ private: true }));
  console.error(`> npm install ${wanted}`);
  const args = ["install", "--no-fund", "--no-audit", "--no-save", "--ignore-scripts", wanted];
  const { status } = spawnSync("npm", args, {
    cwd: unfinished,
    stdio: ["ignore", process.stderr, "inherit"],
  });
  if (status !== 0) return false;
  renameSync(unfinished, place);
  return isThere();
}
