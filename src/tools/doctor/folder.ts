/** What the doctor looks at in the folder of a store, or of one that is to be. */

import { closeSync, existsSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { isOpenSomewhere, openersOf } from "../../attach/openers.ts";
import { memoryFolder, readIdentity } from "../../folder/store-files.ts";
import { whyNoProcesses } from "../../memory/libc.ts";
import { nowMs } from "../../runtime/clock.ts";
import { uniqueId } from "../../runtime/random.ts";
import { counted, shownMs, shownSize } from "../../runtime/units.ts";
import { type Finding, failed, ok, warning } from "./finding.ts";
import { checkLocks } from "./locks.ts";
import { checkSharedMemory } from "./machine.ts";

const COMFORTABLE_BYTES = 1024 * 2 ** 20;
const LEAST_BYTES = 64 * 2 ** 20;
/**
 * A commit with durability "sync" waits at least this long: on a disk with a cache of its own,
 * less than 1 ms.
 */
const SLOW_SYNC_MS = 20;
const SYNCS = 8;

/**
 * File systems over a network, by the magic of statfs(2): locks and syncs there are another
 * machine's.
 */
const NETWORKS: Readonly<Record<number, string>> = {
  26985: "NFS",
  20859: "SMB",
  4266872130: "SMB 2",
  4283649346: "CIFS",
  1634035319: "Ceph",
  16914839: "9P",
  1397114950: "AFS",
  1635083891: "AFS",
  1936814952: "Coda",
  564: "NCP",
};
const FUSE = 0x65735546;

export async function checkFolder(path: string): Promise<Finding[]> {
  // A folder that is to be made has the file system of the one above it.
  let folder = path;
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  const writable = checkWriting(path, folder);
  if (writable.status === "failed") return [writable];
  return [
    writable,
    checkFileSystem(folder),
    checkRoom(folder),
    ...(whyNoProcesses() === undefined ? [await checkLocks("its file locks", folder)] : []),
    checkSync(folder),
    ...checkStore(path),
    ...(await checkOpeners(path)),
  ];
}

function checkWriting(path: string, folder: string): Finding {
  const check = "the folder";
  const file = join(folder, `.situ-doctor-${uniqueId()}`);
  try {
    closeSync(openSync(file, "wx", 0o600));
    rmSync(file);
    return ok(check, path === folder ? path : `${path} can be created in ${folder}`);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTDIR")
      return failed(check, `${folder} is a file`, "give the path of a folder");
    const user = process.getuid?.() ?? "?";
    const advice = `allow this user (${user}) to write in ${folder}, or use another folder`;
    return failed(check, `cannot create a file in ${folder}: ${code}`, advice);
  }
}

function checkFileSystem(folder: string): Finding {
  const check = "its file system";
  const { type } = statfsSync(folder);
  const network = NETWORKS[type];
  if (network !== undefined) {
    return failed(check, `${network}, a network file system`, "put the store on a local disk");
  }
  if (type === FUSE) {
    return warning(
      check,
      "FUSE",
      "make sure that it supports locks and fsync, or use a local disk",
    );
  }
  return ok(check, "local");
}

function checkRoom(folder: string): Finding {
  const { bsize, bavail } = statfsSync(folder);
  const found = `${shownSize(bavail * bsize)} free`;
  const advice = "free some space: the log and two checkpoints can exceed the size of the store";
  if (bavail * bsize < LEAST_BYTES) return failed("its disk", found, advice);
  if (bavail * bsize < COMFORTABLE_BYTES) return warning("its disk", found, advice);
  return ok("its disk", found);
}

/** What a commit waits for with durability "sync". */
function checkSync(folder: string): Finding {
  const check = "its syncs";
  const file = join(folder, `.situ-doctor-${uniqueId()}`);
  const fd = openSync(file, "wx", 0o600);
  try {
    const block = Buffer.alloc(4_096, 1);
    const times: number[] = [];
    for (let i = 0; i < SYNCS; i++) {
      writeSync(fd, block, 0, block.length, i * block.length);
      const startMs = nowMs();
      fsyncSync(fd);
      times.push(nowMs() - startMs);
    }
    const medianMs = times.sort((a, b) => a - b)[SYNCS >> 1];
    const found = `${shownMs(medianMs)} for a write to reach the disk`;
    if (medianMs <= SLOW_SYNC_MS) return ok(check, found);
    return warning(check, found, 'slow for durability "sync"; "lazy" does not wait for it');
  } finally {
    closeSync(fd);
    rmSync(file, { force: true });
  }
}

/** Who keeps the store open. */
async function checkOpeners(path: string): Promise<Finding[]> {
  const check = "open in";
  try {
    if (readIdentity(path) === undefined || whyNoProcesses() !== undefined) return [];
    const openers = openersOf(path);
    if (openers.length === 0) {
      if (!(await isOpenSomewhere(path))) return [ok(check, "no process")];
      const advice = "it sees another memory, in another container perhaps: see docs/CONTAINERS.md";
      return [warning(check, "a process that is not visible here", advice)];
    }
    const stopped = openers.find(({ state }) => state === "stopped");
    const found = counted(new Set(openers.map(({ pid }) => pid)).size, "process", "processes");
    if (stopped === undefined) return [ok(check, found)];
    const advice = `others may wait for process ${stopped.pid}: see situ ps --path ${path}`;
    return [warning(check, `${found}, one of them stopped`, advice)];
  } catch (error) {
    return [warning(check, (error as Error).message, `see situ ps --path ${path}`)];
  }
}

/**
 * What store.json says, if the folder has one; and the memory, if that is not where the machine's
 * is.
 */
function checkStore(path: string): Finding[] {
  const check = "the store";
  try {
    const identity = readIdentity(path);
    if (identity === undefined) return [];
    const { memoryDir } = identity;
    const isLoaded = existsSync(memoryFolder(identity));
    const missing = isLoaded ? "" : ", currently missing: open rebuilds it from the log";
    const own = memoryDir === (process.env.SITU_MEMORY_DIR ?? "/dev/shm");
    return [
      ok(check, `memory in ${memoryDir}${missing}`),
      ...(own ? [] : checkSharedMemory(memoryDir)),
    ];
  } catch (error) {
    return [failed(check, (error as Error).message, "restore the folder from a backup")];
  }
}
