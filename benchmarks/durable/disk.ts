// Where logs are written: a folder on a real disk, the same one for everybody.
import { readFileSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";

/** File systems in memory, where a sync is a lie, by their numbers in statfs. */
const inMemory = [0x01021994, 0x858458f6];

export function diskFolder(): string {
  for (const folder of [tmpdir(), "/var/tmp"]) {
    if (!inMemory.includes(statfsSync(folder).type)) return folder;
  }
  throw new Error(`${tmpdir()} lies in memory; set TMPDIR to a folder on a disk`);
}

export function describeDisk(folder: string): string {
  const mounts = mountsOf()
    .filter(([, place]) => place === "/" || folder === place || folder.startsWith(`${place}/`))
    .sort(([, left], [, right]) => left.length - right.length);
  const [device, , type] = mounts[mounts.length - 1] ?? ["an unknown disk", "", "unknown"];
  return `all logs in ${folder}: ${type} on ${device}`;
}

/** GroupCommit, place and type of each; none where the system does not list them so. */
function mountsOf(): string[][] {
  try {
    const lines = readFileSync("/proc/self/mounts", "utf8").trim().split("\n");
    return lines.map((line) => line.split(" "));
  } catch {
    return [];
  }
}
