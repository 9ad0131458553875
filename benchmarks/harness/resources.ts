// Whatever a benchmark must not leave behind: folders in /dev/shm, child processes. Releases are
// synchronous, so that they also work from an exit handler after Ctrl-C or a crash. After SIGKILL
// the guard does the same.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Owner, ownerOfThis } from "./guard/guard.ts";

const releases: (() => void)[] = [];
let watching = false;
let owner: Owner | undefined;

/** Registers something to release; returns a function that releases it at once, only once. */
export function onRelease(release: () => void): () => void {
  watchExit();
  releases.push(release);
  return () => {
    const index = releases.indexOf(release);
    if (index === -1) return;
    releases.splice(index, 1);
    release();
  };
}

/** To be called before a process is started that must not outlive this one. */
export function guardProcesses(): Owner {
  owner ??= ownerOfThis("benchmark");
  return owner;
}

export function temporaryFolder(parent: string): string {
  const folder = mkdtempSync(join(parent, "situ-bench-"));
  guardProcesses().keep(folder);
  onRelease(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The youngest first. One that fails must not keep the others from being released. */
export function releaseAll(): void {
  for (let release = releases.pop(); release !== undefined; release = releases.pop()) {
    try {
      release();
    } catch (error) {
      console.error("could not be released:", error);
    }
  }
}

function watchExit(): void {
  if (watching) return;
  watching = true;
  process.on("exit", releaseAll);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => process.exit(1));
  }
}
