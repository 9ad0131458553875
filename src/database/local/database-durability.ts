/** The durability of an open database: its mode, the thread that writes the log, and waiting for the disk. */

import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import type { DurabilityMode } from "../../attach/settings.ts";
import { DISK_FULL, FAILED, LOST, RUNNING } from "../../engine/durability.ts";
import type { Executor } from "../../engine/executor.ts";
import { LAG_MS } from "../../engine/slot.ts";
import { NodeFiles } from "../../folder/node-files.ts";
import {
  explainedOnDisk,
  type Identity,
  makeFolder,
  memoryFolder,
} from "../../folder/store-files.ts";
import { figureOf } from "../../log/figures.ts";
import { LOG_SCRIPT } from "../../log/thread.ts";
import { LogThreadKeeper } from "../../log/thread-keeper.ts";
import { CHECKPOINTS_DONE, CHECKPOINTS_WANTED } from "../../memory/control.ts";
import { nowMs, sleep } from "../../runtime/clock.ts";
import { type Holder, SituError } from "../../runtime/errors.ts";
import { DURABLE_LOOK_MS, MAX_TIMEOUT_MS } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import { threadScript } from "../../runtime/thread-script.ts";
import { beginDeviceJob, endDeviceJob } from "../../tables/device/elements/device-jobs.ts";
import type { Copied } from "../../tools/files/copy.ts";
import type { FileToolOptions } from "../../tools/files/pauses.ts";
import type { Settings } from "../open-options.ts";

/** How far the log is, and who writes it: part of `db.stats()`. */
export interface DurabilityStats {
  readonly mode: DurabilityMode;
  /** All commits up to this epoch are on disk. */
  readonly durableEpoch: number;
  readonly state: "running" | "disk full" | "failed" | "memory lost";
  /** The process that writes the log; undefined while another is about to take over. */
  readonly writer: Holder | undefined;
  /** Bytes written to the log since the store was created or recovered. */
  readonly logBytes: number;
  readonly batches: number;
  readonly records: number;
  readonly checkpoints: number;
  readonly lastCheckpoint:
    | { readonly epoch: number; readonly bytes: number; readonly ms: number; readonly kind: string }
    | undefined;
}

const STATES: Readonly<Record<number, DurabilityStats["state"]>> = {
  [RUNNING]: "running",
  [DISK_FULL]: "disk full",
  [FAILED]: "failed",
  [LOST]: "memory lost",
};

export class DatabaseDurability {
  readonly mode: DurabilityMode;
  readonly #executor: Executor;
  readonly #host: LogThreadKeeper | undefined;

  constructor(executor: Executor, settings: Settings, identity: Identity | undefined) {
    this.#executor = executor;
    const { isLogged } = executor.durability;
    this.mode = isLogged ? (settings.durability ?? "lazy") : "none";
    if (!isLogged || identity?.logId === undefined) return;
    // Before anything is promised to be on disk.
    threadScript(LOG_SCRIPT);
    const { control } = executor.memory;
    control.i32[control.slotAt(executor.slot) + LAG_MS] = settings.lagMs;
    // In "sync" nothing is acknowledged before it is on disk.
    if (this.mode === "lazy") executor.durability.lagMs = settings.lagMs;
    this.#host = new LogThreadKeeper(executor, {
      path: settings.path,
      memory: memoryFolder(identity),
      logId: identity.logId,
      checkpointMs: settings.checkpointMs,
      checkpointBytes: settings.checkpointBytes,
      keepLogMs: settings.keepLogMs,
      keepLogBytes: settings.keepLogBytes,
    });
    executor.durability.announce();
  }

  /** Whether a transaction with this option returns only when it is on disk. */
  waits(wanted: DurabilityMode | undefined): boolean {
    if (wanted === undefined) return this.mode === "sync";
    if (wanted === "sync" && this.mode !== "none") return true;
    if (wanted === "lazy" && this.mode === "lazy") return false;
    throw new SituError("SITU_CONFIG", this.#notStricter(wanted));
  }

  #notStricter(wanted: unknown): string {
    if (wanted !== "sync" && wanted !== "lazy") {
      return `the durability of a transaction must be "sync" or "lazy", not ${show(wanted)}`;
    }
    return this.mode === "none"
      ? `durability "${wanted}": the store has no log; open it with durability "lazy" or "sync"`
      : `a transaction can be stricter than its database, but not less strict: this one was opened ` +
          `with durability "${this.mode}"`;
  }

  /** Waits for all that was committed before the call. */
  async durable(timeoutMs: number): Promise<void> {
    this.checkLogged("durable()");
    await this.#executor.durability.await(this.#executor.epochs.current(), timeoutMs);
  }

  /** Copies what is on disk, with all that was committed before the call. */
  async backup(path: string, folder: string, options: FileToolOptions): Promise<Copied> {
    this.checkLogged("backup()");
    makeFolder(folder);
    refuseUnlessEmpty(folder);
    const { backupFiles } = await import("../../tools/files/copy.ts");
    // Pages of device tables that are in use now are not written again before they were copied.
    beginDeviceJob(this.#executor);
    try {
      await this.#executor.durability.await(this.#executor.epochs.current(), MAX_TIMEOUT_MS);
      return await backupFiles(new NodeFiles(path), new NodeFiles(resolve(folder)), options);
    } finally {
      endDeviceJob(this.#executor);
    }
  }

  /** Has a checkpoint taken, and waits until it is on disk. */
  async checkpoint(isClosed: () => boolean): Promise<void> {
    this.checkLogged("checkpoint()");
    const { memory, durability } = this.#executor;
    const { i32 } = memory.control;
    const failures = figureOf(memory, "failedCheckpoints");
    const wanted = Atomics.add(i32, CHECKPOINTS_WANTED, 1) + 1;
    durability.call();
    const startMs = nowMs();
    for (;;) {
      const isOver = ((Atomics.load(i32, CHECKPOINTS_DONE) - wanted) | 0) >= 0;
      if (figureOf(memory, "failedCheckpoints") !== failures) {
        throw new SituError(
          "SITU_DISK_FULL",
          "the checkpoint could not be written; the log continues without it. Is there room on the disk?",
        );
      }
      if (isOver) return;
      if (durability.state >= FAILED) throw durability.failed("nothing was written");
      if (isClosed())
        throw new SituError(
          "SITU_CLOSED",
          "the database was closed while the checkpoint was written",
        );
      durability.ensureLogWriter();
      await sleep(Math.min(DURABLE_LOOK_MS, 1 + (nowMs() - startMs) / 10));
    }
  }

  /** Returns when all that was committed here is on disk; with an error if that cannot be had. */
  async stop(timeoutMs: number): Promise<SituError | undefined> {
    if (this.#host === undefined) return undefined;
    const { durability, committer } = this.#executor;
    let failure: SituError | undefined;
    try {
      await durability.await(committer.lastEpoch, timeoutMs);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      failure = error;
    }
    await this.#host.stop();
    // The disk has all of it after all; it was only not acknowledged.
    if (
      durability.isMemoryLost &&
      (await durability.awaitWritten(committer.lastEpoch, timeoutMs))
    ) {
      return undefined;
    }
    return failure;
  }

  stats(): DurabilityStats {
    const { memory, durability } = this.#executor;
    const { state } = durability;
    const checkpoints = figureOf(memory, "checkpoints");
    return {
      mode: this.mode,
      durableEpoch: durability.epoch,
      state: STATES[state],
      writer: durability.writer,
      logBytes: figureOf(memory, "logBytes"),
      batches: figureOf(memory, "batches"),
      records: figureOf(memory, "records"),
      checkpoints,
      lastCheckpoint:
        checkpoints === 0
          ? undefined
          : {
              epoch: figureOf(memory, "checkpointEpoch"),
              bytes: figureOf(memory, "checkpointBytes"),
              ms: figureOf(memory, "checkpointMs"),
              kind: figureOf(memory, "checkpointIsDelta") === 1 ? "delta" : "full",
            },
    };
  }

  /** Fails in a store without a log. */
  checkLogged(call: string): void {
    if (this.mode !== "none") return;
    throw new SituError(
      "SITU_CONFIG",
      `${call}: the store has no log; open it with durability "lazy" or "sync"`,
    );
  }
}

function refuseUnlessEmpty(folder: string): void {
  const [first] = explainedOnDisk(folder, () => readdirSync(folder));
  if (first === undefined) return;
  throw new SituError(
    "SITU_CONFIG",
    `${folder} is not empty (${first}): back up to an empty folder`,
  );
}
