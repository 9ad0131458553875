/**
 * Backups, and restoring to a point in time: both copy a part of a store's files to an empty folder.
 * Recovery makes of them the store as of the last batch of the log that was copied. Not copied is what
 * names the store (store.json).
 *
 * Copied is what a plan says (copy-plan.ts), so that a power loss in between leaves no store there:
 * the pages of device tables and the log first, the checkpoints under another name until all is synced. What was
 * copied is then read again. Whatever fails, the files that were made are removed.
 *
 * Pages of device tables are copied after it is settled which batch of the log is the last one. What leads to a page by then
 * was written before; pages that are written meanwhile, and may be copied in part, nothing leads to in the copy. So
 * the copy is right if no page is written again that was in use at the last batch: of a store that runs, the caller
 * holds them (tables/device/elements/device-jobs.ts); and an earlier point in time cannot be had.
 */

import { DEVICE_FOLDER, isDeviceFile } from "../../device/page-file.ts";
import { type Damage, type StoreFiles, writeFully } from "../../folder/files.ts";
import { CHECKPOINTS_FOLDER, UNFINISHED } from "../../log/checkpoint/format.ts";
import { Checkpoint } from "../../log/checkpoint/reader.ts";
import { isDamage } from "../../log/head.ts";
import { END_NAME, writeLogEnd } from "../../log/segments/end.ts";
import { LOG_FOLDER } from "../../log/segments/segments.ts";
import { crc32 } from "../../runtime/checksum.ts";
import { SituError } from "../../runtime/errors.ts";
import { type CopiedFile, type CopyPlan, type Point, planCopy } from "./copy-plan.ts";
import { type FileToolOptions, Pauses } from "./pauses.ts";
import { PinnedFiles } from "./pinned.ts";

const PIECE_BYTES = 1 << 20;
/** How often it begins again because a running store has removed what was to be copied. */
const ATTEMPTS = 10;
/** The same where it looks like damage. */
const DAMAGE_ATTEMPTS = 2;

export interface CopyOptions extends FileToolOptions {
  /** The id of the store's log. Default: that of the newest segment. */
  readonly logId?: string | undefined;
}

/** What was copied, and which state of the store it is. */
export interface Copied {
  /** Every commit up to this epoch is in the copy, and none after it. */
  readonly epoch: number;
  /** When the last of them was written, wall clock in ms. */
  readonly closedMs: number;
  readonly logId: string;
  readonly checkpoints: readonly string[];
  readonly segments: readonly string[];
  /** Files of device tables. */
  readonly pages: readonly string[];
  readonly bytes: number;
  /** Damage in checkpoints that older ones stood in for. */
  readonly damage: readonly Damage[];
}

/**
 * A backup of a store that goes on running: its newest sound checkpoint, and the log from there to
 * now. Nobody waits for it, and nothing of the store is changed. With the log that a store keeps
 * (keepLogMs), a backup of the folder as it is serves more points in time.
 */
export async function backupFiles(
  from: StoreFiles,
  to: StoreFiles,
  options: CopyOptions = {},
): Promise<Copied> {
  return await copyStore(from, to, {}, options);
}

export interface RestoreOptions extends CopyOptions, Point {}

/**
 * Restores a store to a point, which must not lie before the earliest checkpoint that is there, nor
 * behind damage. A batch is closed within `lagMs` of its commits ("lazy"), or at once ("sync"); so a
 * point given as a time is exact to that, and to the steps of the machine's clock.
 */
export async function restoreFiles(
  from: StoreFiles,
  to: StoreFiles,
  options: RestoreOptions = {},
): Promise<Copied> {
  const { toMs, toEpoch, ...others } = options;
  for (const [name, value] of Object.entries({ toMs, toEpoch })) {
    if (value === undefined || (Number.isFinite(value) && value >= 0)) continue;
    throw new SituError("SITU_CONFIG", `${name} is a number, 0 or more, not ${value}`);
  }
  return await copyStore(from, to, { toMs, toEpoch }, others);
}

/** Copies the state of a store at a point, while it may go on writing and removing files. */
async function copyStore(
  from: StoreFiles,
  to: StoreFiles,
  point: Point,
  options: CopyOptions,
): Promise<Copied> {
  refuseUsed(to);
  const known: Damage[] = [];
  for (let attempt = 1; ; attempt++) {
    options.signal?.throwIfAborted();
    try {
      const outcome = await tryCopy(from, to, point, known, options);
      // From another checkpoint, then. There is an end to it: none is tried twice.
      if (!isDamage(outcome)) return outcome;
      known.push(outcome);
    } catch (error) {
      if (attempt >= attemptsAt(error)) throw error;
    }
  }
}

async function tryCopy(
  from: StoreFiles,
  to: StoreFiles,
  point: Point,
  known: readonly Damage[],
  options: CopyOptions,
): Promise<Copied | Damage> {
  const plan = planCopy(from, point, options.logId, known);
  // After the plan: where there is no such file by then, nothing that the plan has leads to one.
  const pages = pageFilesOf(from);
  if (pages.length > 0) refuseEarlier(from, point, plan, options.logId);
  const files = [...pages, ...filesOf(plan)];
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  // What was found sound stays as it is: files only grow, and are removed.
  const pinned = new PinnedFiles(
    from,
    files.map(({ name }) => name),
  );
  try {
    // Everything is read twice: looked at, then copied; and the copy once more.
    const pauses = new Pauses(options, 3 * bytes);
    const damage = await lookAtCheckpoints(pinned, plan, pauses);
    if (damage !== undefined) return damage;
    await copyAll(pinned, to, plan, pages, pauses);
    return {
      epoch: plan.epoch,
      closedMs: plan.closedMs,
      logId: plan.logId,
      checkpoints: plan.chain.map(({ name }) => name),
      segments: plan.segments.map(({ name }) => name),
      pages: pages.map(({ name }) => name),
      bytes,
      damage: known,
    };
  } finally {
    pinned.close();
  }
}

/** Whether a store has tables on the device. */
export function hasPageFiles(from: StoreFiles): boolean {
  return from.list(DEVICE_FOLDER).some(isDeviceFile);
}

/** The files of device tables, with all that is in them. */
function pageFilesOf(from: StoreFiles): CopiedFile[] {
  const names = from.list(DEVICE_FOLDER).filter(isDeviceFile);
  return names.map((each) => {
    const name = `${DEVICE_FOLDER}/${each}`;
    const file = from.open(name, true);
    try {
      return { name, bytes: file.size() };
    } finally {
      file.close();
    }
  });
}

function filesOf({ chain, segments }: CopyPlan): CopiedFile[] {
  return [...segments, ...chain].map(({ name, bytes }) => ({ name, bytes }));
}

/**
 * What a running store may have brought about: a file is gone, or the log, as it was seen, does not
 * go with a checkpoint that was seen before. Real damage is found again.
 */
function attemptsAt(error: unknown): number {
  if ((error as NodeJS.ErrnoException).code === "ENOENT") return ATTEMPTS;
  const isDamage = error instanceof SituError && error.code === "SITU_CORRUPT";
  return isDamage ? DAMAGE_ATTEMPTS : 1;
}

async function lookAtCheckpoints(
  files: StoreFiles,
  { chain }: CopyPlan,
  pauses: Pauses,
): Promise<Damage | undefined> {
  for (const { name } of chain) {
    const checkpoint = Checkpoint.open(files, name);
    if (isDamage(checkpoint)) return checkpoint;
    try {
      for (let entry = 0; entry < checkpoint.entries; entry++) {
        const bytes = checkpoint.chunkBytesOf(entry);
        const damage = bytes === 0 ? undefined : checkpoint.readChunk(entry);
        if (damage !== undefined) return damage;
        await pauses.after(name, bytes);
      }
    } finally {
      checkpoint.close();
    }
  }
  return undefined;
}

async function copyAll(
  from: StoreFiles,
  to: StoreFiles,
  plan: CopyPlan,
  pages: readonly CopiedFile[],
  pauses: Pauses,
): Promise<void> {
  const files = filesOf(plan);
  const made: string[] = [];
  const folders = [LOG_FOLDER, CHECKPOINTS_FOLDER, ...(pages.length > 0 ? [DEVICE_FOLDER] : [])];
  try {
    for (const folder of folders) to.makeFolder(folder);
    to.syncFolder("");
    for (const file of pages) {
      made.push(file.name);
      const checksums = await copyOne(from, to, file, file.name, pauses);
      await comparePieces(to, file, checksums, pauses);
    }
    if (pages.length > 0) to.syncFolder(DEVICE_FOLDER);
    for (const file of files) {
      const name = targetOf(file.name);
      made.push(name);
      await copyOne(from, to, file, name, pauses);
    }
    to.syncFolder(LOG_FOLDER);
    made.push(END_NAME);
    writeLogEnd(to, plan.end, plan.end);
    for (const { name } of files) {
      const target = targetOf(name);
      if (target === name) continue;
      to.rename(target, name);
      made[made.indexOf(target)] = name;
    }
    to.syncFolder(CHECKPOINTS_FOLDER);
    await compare(to, plan, pauses);
  } catch (error) {
    for (const name of made) removeQuietly(to, name);
    throw error;
  }
}

/** After a failure, which is what is told, not that of tidying up. */
function removeQuietly(files: StoreFiles, name: string): void {
  try {
    if (files.has(name)) files.remove(name);
  } catch {
    // Without a store.json beside it, it is nothing but a file.
  }
}

/** Under which name a file is copied before all are there. */
function targetOf(name: string): string {
  return name.startsWith(`${CHECKPOINTS_FOLDER}/`) ? name + UNFINISHED : name;
}

async function copyOne(
  from: StoreFiles,
  to: StoreFiles,
  { name, bytes }: CopiedFile,
  target: string,
  pauses: Pauses,
): Promise<number[]> {
  const source = from.open(name, true);
  const copy = to.create(target, bytes);
  const checksums: number[] = [];
  try {
    const piece = Buffer.alloc(Math.min(bytes, PIECE_BYTES));
    for (let at = 0; at < bytes; ) {
      const wanted = piece.subarray(0, Math.min(piece.length, bytes - at));
      const found = source.read(wanted, at);
      if (found < wanted.length) throw shortened(name, at + found);
      writeFully(copy, [wanted], at);
      checksums.push(crc32(wanted));
      at += wanted.length;
      await pauses.after(name, wanted.length);
    }
    copy.sync();
  } finally {
    copy.close();
    source.close();
  }
  return checksums;
}

/** Whether the pieces of a copy are what was read: pages in it may be of no use, and cannot be checked one by one. */
async function comparePieces(
  to: StoreFiles,
  { name, bytes }: CopiedFile,
  checksums: readonly number[],
  pauses: Pauses,
): Promise<void> {
  const copy = to.open(name, true);
  try {
    const piece = Buffer.alloc(Math.min(bytes, PIECE_BYTES));
    for (const [i, checksum] of checksums.entries()) {
      const at = i * PIECE_BYTES;
      const wanted = piece.subarray(0, Math.min(piece.length, bytes - at));
      if (copy.read(wanted, at) < wanted.length || crc32(wanted) !== checksum) {
        const what = "it is not what was written";
        throw notWhatWasCopied(to, shown({ file: name, offset: at, what }));
      }
      await pauses.after(name, wanted.length);
    }
  } finally {
    copy.close();
  }
}

/** Whether what is there now is what was to be copied: the disk has been in between. */
async function compare(to: StoreFiles, plan: CopyPlan, pauses: Pauses): Promise<void> {
  const found = planCopy(to, {}, plan.logId, []);
  const damage = await lookAtCheckpoints(to, found, pauses);
  const isSame =
    found.epoch === plan.epoch &&
    JSON.stringify(filesOf(found)) === JSON.stringify(filesOf(plan)) &&
    damage === undefined;
  if (isSame) return;
  const what = damage === undefined ? `it ends with epoch ${found.epoch}` : shown(damage);
  throw notWhatWasCopied(to, what);
}

function notWhatWasCopied(to: StoreFiles, what: string): SituError {
  return new SituError("SITU_CORRUPT", `the copy in ${to.place} is not what was copied: ${what}`);
}

function shown({ file, offset, what }: Damage): string {
  return `${file}, byte ${offset}: ${what}`;
}

function shortened(name: string, at: number): SituError {
  return new SituError("SITU_CORRUPT", `${name} was shortened to ${at} bytes while it was copied`);
}

/** Pages that were in use at an earlier point may have been written again since. */
function refuseEarlier(
  from: StoreFiles,
  { toMs, toEpoch }: Point,
  plan: CopyPlan,
  logId: string | undefined,
): void {
  if (toMs === undefined && toEpoch === undefined) return;
  const { epoch } = planCopy(from, {}, logId, []);
  if (plan.epoch === epoch) return;
  throw new SituError(
    "SITU_UNSUPPORTED",
    `${from.place} has tables on the device: it can be restored as of the end of its log (epoch ${epoch}), not to ` +
      `an earlier point (epoch ${plan.epoch}). Leave the point in time out`,
  );
}

function refuseUsed(to: StoreFiles): void {
  const used = [LOG_FOLDER, CHECKPOINTS_FOLDER, DEVICE_FOLDER].find(
    (folder) => to.list(folder).length > 0,
  );
  if (used === undefined) return;
  throw new SituError(
    "SITU_CONFIG",
    `${to.place}/${used} is not empty: a store is copied to a folder of its own`,
  );
}
