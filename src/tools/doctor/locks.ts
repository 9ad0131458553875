/**
 * Whether file locks work in a folder. Situ knows by them who is alive, so they must exclude two
 * files of one process, another process, and be gone when that process is killed. All three are
 * tried.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../../memory/libc.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { uniqueId } from "../../runtime/random.ts";
import { type Finding, failed, ok } from "./finding.ts";

const PATIENCE_MS = 5_000;
const LOOK_MS = 5;

export async function checkLocks(check: string, folder: string): Promise<Finding> {
  const file = join(folder, `situ-doctor-${uniqueId()}.lock`);
  const advice = `flock does not work in ${folder}: use a local file system`;
  let holder: ChildProcess | undefined;
  let first = -1;
  let second = -1;
  try {
    first = openSync(file, "w", 0o600);
    second = openSync(file, "r+");
    const lock = (fd: number): boolean => libc().tryLock(fd);
    if (!lock(first)) return failed(check, "a free lock is refused", advice);
    if (lock(second)) return failed(check, "two open files hold the same lock", advice);
    // A child inherits the open file, and with it the lock: it is gone with its last holder.
    holder = spawn(process.execPath, ["-e", "setTimeout(() => {}, 10000)"], {
      stdio: ["ignore", "ignore", "ignore", first],
    });
    closeSync(first);
    first = -1;
    if (lock(second)) return failed(check, "a lock is lost while another process holds it", advice);
    holder.kill("SIGKILL");
    const startMs = nowMs();
    while (!lock(second)) {
      if (nowMs() - startMs > PATIENCE_MS) {
        return failed(check, "the lock of a killed process remains", advice);
      }
      await sleep(LOOK_MS);
    }
    return ok(check, "hold between files and processes, and end with a killed process");
  } catch (error) {
    return failed(check, (error as Error).message, advice);
  } finally {
    holder?.kill("SIGKILL");
    for (const fd of [first, second]) if (fd >= 0) closeSync(fd);
    rmSync(file, { force: true });
  }
}
