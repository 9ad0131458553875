/**
 * Memory of stores whose folder is gone: a folder that was deleted by hand leaves its memory behind, until the
 * machine is restarted. Each memory says in a file of its own which store it belongs to (folder/owner-file.ts).
 *
 * It is orphaned only if all of this is known: it is this user's own, nobody has it open, it was made
 * in this mount namespace (the path of another container means nothing here), and the path that it names
 * has no store, or another one.
 */

import { lstatSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openersIn } from "../../attach/openers.ts";
import { FileLockLeases } from "../../engine/leases/file-lock.ts";
import { mountNamespace, readOwner } from "../../folder/owner-file.ts";
import { readIdentity } from "../../folder/store-files.ts";
import { bootId } from "../../memory/boot.ts";
import { MappedSegments } from "../../memory/mapped-segments.ts";
import { joinMemory } from "../../memory/mapped-store.ts";
import { isOwnFolder } from "../../memory/ownership.ts";

/** The folder of a store's memory; those of earlier versions have no id of the memory. */
const MEMORY = /^situ-([0-9a-f]{24})(?:-[0-9a-f]{24})?$/;

/** The memory of a store, as it is found in /dev/shm. */
export interface FoundMemoryFolder {
  readonly folder: string;
  readonly bytes: number;
  /** The store's folder, as far as it is known. */
  readonly path: string | undefined;
  readonly status: "in use" | "closed" | "orphaned" | "unknown";
  /** Why nothing more is known of it, or what it is. */
  readonly why: string;
  /** Whether the store had a log, so that its rows are also on disk if its folder was only moved. */
  readonly hasLog: boolean;
}

/** All memories of stores in a folder such as /dev/shm. */
export function findMemories(memoryDir: string): FoundMemoryFolder[] {
  const found: FoundMemoryFolder[] = [];
  for (const name of readdirSync(memoryDir).sort()) {
    const id = MEMORY.exec(name)?.[1];
    if (id !== undefined) found.push(look(join(memoryDir, name), id));
  }
  return found;
}

function look(folder: string, id: string): FoundMemoryFolder {
  const unknown = (why: string, path?: string): FoundMemoryFolder => {
    return { folder, bytes: bytesOf(folder), path, status: "unknown", why, hasLog: false };
  };
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined || !isOwnFolder(stats)) return unknown("it belongs to another user");
  const owner = readOwner(folder);
  if (owner === undefined) return unknown("it does not say which store it belongs to");
  const { path, namespace } = owner;
  if (namespace !== mountNamespace()) return unknown("it was made in another container", path);
  try {
    const memory = joinMemory(new MappedSegments(folder), bootId());
    const bytes = bytesOf(folder);
    // Not finished: whoever made it died, or is just making it.
    if (memory === undefined) return unknown("it is not complete", path);
    const hasLog = memory.control.isLogged;
    const openers = openersIn(memory, new FileLockLeases(folder));
    const known = { folder, bytes, path, hasLog };
    if (openers.length > 0) {
      const pids = [...new Set(openers.map(({ pid }) => pid))].join(", ");
      return { ...known, status: "in use", why: `it is open in process ${pids}` };
    }
    const gone = whyGone(path, id);
    if (gone === undefined) return { ...known, status: "closed", why: "nobody has it open" };
    return { ...known, status: "orphaned", why: gone };
  } catch (error) {
    return unknown((error as Error).message, path);
  }
}

function whyGone(path: string, id: string): string | undefined {
  // A folder that cannot be read, or a damaged store.json, is not one that is gone: this throws.
  const identity = readIdentity(path);
  if (identity === undefined) return `there is no store at ${path}`;
  return identity.id === id ? undefined : `there is another store at ${path}`;
}

function bytesOf(folder: string): number {
  let bytes = 0;
  try {
    for (const name of readdirSync(folder)) {
      const stats = lstatSync(join(folder, name), { throwIfNoEntry: false });
      bytes += (stats?.blocks ?? 0) * 512;
    }
  } catch {
    // Not this user's.
  }
  return bytes;
}

/** Removes those that are still orphaned when they are looked at again; returns their folders. */
export function removeOrphans(memories: readonly FoundMemoryFolder[]): string[] {
  const removed: string[] = [];
  for (const { folder } of memories) {
    const id = MEMORY.exec(folder.slice(folder.lastIndexOf("/") + 1))?.[1];
    if (id === undefined || look(folder, id).status !== "orphaned") continue;
    rmSync(folder, { recursive: true, force: true });
    removed.push(folder);
  }
  return removed;
}
