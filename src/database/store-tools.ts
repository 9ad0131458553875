/**
 * Tools that take the folder of a store: verify, inspect, backup and restore. Except for `restore`,
 * they are also methods of `Database`.
 */

import { whileAlone } from "../attach/alone.ts";
import { isOpenSomewhere, type Opener, openersOf } from "../attach/openers.ts";
import type { Damage } from "../folder/files.ts";
import { NodeFiles } from "../folder/node-files.ts";
import { withOpenLock } from "../folder/open-lock.ts";
import {
  explainedOnDisk,
  makeFolder,
  newIdentity,
  readIdentity,
  writeIdentity,
} from "../folder/store-files.ts";
import { isDamage } from "../log/head.ts";
import { LOG_FOLDER } from "../log/segments/segments.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { coded } from "../runtime/system-errors.ts";
import { type Copied, hasPageFiles, restoreFiles } from "../tools/files/copy.ts";
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
import { folderOf, settingsOf } from "./open-options.ts";

const TOOL_OPTIONS = ["signal", "onProgress"];
const VERIFY_OPTIONS = [...TOOL_OPTIONS, "mostProblems"];
const RESTORE_OPTIONS = [...TOOL_OPTIONS, "to", "memoryDir"];

/** How far a tool is: with a file, or with the rows of a table. */
export type ToolProgress = FileProgress | Progress;

/** What `verify`, `inspect` and `backup` take. */
export interface ToolOptions {
  /** Stops the tool. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: ToolProgress) => void;
}

/** What `verify` found. */
export interface VerifiedStore {
  /** Whether there are no problems. */
  readonly isSound: boolean;
  /** Log and checkpoints; `undefined` for a store without a log. */
  readonly files: VerifiedFiles | undefined;
  /** Memory; `undefined` if it is gone and cannot be recovered from the files. */
  readonly memory: Verification | undefined;
  /** All problems, as sentences. */
  readonly problems: readonly string[];
}

/** Checks every checksum on disk, every structure in memory, and every index against its rows. */
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

/** A table by its name, or a file of the log or of a checkpoint, such as "log/0000000001.log". */
export type Inspectable = { readonly table: string } | { readonly file: string };

/** Describes a table of a store: its rows, the shape of its structures, and the memory they use. */
export async function inspect(
  path: string,
  what: { readonly table: string },
): Promise<InspectedTable>;
/** Describes a file of the log or of a checkpoint; with `records`, all that it contains. */
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

/** Copies a store, whether it is open or not, to an empty folder: see `restore`. */
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

/** Who has a store open. */
export interface Openers {
  /** Whether any process has it open, also one that is not visible here, in another container. */
  readonly isOpen: boolean;
  /** The threads and processes that are visible here. */
  readonly openers: readonly Opener[];
}

/** Lists the threads and processes that have a store open, without opening it. */
export async function openers(path: string): Promise<Openers> {
  const { path: folder } = settingsOf({ path });
  return coded(folder, async () => {
    identityOf(folder);
    const visible = openersOf(folder);
    return { isOpen: visible.length > 0 || (await isOpenSomewhere(folder)), openers: visible };
  });
}

/** What `restore` takes. */
export interface RestoreOptions extends ToolOptions {
  /** The point in time to restore to. Default: the latest that the files contain. */
  readonly to?: Date;
  /** The folder for the new store's memory, as in `open`. */
  readonly memoryDir?: string;
}

/**
 * Restores a backup, or the files of a store, to a new store at `path`; with `to`, as of a point in time.
 * The source is only read. A store with tables on the device must not be open meanwhile.
 */
export async function restore(
  from: string,
  path: string,
  options: RestoreOptions = {},
): Promise<Copied> {
  refuseUnknownOptions("restore", options, RESTORE_OPTIONS);
  const { to, memoryDir, signal, onProgress } = options;
  if (to !== undefined && !(to instanceof Date && Number.isFinite(to.getTime()))) {
    throw new SituError("SITU_CONFIG", `to must be a Date, not ${show(to)}`);
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
        `there is already a store at ${settings.path}: restore to an empty folder`,
      );
    }
    const point = to === undefined ? {} : { toMs: to.getTime() };
    const [sourceFiles, files] = [new NodeFiles(source), new NodeFiles(settings.path)];
    const copy = (): Promise<Copied> =>
      restoreFiles(sourceFiles, files, { ...point, signal, onProgress });
    // Of a store that is in use, pages may be written again while they are copied. A backup is in nobody's use.
    const isStore = readIdentity(source) !== undefined && hasPageFiles(sourceFiles);
    const copied = isStore
      ? await withOpenLock(source, () => whileAlone(source, copy))
      : await copy();
    const identity = newIdentity(settings.memoryDir);
    // A backup has no store.json: then the size is what its log says.
    const memoryBytes = readIdentity(source)?.memoryBytes;
    const size = memoryBytes === undefined ? {} : { memoryBytes };
    writeIdentity(settings.path, { ...identity, ...size, logId: copied.logId, logStarted: true });
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
