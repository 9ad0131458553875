/**
 * Verifies the files of a store: every checksum of every segment and checkpoint, what the records
 * and chunks say, and that they belong together. A running store may write and remove files
 * meanwhile: what is removed while it is read was not needed any more.
 *
 * `damage` is what is wrong with what recovery may need: the log from the oldest checkpoint on, and
 * all checkpoints. What is wrong with older parts of the log, which are kept without need, or were
 * left by a log that has failed, is told `aside`. The bottom line is `recovery`: up to which epoch
 * the store could be recovered from these files as they are.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { CHECKPOINTS_FOLDER, UNFINISHED } from "../../log/checkpoint/format.ts";
import {
  Checkpoint,
  type CheckpointInfo,
  chainOf,
  listCheckpoints,
} from "../../log/checkpoint/reader.ts";
import { isDamage } from "../../log/head.ts";
import { planRecovery } from "../../log/recovery/plan.ts";
import { PayloadReader } from "../../log/segments/payloads.ts";
import { type LogScan, scanLog } from "../../log/segments/reader.ts";
import {
  firstNeeded,
  hasHead,
  listSegments,
  type SegmentFile,
} from "../../log/segments/segments.ts";
import { type SegmentSurvey, surveySegment } from "../../log/segments/survey.ts";
import { SituError } from "../../runtime/errors.ts";
import { type FileToolOptions, Pauses } from "./pauses.ts";
import { recordsFault } from "./records.ts";

/** How often it begins again because a running store has removed what was being read. */
const ATTEMPTS = 5;

export interface VerifyFilesOptions extends FileToolOptions {
  /** The id of the store's log, if it is known: what belongs to another one is damage. */
  readonly logId?: string | undefined;
}

export interface VerifiedFiles {
  readonly segments: number;
  readonly batches: number;
  readonly records: number;
  readonly logBytes: number;
  readonly checkpoints: readonly CheckpointInfo[];
  readonly checkpointBytes: number;
  /** Files that were to become a segment or a checkpoint, and did not. */
  readonly unfinished: readonly string[];
  /** Where a write that was cut short was found at the end of the log. */
  readonly cut: Damage | undefined;
  readonly damage: readonly Damage[];
  readonly aside: readonly Damage[];
  /** What the store can be recovered to from these files; undefined: it cannot. */
  readonly recovery:
    | { readonly epoch: number; readonly checkpoints: readonly string[] }
    | undefined;
}

export async function verifyFiles(
  files: StoreFiles,
  options: VerifyFilesOptions = {},
): Promise<VerifiedFiles> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await new Verification(files, options).run();
    } catch (error) {
      const isGone = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (!isGone || attempt >= ATTEMPTS) throw error;
    }
  }
}

class Verification {
  readonly #files: StoreFiles;
  readonly #options: VerifyFilesOptions;
  readonly #damage: Damage[] = [];
  readonly #aside: Damage[] = [];

  constructor(files: StoreFiles, options: VerifyFilesOptions) {
    this.#files = files;
    this.#options = options;
  }

  async run(): Promise<VerifiedFiles> {
    const files = this.#files;
    const { sound, damaged } = listCheckpoints(files);
    const segments = listSegments(files);
    const logId = this.#options.logId ?? logIdOf(segments, sound);
    this.#damage.push(...damaged);
    const totalBytes = [...segments, ...sound].reduce((sum, { bytes }) => sum + bytes, 0);
    const pauses = new Pauses(this.#options, totalBytes);
    for (const info of sound) await this.#lookAtCheckpoint(info, sound, logId, pauses);
    // Those that the log does not reach back to are there for others, which build on them.
    const own = sound.filter((info) => info.logId === logId);
    const points = own.filter((info) => firstNeeded(segments, info.startEpoch) >= 0);
    const startEpoch = (points.at(-1) ?? own[0])?.startEpoch ?? 0;
    const scan = scanLog(files, startEpoch);
    this.#lookAtScan(scan, points, logId);
    const needed = segments.slice(Math.max(firstNeeded(segments, startEpoch), 0));
    const surveys: SegmentSurvey[] = [];
    for (const segment of segments) {
      if (scan.unfinished.includes(segment.name)) continue;
      const isNeeded = needed.includes(segment);
      surveys.push(await this.#lookAtSegment(segment, isNeeded, scan, pauses));
    }
    const batches = surveys.flatMap((survey) => survey.batches);
    return {
      segments: surveys.length,
      batches: batches.length,
      records: batches.reduce((sum, { records }) => sum + records, 0),
      logBytes: surveys.reduce((sum, { usedBytes }) => sum + usedBytes, 0),
      checkpoints: sound,
      checkpointBytes: sound.reduce((sum, { bytes }) => sum + bytes, 0),
      unfinished: [...scan.unfinished, ...unfinishedCheckpoints(files)],
      cut: scan.cut,
      damage: this.#damage,
      aside: this.#aside,
      recovery: this.#recovery(logId),
    };
  }

  async #lookAtCheckpoint(
    info: CheckpointInfo,
    sound: readonly CheckpointInfo[],
    logId: string | undefined,
    pauses: Pauses,
  ): Promise<void> {
    const { name } = info;
    if (logId !== undefined && info.logId !== logId) {
      this.#add(this.#damage, { file: name, offset: 0, what: "it is of another store's log" });
    }
    const chain = chainOf(sound, info);
    if (isDamage(chain)) this.#add(this.#damage, chain);
    const checkpoint = Checkpoint.open(this.#files, name);
    if (isDamage(checkpoint)) {
      this.#add(this.#damage, checkpoint);
      return;
    }
    try {
      for (let entry = 0; entry < checkpoint.entries; entry++) {
        const bytes = checkpoint.chunkBytesOf(entry);
        if (bytes === 0) continue;
        const damage = checkpoint.readChunk(entry);
        if (damage !== undefined) this.#add(this.#damage, damage);
        await pauses.after(name, bytes);
      }
    } finally {
      checkpoint.close();
    }
  }

  /** Whether the log goes on from the oldest checkpoint without a gap, and all match it. */
  #lookAtScan(
    scan: LogScan,
    checkpoints: readonly CheckpointInfo[],
    logId: string | undefined,
  ): void {
    for (const damage of scan.damage) this.#add(this.#damage, damage);
    for (const damage of scan.aside) this.#add(this.#aside, damage);
    for (const { name, head } of scan.segments) {
      if (logId === undefined || head.logId === logId) continue;
      this.#add(this.#damage, { file: name, offset: 0, what: "it is of another store's log" });
    }
    const head = scan.segments.at(-1)?.head;
    for (const { name, startEpoch, logEpoch, geometry } of checkpoints) {
      const wrong = (what: string): void =>
        this.#add(this.#damage, { file: name, offset: 0, what });
      // The room for regions may differ: a store has it from the machine that it was rebuilt on.
      if (head !== undefined && geometry.regionBytes !== head.geometry.regionBytes) {
        wrong("the store of its log has another geometry");
      }
      // What comes behind damage is not known.
      const isReached = logEpoch <= startEpoch || logEpoch <= scan.lastEpoch;
      if (scan.damage.length > 0 || isReached) continue;
      wrong(`the log ends with epoch ${scan.lastEpoch}, and it needs the log up to ${logEpoch}`);
    }
  }

  async #lookAtSegment(
    segment: SegmentFile,
    isNeeded: boolean,
    scan: LogScan,
    pauses: Pauses,
  ): Promise<SegmentSurvey> {
    const into = isNeeded ? this.#damage : this.#aside;
    let survey = surveySegment(this.#files, segment);
    // Somebody may have been writing just where it was read: damage stays where it is.
    if (survey.damage.length > 0) survey = surveySegment(this.#files, segment);
    for (const damage of survey.damage) this.#add(into, damage);
    // In the last segment it may be a write cut short; in the others what nobody has published.
    const isTornEarlier = survey.torn !== undefined && !isNeeded;
    if (isTornEarlier && !isSame(survey.torn, scan.cut)) this.#add(into, survey.torn!);
    if (hasHead(segment)) {
      const reader = new PayloadReader(this.#files);
      try {
        for (const batch of survey.batches) {
          const fault = recordsFault(reader.read(batch), batch, segment.head.geometry);
          const { offset, payloadBytes } = batch;
          if (fault !== undefined) this.#add(into, { file: segment.name, offset, what: fault });
          await pauses.after(segment.name, payloadBytes);
        }
      } finally {
        reader.close();
      }
    }
    return survey;
  }

  /** The same place is told once, and in the list that matters more. */
  #add(into: Damage[], damage: Damage): void {
    const known = into === this.#damage ? this.#damage : [...this.#damage, ...this.#aside];
    if (!known.some((each) => isSame(each, damage))) into.push(damage);
  }

  #recovery(logId: string | undefined): VerifiedFiles["recovery"] {
    try {
      const { epoch, chain } = planRecovery(this.#files, logId ?? "", this.#damage);
      return { epoch, checkpoints: chain.map(({ name }) => name) };
    } catch (error) {
      if (error instanceof SituError && error.code === "SITU_CORRUPT") return undefined;
      throw error;
    }
  }
}

function isSame(a: Damage | undefined, b: Damage | undefined): boolean {
  return a?.file === b?.file && a?.offset === b?.offset;
}

/** The log that the newest sound file is of. */
export function logIdOf(
  segments: readonly SegmentFile[],
  checkpoints: readonly CheckpointInfo[],
): string | undefined {
  return segments.findLast(hasHead)?.head.logId ?? checkpoints[0]?.logId;
}

function unfinishedCheckpoints(files: StoreFiles): string[] {
  const names = files.list(CHECKPOINTS_FOLDER).filter((name) => name.endsWith(UNFINISHED));
  return names.map((name) => `${CHECKPOINTS_FOLDER}/${name}`);
}
