/** For those who must be alone in a store: to rebuild, remove or restore it, or to serve it as a node. */

import { FolderLock } from "../folder/folder-lock.ts";
import { SituError } from "../runtime/errors.ts";
import { type Opener, openersOf } from "./openers.ts";

/** Takes the folder's lock alone, for `work`; refuses if anyone has the store open. */
export async function whileAlone<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const lock = await FolderLock.enter(path);
  try {
    if (!(await lock.takeAlone())) throw inUse(path, visibleOpeners(path));
    return await work();
  } finally {
    lock.release();
  }
}

/** Somebody has the store open: the error that names them. */
export function inUse(path: string, openers: readonly Opener[]): SituError {
  const commands = new Map(openers.map(({ pid, command }) => [pid, command]));
  const named = [...commands].map(([pid, command]) =>
    command === undefined ? `process ${pid}` : `process ${pid} (${command})`,
  );
  const who = named.length > 0 ? named.join(", ") : "a process that is not visible here";
  return new SituError("SITU_IN_USE", `the store at ${path} is open in ${who}`);
}

/** Those who have the store open, as far as they can be seen. */
export function visibleOpeners(path: string): Opener[] {
  try {
    return openersOf(path);
  } catch {
    // It is in use, whatever is the matter with it.
    return [];
  }
}
