/**
 * The writer of the log (docs/DESIGN.md §5: durability). One round:
 *
 *   1. E = the epoch; advance it; wait until nobody commits at E or before. What such commits have
 *      written to their journals has then been passed on, and whoever commits from now on has a
 *      later epoch.
 *   2. Gather all records up to E that are not in the log.
 *   3. Write them as one batch; sync.
 *   4. Publish E as the durable epoch, then give the journals' room back.
 *
 * So what is on disk is a whole prefix of epochs: a state that the store has had. There is one writer
 * at a time, whoever has its slot in the word LOG_WRITER. Should it die, nothing is lost: what it had not
 * published is still in the journals. Its successor begins a new segment, whose head says from
 * which epoch on it counts; a batch that the dead one wrote and did not publish is void.
 *
 * A full disk is a matter of time: the round is tried again. Any other failure is final, for
 * after it nobody knows what is on disk (engine/durability.ts).
 */

import { DISK_FULL, FAILED, OTHER_WRITER_ERRNO, RUNNING } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { awaitCommits } from "../engine/snapshots/snapshot.ts";
import type { StoreFiles } from "../folder/files.ts";
import { LOG_CALLS, LOG_WRITER } from "../memory/control.ts";
import { AssertionError } from "../runtime/assert.ts";
import { machineMs, wallClockMs } from "../runtime/clock.ts";
import { TimeoutError } from "../runtime/errors.ts";
import { LOG_PATIENCE_MS } from "../runtime/limits.ts";
import { logIdentityOf } from "./begin.ts";
import { addToFigure, setFigure } from "./figures.ts";
import { Packer } from "./segments/packing.ts";
import { nextSegment } from "./segments/segments.ts";
import { LogWriter, mayPass } from "./segments/writer.ts";
import { Tails } from "./tail.ts";

/** What became of a round: nothing to do, done, or to be tried again. */
export type Round = "idle" | "done" | "stalled" | "disk full" | "failed";

export class GroupCommit {
  readonly executor: Executor;
  readonly #files: StoreFiles;
  readonly #logId: string;
  readonly #tails: Tails;
  readonly #packer = new Packer();
  #writer: LogWriter | undefined;
  /** The last epoch of the last batch. */
  #written = 0;
  /** The calls that the last round has answered. */
  #answered = 0;

  constructor(executor: Executor, files: StoreFiles, logId: string) {
    this.executor = executor;
    this.#files = files;
    this.#logId = logId;
    this.#tails = new Tails(executor.memory);
  }

  /** Takes the role of the log's writer, if nobody living has it. */
  tryBegin(): boolean {
    const { executor } = this;
    const { i32 } = executor.memory.control;
    const mine = executor.slot + 1;
    const holder = Atomics.compareExchange(i32, LOG_WRITER, 0, mine);
    if (holder === 0) {
      this.#written = executor.durability.written;
      return true;
    }
    return executor.recoverIfDead(holder - 1) && this.tryBegin();
  }

  /** Calls that came since the last round. */
  get isCalled(): boolean {
    return Atomics.load(this.executor.memory.control.i32, LOG_CALLS) !== this.#answered;
  }

  /** One round; see above. */
  round(): Round {
    const { executor } = this;
    const { durability } = executor;
    if (durability.state === FAILED) return "failed";
    // Whoever has committed by now has its record in a journal, and an epoch that is closed below.
    const nowMs = Math.floor(machineMs()) | 0;
    if (!this.isCalled && !this.#tails.hasAny) {
      durability.setLoggedUntil(nowMs);
      return "idle";
    }
    const calls = Atomics.load(executor.memory.control.i32, LOG_CALLS);
    try {
      const last = this.#closeEpoch();
      this.#tails.gather(this.#written, last);
      if (this.#tails.records > 0) this.#write(last);
      durability.setLoggedUntil(nowMs);
      durability.publish(last, () => this.#tails.release());
    } catch (error) {
      return this.#failed(error);
    }
    this.#answered = calls;
    if (durability.state === DISK_FULL) durability.setState(RUNNING, 0);
    return "done";
  }

  /** Whether there is anything to be written, or somebody calls. */
  get isNeeded(): boolean {
    return this.isCalled || this.#tails.hasAny;
  }

  /** Work that can be done before it is needed, when nobody waits. */
  prepare(): void {
    try {
      this.#writer?.prepare();
    } catch {
      // It will be tried again when it is needed, and its failure told then.
    }
  }

  /** Gives the role back; nothing is lost with what is still in the journals. */
  end(): void {
    const { executor } = this;
    try {
      this.#writer?.close();
    } catch (error) {
      const { errno } = error as NodeJS.ErrnoException;
      // What was written since may be lost: it must not look as if nothing had happened.
      if (errno === OTHER_WRITER_ERRNO) executor.durability.setState(FAILED, errno);
      throw error;
    } finally {
      const { i32 } = executor.memory.control;
      // The next commit calls for another writer; one that did not see this yet is seen here.
      executor.durability.setRests(true);
      Atomics.compareExchange(i32, LOG_WRITER, executor.slot + 1, 0);
      if (this.#tails.hasAny) executor.durability.setRests(false);
    }
  }

  #closeEpoch(): number {
    const { executor } = this;
    const epoch = executor.epochs.current();
    executor.epochs.advance(epoch);
    awaitCommits(executor, epoch, LOG_PATIENCE_MS);
    executor.durability.setBlocker(-1);
    return epoch;
  }

  #write(last: number): void {
    const { memory } = this.executor;
    const tails = this.#tails;
    this.#writer ??= this.#open();
    const writer = this.#writer;
    const after = this.#written;
    const packed = this.#packer.pack(tails.parts);
    const isPacked = packed !== undefined;
    const batch = { after, last, records: tails.records, closedMs: wallClockMs(), isPacked };
    const bytes = writer.append(batch, isPacked ? [packed] : tails.parts);
    writer.sync();
    // From here on the batch counts, also for a successor; until here it is void.
    this.executor.durability.setWritten(last);
    this.#written = last;
    addToFigure(memory, "logBytes", bytes);
    addToFigure(memory, "batches", 1);
    addToFigure(memory, "records", tails.records);
    setFigure(memory, "segment", writer.position.number);
  }

  #open(): LogWriter {
    const identity = logIdentityOf(this.executor, this.#logId);
    const number = nextSegment(this.#files);
    return new LogWriter(this.#files, identity, number, this.#written, wallClockMs());
  }

  #failed(error: unknown): Round {
    // Somebody is committing and does not move: neither dead nor to be passed over.
    const { durability } = this.executor;
    if (error instanceof TimeoutError) {
      durability.setBlocker(error.holder?.slot ?? -1);
      return "stalled";
    }
    const { errno = 0 } = error as NodeJS.ErrnoException;
    if (mayPass(error)) {
      durability.setState(DISK_FULL, errno);
      return "disk full";
    }
    try {
      // A journal that cannot be mapped because the files are gone: the error is to say so.
      durability.lookAtMemory();
    } finally {
      durability.setState(FAILED, errno);
    }
    if (error instanceof AssertionError) throw error;
    return "failed";
  }
}
