/**
 * The execution threads of a compute server: pairs of the memory that are this process's own. One only reads, and watches
 * the others; the rest commit, one transaction at a time each, and are entered as they are needed.
 *
 * Every thread shows that it is alive. Whoever does not for a while is taken for dead by all who watch; the first of them
 * settles what it has left and frees its pair (protocols/nam/settle.ts). This process may be taken for dead, too, when it was
 * stopped for long. Then its verbs are refused. It learns from the journal what became of a transaction that was under way,
 * leaves the pair to whoever has it now, and enters another.
 *
 * A pair whose slot has used all of its timestamps is left, and nobody is given it again.
 *
 * When the members of the memory change (nam-members.ts), no thread of before is of any use: all are dropped, and others
 * are entered. What became of a commit that was under way is read from its journal, which whoever recovered has settled.
 */

import type { Driver } from "../../protocols/driver.ts";
import type { Routine } from "../../protocols/message.ts";
import { beat, stillAt, Watcher } from "../../protocols/nam/beats.ts";
import { ComputeThread, type NamDirectory } from "../../protocols/nam/compute-thread.ts";
import { enter, leave } from "../../protocols/nam/enter.ts";
import type { VectorSlot } from "../../protocols/nam/header.ts";
import { readJournal, readSlot, type Settled, settle } from "../../protocols/nam/settle.ts";
import type { Timestamps } from "../../protocols/nam/timestamps.ts";
import type { Begun } from "../../protocols/nam/transaction.ts";
import { superseded } from "../../protocols/nam/verbs.ts";
import { every, sleep } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import {
  NAM_BEAT_MISSES,
  NAM_BEAT_MS,
  NAM_THREADS_PER_CLIENT,
  OUTCOME_GRACE_MS,
} from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import type { NamMembers } from "./nam-members.ts";

export interface NamThreadsOptions {
  readonly driver: Driver;
  readonly directory: NamDirectory;
  readonly timestamps: Timestamps;
  readonly random: Random;
  /** Without copies of the memory there is nothing to be done about its servers. */
  readonly members: NamMembers | undefined;
  /** Makes all tables known that there are: a journal may be about any. */
  refreshTables(): Promise<void>;
}

const MAX_NUMBER = 2 ** 31 - 1;
const RENEW_MS = NAM_BEAT_MS * NAM_BEAT_MISSES;

export type CommitOutcome = "committed" | "aborted" | "unknown";

export class NamThreads {
  readonly #options: NamThreadsOptions;
  readonly #watcher = new Watcher(NAM_BEAT_MISSES);
  readonly #idle: ComputeThread[] = [];
  readonly #all = new Set<ComputeThread>();
  readonly #waiting: ((thread: ComputeThread | undefined) => void)[] = [];
  #reader: ComputeThread | undefined;
  #entering = 0;
  #beats = 1;
  #beating: { cancel(): void } | undefined;
  #isClosed = false;
  /** Threads of others that were settled here, by what was done. */
  readonly settled: Record<string, number> = {};

  constructor(options: NamThreadsOptions) {
    this.#options = options;
  }

  async open(timeoutMs: number): Promise<void> {
    this.#reader = await this.#enter(timeoutMs);
    this.#beating = every(NAM_BEAT_MS, () => this.#round());
  }

  /** For reading; also while it commits nothing, and for many at once. */
  get reader(): ComputeThread {
    return this.#reader!;
  }

  get isOpen(): boolean {
    return this.#reader !== undefined;
  }

  /** The members have changed. */
  async renew(): Promise<void> {
    this.#all.clear();
    this.#idle.length = 0;
    this.#reader = await this.#enter(RENEW_MS);
    for (let left = this.#waiting.length; left > 0; left--) await this.#serveWaiting();
  }

  /** This process was taken for dead, or the members have changed: reads with another pair from now on. */
  async replaceReader(was: ComputeThread, timeoutMs: number): Promise<void> {
    if (this.#reader !== was) return;
    await this.#options.members?.look();
    if (this.#reader !== was) return;
    this.#all.delete(was);
    const next = await this.#enter(timeoutMs);
    if (this.#reader === was) this.#reader = next;
    else this.#retire(next);
  }

  /** A thread to commit with; give it back with `release`. */
  async acquire(leftMs: number): Promise<ComputeThread> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#all.size + this.#entering <= NAM_THREADS_PER_CLIENT) return this.#enter(leftMs);
    const thread = await new Promise<ComputeThread | undefined>((resolve) => {
      this.#waiting.push(resolve);
      this.#options.driver.endpoint.clock.after(leftMs, () => {
        const at = this.#waiting.indexOf(resolve);
        if (at < 0) return;
        this.#waiting.splice(at, 1);
        resolve(undefined);
      });
    });
    if (thread !== undefined) return thread;
    throw new TimeoutError(
      `all ${NAM_THREADS_PER_CLIENT} threads of this database were committing for ${leftMs} ms; nothing was committed`,
    );
  }

  release(thread: ComputeThread): void {
    if (thread.isSuperseded) return;
    if (thread.isBroken) {
      void this.#repair(thread);
      return;
    }
    if (this.#options.timestamps.isUsedUp(thread)) {
      this.#retire(thread);
      void this.#serveWaiting();
      return;
    }
    const next = this.#waiting.shift();
    if (next === undefined) this.#idle.push(thread);
    else next(thread);
  }

  /** What became of a commit that a thread has begun and whose end it has not seen. */
  async resolve(thread: ComputeThread, begun: Begun, leftMs: number): Promise<CommitOutcome> {
    const { members, driver } = this.#options;
    const { clock } = driver.endpoint;
    const untilMs = clock.nowMs() + leftMs;
    for (;;) {
      try {
        if (thread.isSuperseded) return await this.#resolveByJournal(thread, begun);
        return await this.#resolveByClaim(thread, begun);
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        if (members === undefined || clock.nowMs() >= untilMs) return "unknown";
        await members.look();
        if (!thread.isSuperseded) await sleep(OUTCOME_GRACE_MS, clock);
      }
    }
  }

  /** Whoever has recovered has settled the commit: it is published, or was undone. */
  async #resolveByJournal(
    { pair }: ComputeThread,
    { incarnation, timestamp }: Begun,
  ): Promise<CommitOutcome> {
    const { directory, timestamps } = this.#options;
    const { reader } = this;
    if (reader.isSuperseded) throw superseded();
    const was = new ComputeThread(pair, directory);
    // In this order: if the journal is still the one of then, nobody has published anything in that slot since.
    const published = await this.#run(readSlot(was, timestamps, reader), RENEW_MS);
    const journal = await this.#run(readJournal(was, reader), RENEW_MS);
    if (journal === undefined || journal.incarnation < incarnation) return "aborted";
    if (journal.incarnation > incarnation) return "unknown";
    return journal.timestamp === timestamp && published >= timestamp ? "committed" : "aborted";
  }

  async #resolveByClaim(thread: ComputeThread, begun: Begun): Promise<CommitOutcome> {
    const wasTakenOver = thread.isTakenOver;
    const settled = await this.#settle(thread, OUTCOME_GRACE_MS);
    // Another process may have the pair by now: it is not used any more here, or both would claim it in turn.
    if (wasTakenOver) {
      thread.isTakenOver = true;
      thread.isBroken = true;
    }
    const { settlement, timestamp, incarnation } = settled;
    // Somebody has had the pair since, and its journal is about something else.
    if (incarnation > begun.incarnation) return "unknown";
    const isIt = incarnation === begun.incarnation && timestamp === begun.timestamp;
    // A journal that never arrived: then nothing was locked.
    if (!isIt) return "aborted";
    return settlement === "published" || settlement === "forward" ? "committed" : "aborted";
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#beating?.cancel();
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
    const threads = [...this.#all].filter(({ isBroken }) => !isBroken);
    await Promise.allSettled(threads.map((thread) => this.#run(leave(thread), NAM_BEAT_MS)));
  }

  #run<T>(routine: Routine<T>, timeoutMs: number): Promise<T> {
    return this.#options.driver.start(routine, timeoutMs);
  }

  async #enter(timeoutMs: number): Promise<ComputeThread> {
    const { directory, timestamps } = this.#options;
    this.#entering++;
    try {
      for (;;) {
        const pair = await this.#run(enter(directory), timeoutMs);
        const thread = new ComputeThread(pair, directory);
        await this.#settle(thread, timeoutMs);
        if (thread.isSuperseded) throw superseded();
        this.#all.add(thread);
        if (!timestamps.isUsedUp(thread)) return thread;
        // What was settled was the last thing that its slot had a timestamp for.
        this.#retire(thread);
      }
    } finally {
      this.#entering--;
    }
  }

  /** Claims the pair, and finishes or undoes what its journal says. */
  async #settle(thread: ComputeThread, timeoutMs: number): Promise<Settled> {
    const { timestamps, random, refreshTables } = this.#options;
    const settling = (): Promise<Settled[]> =>
      this.#run(settle([thread], timestamps, random.below(MAX_NUMBER)), timeoutMs);
    try {
      return (await settling())[0];
    } catch (error) {
      if (!(error instanceof SituError) || error.code !== "SITU_UNKNOWN_TABLE") throw error;
      await refreshTables();
      return (await settling())[0];
    }
  }

  /** Until it can be used again, or is another's. */
  async #repair(thread: ComputeThread): Promise<void> {
    while (!this.#isClosed && thread.isBroken && !thread.isTakenOver && !thread.isSuperseded) {
      try {
        await this.#settle(thread, NAM_BEAT_MS * NAM_BEAT_MISSES);
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        // What a server has lost is not mended by waiting; every transaction says so.
        if (error.code === "SITU_MEMORY_LOST") break;
        await sleep(NAM_BEAT_MS);
      }
    }
    if (thread.isSuperseded) return;
    if (thread.isBroken || this.#isClosed) this.#all.delete(thread);
    else this.release(thread);
    if (!this.#all.has(thread)) await this.#serveWaiting();
  }

  /** A thread less: those who wait get another one. */
  async #serveWaiting(): Promise<void> {
    const next = this.#isClosed ? undefined : this.#waiting.shift();
    if (next === undefined) return;
    try {
      next(await this.#enter(NAM_BEAT_MS * NAM_BEAT_MISSES));
    } catch {
      next(undefined);
    }
  }

  #retire(thread: ComputeThread): void {
    this.#all.delete(thread);
    void this.#run(leave(thread), NAM_BEAT_MS).catch(ignore);
  }

  #round(): void {
    const { driver, members } = this.#options;
    members?.round();
    if (this.reader.isSuperseded) {
      void this.replaceReader(this.reader, RENEW_MS).catch(ignore);
      return;
    }
    this.#beats = (this.#beats % MAX_NUMBER) + 1;
    for (const thread of this.#all) {
      if (thread.isBroken) continue;
      driver.run(beat(thread, this.#beats), NAM_BEAT_MS, ignore, (error) =>
        this.#missed(thread, error),
      );
    }
    const look = this.#watcher.look(this.reader);
    driver.run(look, NAM_BEAT_MS, (dead) => this.#mourn(dead), ignore);
  }

  #missed(thread: ComputeThread, error: unknown): void {
    if (!(error instanceof SituError) || error.code !== "SITU_STALE_CONFIGURATION") return;
    if (thread.isSuperseded) return;
    thread.isTakenOver = true;
    thread.isBroken = true;
    if (thread === this.#reader) {
      void this.replaceReader(thread, NAM_BEAT_MS * NAM_BEAT_MISSES).catch(ignore);
      return;
    }
    const at = this.#idle.indexOf(thread);
    if (at < 0) return;
    this.#idle.splice(at, 1);
    this.#all.delete(thread);
  }

  #mourn(dead: readonly VectorSlot[]): void {
    const own = new Set([...this.#all].map(({ slot }) => slot));
    for (const slot of dead) if (!own.has(slot)) void this.#settleDead(slot);
  }

  /** Everybody who watches has noticed at about the same time; one is enough. */
  async #settleDead(slot: VectorSlot): Promise<void> {
    const { directory, random, driver } = this.#options;
    const last = this.#watcher.beatOf(slot);
    await sleep(random.below(2 * NAM_BEAT_MS), driver.endpoint.clock);
    try {
      if (this.#isClosed || !(await this.#run(stillAt(this.reader, slot, last), NAM_BEAT_MS)))
        return;
      const thread = new ComputeThread(slot, directory);
      const { settlement } = await this.#settle(thread, NAM_BEAT_MS * NAM_BEAT_MISSES);
      await this.#run(leave(thread), NAM_BEAT_MS);
      this.settled[settlement] = (this.settled[settlement] ?? 0) + 1;
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      // Another one has come first, or a server does not answer: looks again.
      this.#watcher.forget(slot);
    }
  }
}

function ignore(): void {}
