/**
 * Which run of the machine this is. Memory files of an earlier run are not memory any more: if they
 * are there at all, because they lie on a disk, nobody knows which of their pages got there.
 */

import { readFileSync } from "node:fs";

let known: Int32Array | undefined;

/** Four words that differ from run to run; zeroes where the system does not tell. */
export function bootId(): Int32Array {
  known ??= wordsOf(read());
  return known;
}

function read(): string {
  try {
    if (process.platform === "linux") {
      return readFileSync("/proc/sys/kernel/random/boot_id", "latin1");
    }
    if (process.platform === "darwin") {
      // Loaded where it is needed: it takes as long as some of the other modules together.
      const { execFileSync } = process.getBuiltinModule("node:child_process");
      return execFileSync("sysctl", ["-n", "kern.bootsessionuuid"], { encoding: "latin1" });
    }
  } catch {
    // A system without them, or a container that hides them: the memory is then what it seems.
  }
  return "";
}

function wordsOf(uuid: string): Int32Array {
  const hex = uuid
    .replaceAll(/[^0-9a-fA-F]/g, "")
    .padEnd(32, "0")
    .slice(0, 32);
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16));
}
