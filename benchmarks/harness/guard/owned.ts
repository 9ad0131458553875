// What a run of tests or benchmarks has started and made, found without its help: the owner may
// have been killed at any moment.
//
// A process belongs to an owner if the environment that it was started with names the owner, if it
// works in one of the owner's folders (redis-server writes its title over its environment), or if
// its parent belongs to the owner. Linux tells all of this in /proc; elsewhere nothing is found, and
// only what tests and benchmarks clean up themselves is cleaned up.
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";

/** Names the owner in the environment of every process that it starts. */
export const OWNER_VARIABLE = "GUARD_OWNER";

export interface OwnedProcess {
  readonly pid: number;
  readonly command: string;
}

interface Stat {
  readonly state: string;
  readonly parent: number;
  readonly flags: number;
  /** Since the machine was booted. A pid is used again, a pid and its start are not. */
  readonly startTime: string;
}

const EXITING_FLAG = 0x4;
const KILL_PENDING = 1n << 8n;

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the name, in brackets, and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return {
      state: fields[0],
      parent: Number(fields[1]),
      flags: Number(fields[6]),
      startTime: fields[19],
    };
  } catch {
    return undefined;
  }
}

const hasProc = existsSync("/proc/self/stat");

/** A name of a process that is never used again; undefined if it has ended. */
export function identityOf(pid: number): string | undefined {
  if (!hasProc) return isThere(pid) ? `${pid}` : undefined;
  const stat = statOf(pid);
  if (stat === undefined || stat.state === "Z" || stat.state === "X") return undefined;
  return `${pid}-${stat.startTime}`;
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** In which the pids of this process are pids; a folder may be shared with containers. */
export function pidNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return "";
  }
}

/** Whether the process with this identity still runs. */
export function isAlive(identity: string): boolean {
  return identityOf(Number(identity.split("-")[0])) === identity;
}

/** Nothing can keep it any more, even if it has not been given the time to go. */
function isEnding(pid: number, { state, flags }: Stat): boolean {
  if (state === "Z" || state === "X" || (flags & EXITING_FLAG) !== 0) return true;
  const status = read(`/proc/${pid}/status`);
  const pending = /^ShdPnd:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0";
  return (BigInt(`0x${pending}`) & KILL_PENDING) !== 0n;
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function workingFolderOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}

function isWithin(path: string, folders: readonly string[]): boolean {
  return folders.some((folder) => path === folder || path.startsWith(`${folder}/`));
}

/** The processes of an owner that still run, other than itself. */
export function processesOf(owner: string, folders: readonly string[]): OwnedProcess[] {
  const marker = `\0${OWNER_VARIABLE}=${owner}\0`;
  const living = new Map<number, Stat>();
  for (const name of processes()) {
    const stat = statOf(Number(name));
    if (stat !== undefined && !isEnding(Number(name), stat)) living.set(Number(name), stat);
  }
  const owned = new Set<number>();
  for (const pid of living.keys()) {
    const isMarked = `\0${read(`/proc/${pid}/environ`)}\0`.includes(marker);
    if (isMarked || isWithin(workingFolderOf(pid), folders)) owned.add(pid);
  }
  const itself = Number(owner.split("-")[0]);
  owned.delete(itself);
  owned.delete(process.pid);
  for (let before = -1; before !== owned.size; ) {
    before = owned.size;
    for (const [pid, { parent }] of living) if (owned.has(parent)) owned.add(pid);
  }
  return [...owned].map((pid) => {
    const command = read(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim();
    return { pid, command: command.slice(0, 300) };
  });
}

function processes(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
}

/** Ends processes at once; also those that are stopped. */
export function kill(processes: readonly OwnedProcess[]): void {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** Removes folders, and what is mounted within them. */
export function removeFolders(folders: readonly string[]): void {
  for (const line of read("/proc/self/mountinfo").split("\n").reverse()) {
    const place = line.split(" ")[4] ?? "";
    if (!isWithin(place, folders)) continue;
    try {
      execFileSync("umount", ["-l", place], { stdio: "ignore" });
    } catch {
      // Then the folder stays, and whoever looks for leftovers says so.
    }
  }
  for (const folder of folders) {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    } catch {
      // The same.
    }
  }
}
