/** What the doctor looks at on any machine: Node, the FFI, shared memory, locks, limits. */

import { accessSync, constants, existsSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism, freemem, totalmem } from "node:os";
import { libc, whyNoProcesses } from "../../memory/libc.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import { counted, shownSize } from "../../runtime/units.ts";
import { type Finding, failed, ok, warning } from "./finding.ts";
import { checkLargePages } from "./large-pages.ts";
import { checkLocks } from "./locks.ts";
import { findMemories } from "./orphans.ts";

const LEAST_NODE = [20, 19];
const SHARED_MEMORY = "/dev/shm";
/** The default of memoryBytes, and what lies beside it. */
const COMFORTABLE_BYTES = 512 * 2 ** 20;
const LEAST_FREE_BYTES = 64 * 2 ** 20;
/** A client takes a descriptor, a process of a store some dozens. */
const COMFORTABLE_FILES = 4_096;
/** A clock that says less was never set. */
const LEAST_CLOCK_MS = Date.UTC(2025, 0);

export async function checkMachine(): Promise<Finding[]> {
  const memoryDir = process.env.SITU_MEMORY_DIR ?? SHARED_MEMORY;
  const hasFfi = whyNoProcesses() === undefined;
  return [
    checkNode(),
    checkPlatform(),
    checkFfi(),
    ...checkSharedMemory(memoryDir),
    ...checkOrphans(memoryDir),
    ...(hasFfi && existsSync(memoryDir)
      ? [await checkLocks("file locks", memoryDir), checkLargePages(memoryDir)]
      : []),
    checkFiles(),
    checkMemory(),
    checkClock(),
    checkProcessors(),
  ];
}

function checkNode(): Finding {
  const [major, minor] = process.versions.node.split(".").map(Number);
  const isNew = major > LEAST_NODE[0] || (major === LEAST_NODE[0] && minor >= LEAST_NODE[1]);
  if (isNew) return ok("Node.js", process.version);
  return failed("Node.js", process.version, `install ${LEAST_NODE.join(".")} or newer`);
}

function checkPlatform(): Finding {
  const found = `${process.platform} ${process.arch}`;
  if (process.platform === "linux") return ok("platform", found);
  if (process.platform === "darwin") {
    return warning("platform", found, "works, but Linux is tested and measured most");
  }
  const advice =
    "processes cannot share a store here, but threads of one process can (sharing: threads)";
  return failed("platform", found, advice);
}

function checkFfi(): Finding {
  const why = whyNoProcesses();
  if (why === undefined) {
    libc();
    return ok("FFI", "koffi loads and calls libc");
  }
  return failed("FFI", why, "run npm install koffi for this platform and version of Node.js");
}

export function checkSharedMemory(folder: string): Finding[] {
  const check = `memory in ${folder}`;
  if (!existsSync(folder)) {
    const advice = "mount a tmpfs there, or set SITU_MEMORY_DIR to a folder on one";
    return [failed(check, "does not exist", advice)];
  }
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch {
    const advice = `allow this user to write there (usually chmod 1777 ${folder}), or set SITU_MEMORY_DIR`;
    return [failed(check, "no permission to write", advice)];
  }
  const { bsize, blocks, bavail, type } = statfsSync(folder);
  const [allBytes, freeBytes] = [blocks * bsize, bavail * bsize];
  const stores = readdirSync(folder).filter((name) => STORE.test(name)).length;
  const used = stores === 0 ? "" : `; in use by ${counted(stores, "store")}`;
  const found = `${shownSize(freeBytes)} free of ${shownSize(allBytes)}${used}`;
  const larger =
    `mount -o remount,size=… ${folder} (Docker: --shm-size=1g), or remove stores that ` +
    "nobody uses";
  const findings = [
    freeBytes < LEAST_FREE_BYTES
      ? failed(check, found, larger)
      : freeBytes < COMFORTABLE_BYTES
        ? warning(check, found, larger)
        : ok(check, found),
  ];
  if (process.platform === "linux" && type !== TMPFS && type !== RAMFS) {
    const advice = "writes to shared memory would wait for a disk: use a tmpfs";
    findings.push(warning(check, "not an in-memory file system", advice));
  }
  return findings;
}

/** The folder of a store's memory. */
const STORE = /^situ-[0-9a-f]{24}(-[0-9a-f]{24})?$/;
/** statfs(2). */
const TMPFS = 0x01021994;
const RAMFS = 0x858458f6;

/** Memory that stores have left behind. */
export function checkOrphans(memoryDir: string): Finding[] {
  const check = "orphaned memory";
  try {
    const orphans = findMemories(memoryDir).filter(({ status }) => status === "orphaned");
    if (orphans.length === 0) return [ok(check, "none")];
    const bytes = orphans.reduce((sum, each) => sum + each.bytes, 0);
    const found = `${shownSize(bytes)} of ${counted(orphans.length, "store")} whose folder is gone`;
    return [warning(check, found, `see situ clean --memory-dir ${memoryDir}`)];
  } catch {
    // The folder is not there, or cannot be read: that is told already.
    return [];
  }
}

function checkFiles(): Finding {
  const check = "open files";
  let soft: number | undefined;
  try {
    const line = /^Max open files\s+(\S+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    soft = line === "unlimited" ? Number.POSITIVE_INFINITY : Number(line);
  } catch {
    return ok(check, "unknown on this platform");
  }
  if (soft >= COMFORTABLE_FILES) return ok(check, `${soft} at most`);
  const advice = "run ulimit -n 65536 before situ serve: each client needs one";
  return warning(check, `${soft} at most`, advice);
}

function checkMemory(): Finding {
  // What a container may use counts, if it is less than the machine has.
  const limit = process.constrainedMemory() || Number.POSITIVE_INFINITY;
  const all = Math.min(totalmem(), limit);
  const limited = all < totalmem() ? " that this container may use" : "";
  const found = `${shownSize(freemem())} free, ${shownSize(all)} in all${limited}`;
  if (freemem() >= COMFORTABLE_BYTES) return ok("memory", found);
  return warning("memory", found, "stores live in memory: free some, or lower memoryBytes");
}

/** Expiry and restoring to a moment go by the wall clock. */
function checkClock(): Finding {
  const now = new Date(wallClockMs()).toISOString();
  if (wallClockMs() >= LEAST_CLOCK_MS) return ok("clock", now);
  return warning(
    "clock",
    now,
    "set the clock: expiry of keys and restoring to a point in time depend on it",
  );
}

function checkProcessors(): Finding {
  const processors = availableParallelism();
  const found = `${processors} ${processors === 1 ? "processor" : "processors"}`;
  if (processors > 1) return ok("processors", found);
  return warning(
    "processors",
    found,
    "the log and the gateway run in their own threads: use at least two",
  );
}
