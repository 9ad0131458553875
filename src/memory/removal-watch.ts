/**
 * Notices that memory files were removed beneath those who use them: by a cleaner of temporary files, by
 * logind (RemoveIPC), by hand. The mappings go on working, but nobody can join that memory any more.
 *
 * It must be cheap enough to ask before each acknowledgement of the log, so it looks at the folder's
 * modification time, which every creation and removal in it changes, and lists the folder only when
 * that has moved. Nobody removes a file of a store's memory while the store is open, so a name that
 * was there and is not any more was removed by somebody else.
 *
 * Times of files advance in ticks of some milliseconds. A change in the same tick as the last look
 * leaves the time as it is, so a time is trusted only when it was old enough at the last look.
 */

import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { wallClockMs } from "../runtime/clock.ts";

/** Longer than a tick of a file system's times: of most, and of one that knows only whole seconds. */
const TICK_MS = 100;
const COARSE_TICK_MS = 2_100;

export class RemovalWatch {
  readonly #folder: string;
  /** The file that must stay the same one, and its inode. */
  readonly #anchor: string;
  readonly #inode: number;
  #seen: ReadonlySet<string> = new Set();
  #modifiedMs = Number.NaN;
  #isLost = false;

  constructor(folder: string, anchor: string, inode: number) {
    this.#folder = folder;
    this.#anchor = anchor;
    this.#inode = inode;
  }

  isLost(expected: () => readonly string[]): boolean {
    this.#isLost ||= this.#look(expected);
    return this.#isLost;
  }

  #look(expected: () => readonly string[]): boolean {
    const folder = statSync(this.#folder, { throwIfNoEntry: false });
    if (folder === undefined) return true;
    const modifiedMs = folder.mtimeMs;
    if (modifiedMs === this.#modifiedMs) return false;
    const nowMs = wallClockMs();
    // Before the listing: what is made in between may be in it or not.
    const needed = expected();
    const names = this.#names();
    if (names === undefined || !needed.every((name) => names.has(name))) return true;
    for (const name of this.#seen) if (!names.has(name)) return true;
    const anchor = statSync(join(this.#folder, this.#anchor), { throwIfNoEntry: false });
    if (anchor?.ino !== this.#inode) return true;
    this.#seen = names;
    const tickMs = modifiedMs % 1_000 === 0 ? COARSE_TICK_MS : TICK_MS;
    this.#modifiedMs = nowMs - modifiedMs > tickMs ? modifiedMs : Number.NaN;
    return false;
  }

  #names(): ReadonlySet<string> | undefined {
    try {
      return new Set(readdirSync(this.#folder));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }
}
