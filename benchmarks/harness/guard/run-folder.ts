// The folder of a run, in which its guard finds what to clean up:
//
//   situ-run-a1b2c3/
//     guard               the identity of the guard, once it runs, and its pid namespace
//     owners/<identity>   one file for each process that owns others: a label, then one folder a line
//     leftovers           what the guard had to clean up, one line each
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { kill, processesOf, removeFolders } from "./owned.ts";

export const RUN_PREFIX = "situ-run-";

export function createRunFolder(run: string): void {
  mkdirSync(join(run, "owners"));
}

/** Adds a folder to those that are removed when the owner has ended. The first line is a label. */
export function writeOwner(run: string, owner: string, line: string): void {
  appendFileSync(join(run, "owners", owner), `${line}\n`);
}

export function ownersOf(run: string): string[] {
  const folder = join(run, "owners");
  return existsSync(folder) ? readdirSync(folder) : [];
}

export function leftoversOf(run: string): string[] {
  const file = join(run, "leftovers");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

const MOST_SWEEPS = 50;

/** Ends and removes everything of an owner that is gone itself; notes what it was. */
export function sweepOwner(run: string, owner: string): void {
  const file = join(run, "owners", owner);
  const [label = "", ...folders] = readFileSync(file, "utf8").trim().split("\n");
  const found = new Map<number, string>();
  // A process may start another before it is killed, so one look is not enough.
  for (let sweep = 0; sweep < MOST_SWEEPS; sweep++) {
    const processes = processesOf(owner, folders);
    if (processes.length === 0) break;
    for (const { pid, command } of processes) found.set(pid, command);
    kill(processes);
  }
  removeFolders(folders);
  for (const [pid, command] of found) {
    appendFileSync(join(run, "leftovers"), `${label}: process ${pid}: ${command}\n`);
  }
  for (const folder of folders) {
    if (!existsSync(folder)) continue;
    appendFileSync(join(run, "leftovers"), `${label}: ${folder} cannot be removed\n`);
  }
  rmSync(file);
}
