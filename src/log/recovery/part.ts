/**
 * One thread's part of a recovery. Memory is cut into chunks that no block crosses; each thread
 * rebuilds the chunks that are its own, from the checkpoints and then from all of the log, of
 * which it applies what lies in its chunks. So no two threads write the same word.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { NodeFiles } from "../../folder/node-files.ts";
import { bootId } from "../../memory/boot.ts";
import { MappedSegments } from "../../memory/mapped-segments.ts";
import { joinUnpublished } from "../../memory/mapped-store.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { nowMs } from "../../runtime/clock.ts";
import { Checkpoint } from "../checkpoint/reader.ts";
import { isDamage } from "../head.ts";
import { PayloadReader } from "../segments/payloads.ts";
import { Replay } from "./apply.ts";
import type { RecoveryPlan } from "./plan.ts";

/** How often a thread tells how far it is. */
const TELL_MS = 50;

export interface RecoveryTask {
  readonly role: "recovery";
  /** The store's folder, and the folder of its memory. */
  readonly path: string;
  readonly folder: string;
  readonly plan: RecoveryPlan;
  readonly part: number;
  readonly parts: number;
}

/** What a thread tells: how much it has read, of what all read. */
export interface PartProgress {
  readonly part: number;
  readonly checkpointBytes: number;
  readonly logBytes: number;
  /** At its end: the records in the log. */
  readonly done?: { readonly records: number };
  /** Or a checkpoint turned out to be damaged: the memory is to be thrown away. */
  readonly damage?: Damage;
}

/** In a thread of its own. */
export function recoverPart(task: RecoveryTask, tell: (progress: PartProgress) => void): void {
  const memory = joinUnpublished(new MappedSegments(task.folder), bootId());
  try {
    rebuild(new NodeFiles(task.path), task.plan, memory, task.part, task.parts, tell);
  } finally {
    memory.close();
  }
}

export function rebuild(
  files: StoreFiles,
  plan: RecoveryPlan,
  memory: StoreMemory,
  part: number,
  parts: number,
  tell: (progress: PartProgress) => void,
): void {
  const isMine = (chunk: number): boolean => chunk % parts === part;
  const replay = new Replay(memory, { isMine, startEpoch: plan.startEpoch });
  let checkpointBytes = 0;
  let logBytes = 0;
  let toldMs = nowMs();
  const tellSometimes = (): void => {
    if (nowMs() - toldMs < TELL_MS) return;
    toldMs = nowMs();
    tell({ part, checkpointBytes, logBytes });
  };
  for (const { name } of plan.chain) {
    const damage = load(files, name, replay, (bytes) => {
      checkpointBytes += bytes;
      tellSometimes();
    });
    if (damage !== undefined) {
      tell({ part, checkpointBytes, logBytes, damage });
      return;
    }
  }
  checkpointBytes = plan.checkpointBytes;
  const payloads = new PayloadReader(files);
  try {
    for (const batch of plan.batches) {
      replay.applyBatch(payloads.read(batch));
      logBytes += batch.payloadBytes;
      tellSometimes();
    }
  } finally {
    payloads.close();
  }
  replay.finish();
  tell({ part, checkpointBytes, logBytes, done: { records: replay.records } });
}

function load(
  files: StoreFiles,
  name: string,
  replay: Replay,
  onBytes: (bytes: number) => void,
): Damage | undefined {
  const checkpoint = Checkpoint.open(files, name);
  if (isDamage(checkpoint)) return checkpoint;
  try {
    return replay.load(checkpoint, onBytes);
  } finally {
    checkpoint.close();
  }
}
