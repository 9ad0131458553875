/**
 * Tools for stores as wholes, by their folders: whether all is sound, what is in them, a copy to
 * fall back on, and the way back. What can be asked of a store that is open is also a method of
 * `Database`.
 */

import { whileAlone } from "../attach/attach.ts";
import type { Damage } from "../folder/files.ts";
import { NodeFiles } from "../folder/node-files.ts";
import {
  explainedOnDisk,
  makeFolder,
  newIdentity,
  readIdentity,
  withOpenLock,
  writeIdentity,
} from "../folder/store-files.ts";
import { isDamage } from "../log/head.ts";
import { LOG_FOLDER } from "../log/segments/segments.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { coded } from "../runtime/system-errors.ts";
import { type Copied, restoreFiles } from "../tools/files/copy.ts";
import {
  type InspectedCheckpoint,
  type InspectedSegment,
  inspectCheckpoint,
  inspectSegment,
} from "../tools/files/inspect.ts";
import type { FileProgress } from "../tools/files/pauses.ts";
import { type VerifiedFiles, verifyFiles } from "../tools/files/verify.ts";
import type { InspectedTable } from "../tools/tables/inspect.ts";
import type { Progress } from "../tools/tables/tool-run.ts";
import type { Verification } from "../tools/tables/verify.ts";
import { open } from "./open.ts";
import { folderOf, settingsOf } from "./options.ts";

const TOOL_OPTIONS = ["signal", "onProgress"];
const VERIFY_OPTIONS = [...TOOL_OPTIONS, "mostProblems"];
const RESTORE_OPTIONS = [...TOOL_OPTIONS, "to", "memoryDir"];

/** How far a tool is: with a file, or with the rows of a table. */
export type ToolProgress = FileProgress | Progress;

export interface ToolOptions {
  readonly signal?: AbortSignal;
  /** Called between pieces of work. */
  readonly onProgress?: (progress: ToolProgress) => void;
}

export interface VerifiedStore {
  readonly isSound: boolean;
  /** Log and checkpoints; undefined for a store without a log. */
  readonly files: VerifiedFiles | undefined;
  /** Memory; undefined if it is gone and cannot be rebuilt from the files. */
  readonly memory: Verification | undefined;
  /** Everything that is wrong, in plain sentences. */
  readonly problems: readonly string[];
}

/** Every checksum on disk, every structure in memory, every index against its rows. */
export async function verify(path: string, options: ToolOptions = {}): Promise<VerifiedStore> {
  const { path: folder } = settingsOf({ path });
  refuseUnknownOptions("verify", options, VERIFY_OPTIONS);
  return coded(folder, () => verifyFolder(folder, options));
}

async function verifyFolder(folder: string, options: ToolOptions): Promise<VerifiedStore> {
  const identity = identityOf(folder);
  const { logId } = identity;
  const files =
    logId === undefined
      ? undefined
      : await verifyFiles(new NodeFiles(folder), { ...options, logId });
  const problems = (files?.damage ?? []).map(sentence);
  let memory: Verification | undefined;
  try {
    await using db = await open({ path: folder, timeoutMs: DEFAULT_TIMEOUT_MS });
    memory = await db.verify(options);
    problems.push(...memory.problems);
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_CORRUPT") throw error;
    problems.push(error.message);
  }
  return { isSound: problems.length === 0, files, memory, problems };
}

/** A table of a store by its name, or a file of its log or checkpoints, as "log/0000000001.log". */
export type Inspectable = { readonly table: string } | { readonly file: string };

export async function inspect(
  path: string,
  what: { readonly table: string },
): Promise<InspectedTable>;
export async function inspect(
  path: string,
  what: { readonly file: string; readonly records?: boolean },
): Promise<InspectedSegment | InspectedCheckpoint>;
export async function inspect(
  path: string,
  what: Inspectable & { readonly records?: boolean },
): Promise<InspectedTable | InspectedSegment | InspectedCheckpoint> {
  const { path: folder } = settingsOf({ path });
  refuseUnknownOptions("inspect", what, ["table", "file", "records"]);
  return coded(folder, () => inspectFolder(folder, what));
}

async function inspectFolder(
  folder: string,
  what: Inspectable & { readonly records?: boolean },
): Promise<InspectedTable | InspectedSegment | InspectedCheckpoint> {
  if ("table" in what) {
    identityOf(folder);
    await using db = await open({ path: folder, timeoutMs: DEFAULT_TIMEOUT_MS });
    return await db.inspect(what.table);
  }
  const files = new NodeFiles(folder);
  const { file, records = false } = what;
  if (typeof file !== "string" || !files.has(file)) {
    throw new SituError("SITU_CONFIG", `${folder} has no file ${show(file)}`);
  }
  const found = explainedOnDisk(folder, () =>
    file.startsWith(`${LOG_FOLDER}/`)
      ? inspectSegment(files, file, { records })
      : inspectCheckpoint(files, file),
  );
  if (isDamage(found)) throw new SituError("SITU_CORRUPT", sentence(found));
  return found;
}

/** Copies a store, running or not, to an empty folder; `restore` makes a store of it. */
export async function backup(
  path: string,
  folder: string,
  options: ToolOptions = {},
): Promise<Copied> {
  const { path: store } = settingsOf({ path });
  refuseUnknownOptions("backup", options, TOOL_OPTIONS);
  const target = folderOf("the folder of the backup", folder);
  return coded(store, async () => {
    identityOf(store);
    await using db = await open({ path: store, timeoutMs: DEFAULT_TIMEOUT_MS });
    return await db.backup(target, options);
  });
}

export interface RestoreOptions extends ToolOptions {
  /** The store as of this moment. Default: as new as the files allow. */
  readonly to?: Date;
  /** Where the new store's memory is to be; as in `open`. */
  readonly memoryDir?: string;
}

/**
 * Makes a store at `path` from a backup, or from the folder of a store that cannot be opened or that
 * has more than one wants. The source is only read.
 */
export async function restore(
  from: string,
  path: string,
  options: RestoreOptions = {},
): Promise<Copied> {
  refuseUnknownOptions("restore", options, RESTORE_OPTIONS);
  const { to, memoryDir, signal, onProgress } = options;
  if (to !== undefined && !(to instanceof Date && Number.isFinite(to.getTime()))) {
    throw new SituError("SITU_CONFIG", `to is a Date, not ${show(to)}`);
  }
  const given = memoryDir === undefined ? {} : { memoryDir };
  const settings = settingsOf({ path, ...given });
  const { path: source } = settingsOf({ path: from });
  return coded(settings.path, async () => {
    makeFolder(settings.path);
    return withOpenLock(settings.path, () => whileAlone(settings.path, restoreLocked));
  });

  async function restoreLocked(): Promise<Copied> {
    if (readIdentity(settings.path) !== undefined) {
      throw new SituError(
        "SITU_CONFIG",
        `there is a store at ${settings.path} already: restore to an empty folder`,
      );
    }
    const point = to === undefined ? {} : { toMs: to.getTime() };
    const [sourceFiles, files] = [new NodeFiles(source), new NodeFiles(settings.path)];
    const copied = await restoreFiles(sourceFiles, files, { ...point, signal, onProgress });
    const identity = newIdentity(settings.memoryDir);
    writeIdentity(settings.path, { ...identity, logId: copied.logId, logStarted: true });
    return copied;
  }
}

function identityOf(folder: string) {
  const identity = readIdentity(folder);
  if (identity !== undefined) return identity;
  throw new SituError("SITU_CONFIG", `there is no store at ${folder}`);
}

function sentence({ file, offset, what }: Damage): string {
  return `${file}, byte ${offset}: ${what}`;
}
