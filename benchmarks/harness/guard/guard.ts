// No process and no folder of a test or a benchmark may stay behind, however it ends: by itself, by
// an assertion, by Ctrl-C, by SIGKILL. What runs at the end of a process (handlers, hooks, finally)
// is not run after SIGKILL, so a second process sees to it: the guard (guard-main.ts).
//
//   startRun()       at the start of a run: a folder for it, and its guard
//   ownerOfThis()    in every process of the run that starts others or makes folders: its owner
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { identityOf, isAlive, OWNER_VARIABLE, pidNamespace } from "./owned.ts";
import {
  createRunFolder,
  leftoversOf,
  ownersOf,
  RUN_PREFIX,
  sweepOwner,
  writeOwner,
} from "./run-folder.ts";

/** Names the folder of the run in the environment of all of its processes. */
export const RUN_VARIABLE = "GUARD_RUN";

const OWNED_PREFIX = "situ-owned-";

function guardProgram(): string {
  let root = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(root, "package.json"))) root = dirname(root);
  const path = join(root, "dist", "benchmarks", "harness", "guard", "guard-main.js");
  if (!existsSync(path)) throw new Error(`${path} is missing: run npm run build`);
  return path;
}

export interface Run {
  readonly folder: string;
  /** Waits until everything is cleaned up; returns what had been left behind. */
  end(): Promise<readonly string[]>;
}

/** Starts the guard of a run that this process leads. */
export function startRun(): Run {
  sweepAbandonedRuns();
  const folder = mkdtempSync(join(tmpdir(), RUN_PREFIX));
  createRunFolder(folder);
  process.env[RUN_VARIABLE] = folder;
  const guard = spawn(process.execPath, [guardProgram(), folder], {
    stdio: ["pipe", "ignore", "inherit"],
    // A process group of its own: Ctrl-C must not reach it.
    detached: true,
  });
  guard.unref();
  (guard.stdin as unknown as { unref?(): void }).unref?.();
  return { folder, end: () => endRun(folder, guard) };
}

async function endRun(folder: string, guard: ChildProcess): Promise<readonly string[]> {
  const ended = guard.exitCode === null ? once(guard, "exit") : undefined;
  guard.ref();
  guard.stdin?.end("end\n");
  await ended;
  const leftovers = leftoversOf(folder);
  rmSync(folder, { recursive: true, force: true });
  return leftovers;
}

/** Runs whose guard was killed, too: nobody else will clean up after them. */
function sweepAbandonedRuns(): void {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(RUN_PREFIX)) continue;
    const folder = join(tmpdir(), name);
    try {
      const [guard, namespace] = readFileSync(join(folder, "guard"), "utf8").split(" ");
      if (namespace !== pidNamespace() || isAlive(guard)) continue;
      if (ownersOf(folder).some(isAlive)) continue;
      for (const owner of ownersOf(folder)) sweepOwner(folder, owner);
      rmSync(folder, { recursive: true, force: true });
    } catch {
      // It has no guard yet, or another run sweeps it at the same time.
    }
  }
}

/** A process as the owner of what it starts and makes. */
export interface Owner {
  readonly identity: string;
  /** Whatever happens to the owner, the folder does not outlive it. */
  keep(folder: string): void;
}

/**
 * This process as an owner. One that was started by an owner adds to what that one owns; one that
 * belongs to no run leads a run of its own.
 */
export function ownerOfThis(label: string): Owner {
  if (process.env[RUN_VARIABLE] === undefined) startRun();
  const run = process.env[RUN_VARIABLE]!;
  let identity = process.env[OWNER_VARIABLE];
  if (identity === undefined) {
    identity = identityOf(process.pid) ?? `${process.pid}`;
    writeOwner(run, identity, label);
    process.env[OWNER_VARIABLE] = identity;
  }
  const owner = identity;
  return { identity, keep: (folder) => writeOwner(run, owner, folder) };
}

/** From now on temporary folders and stores' memory lie in folders of the owner; returns them. */
export function redirectFolders(owner: Owner): { disk: string; memory: string } {
  const { SITU_MEMORY_DIR, TMPDIR } = process.env;
  if (SITU_MEMORY_DIR?.endsWith(owner.identity) && TMPDIR?.endsWith(owner.identity)) {
    return { disk: TMPDIR, memory: SITU_MEMORY_DIR };
  }
  const disk = join(tmpdir(), `${OWNED_PREFIX}${owner.identity}`);
  const memory = join(memoryRoot(), `${OWNED_PREFIX}${owner.identity}`);
  for (const folder of [disk, memory]) {
    owner.keep(folder);
    mkdirSync(folder, { recursive: true });
  }
  process.env.TMPDIR = disk;
  process.env.SITU_MEMORY_DIR = memory;
  return { disk, memory };
}

/** Where files lie in memory. */
export function memoryRoot(): string {
  const { SITU_MEMORY_DIR } = process.env;
  return SITU_MEMORY_DIR ?? (existsSync("/dev/shm") ? "/dev/shm" : tmpdir());
}
