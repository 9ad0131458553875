/**
 * A machine with a store, its log and its checkpoints, on a disk that fails as told. Everything
 * runs in one thread, by the dice of a seed: executors commit, one of them writes the log, another
 * takes a checkpoint while the others go on, some die. Then the power goes, and the next machine has
 * to make do with what is on the disk.
 */

import { type OperationKind, PowerLost } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { Epochs, raiseEpoch } from "../../src/engine/epoch.ts";
import { Executor } from "../../src/engine/executor.ts";
import { HEAD, TAIL } from "../../src/engine/slot.ts";
import type { Damage } from "../../src/folder/files.ts";
import { beginLog } from "../../src/log/begin.ts";
import { takeCheckpoint } from "../../src/log/checkpoint/take.ts";
import { GroupCommit, type Round } from "../../src/log/group-commit.ts";
import { type PartProgress, rebuild } from "../../src/log/recovery/part.ts";
import { planRecovery, type RecoveryPlan } from "../../src/log/recovery/plan.ts";
import { prepareDisk } from "../../src/log/recovery/prepare-disk.ts";
import { finishMemory } from "../../src/log/recovery/recover.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import {
  CATALOGUE_REGION,
  CATALOGUE_WORD,
  DURABLE_WAITERS,
  type Geometry,
  LOG_ERROR,
  LOG_STATE,
} from "../../src/memory/control.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import type { Random } from "../../src/runtime/random.ts";
import { expectState, Model } from "./durable-model.ts";
import { TOTAL, Work } from "./durable-work.ts";
import { Death } from "./engine-atomics.ts";
import { EngineStore } from "./engine-store.ts";
import { dieForGood } from "./snapshots.ts";

const MIB = 2 ** 20;
export const LOG_ID = "0123456789abcdef01234567";
const CLOSED_MS = 1_700_000_000_000;

/** Journals of 16 KiB go round every few dozen commits. */
export const LITTLE: Geometry = {
  slots: 12,
  journalBytes: 16 * 1024,
  regionBytes: MIB,
  regions: 3,
  ringBytes: 4 * 1024,
  chunkBytes: 4 * 1024,
  chunks: 2,
};

/** What goes: the power, and with it what was not synced; or all processes and their memory. */
export type Crash = "power" | "processes";

export interface MachineOptions {
  readonly files?: FaultyFiles;
  readonly executors?: number;
  /** The first epoch, and where the journals begin: near the end of a circle, say. */
  readonly epoch?: number;
  readonly journalsAt?: number;
  readonly geometry?: Geometry;
  /** Whether the log begins at epoch 0, and not with a checkpoint of memory, as `open` lets it. */
  readonly isBare?: boolean;
}

export class Machine {
  readonly random: Random;
  readonly files: FaultyFiles;
  readonly store: EngineStore;
  readonly model: Model;
  readonly work: Work;
  readonly executors: Executor[] = [];
  writer: GroupCommit | undefined;
  /** The last round's outcome. */
  lastRound: Round = "idle";
  /** Calls to the disk, counted from 1, at which the log's writer dies, or everybody does. */
  #writerDiesAt = Number.POSITIVE_INFINITY;
  #allDieAt = Number.POSITIVE_INFINITY;
  #isDead = false;
  #isInRound = false;
  /** Whether others commit in the middle of a round, too. */
  isBusy = false;
  /** A commit that somebody has died over, and nobody has noticed yet. */
  #cut: { settle: () => void } | undefined;

  private constructor(random: Random, files: FaultyFiles, store: EngineStore, model: Model) {
    this.random = random;
    this.files = files;
    this.store = store;
    this.model = model;
    this.work = new Work(model, random);
    files.before = ({ number }) => {
      this.#isDead ||= number >= this.#allDieAt;
      if (this.#isDead || number >= this.#writerDiesAt) throw new Death(`at call ${number}`);
      this.#commitInRound();
    };
  }

  /** A new store whose log has begun, as `open` makes it. */
  static create(random: Random, options: MachineOptions = {}): Machine {
    const files = options.files ?? new FaultyFiles({ seed: random.next() });
    const geometry = options.geometry ?? LITTLE;
    const store = new EngineStore(geometry, "threads", true);
    const { control } = store.memory;
    if (options.epoch !== undefined) raiseEpoch(control, options.epoch);
    for (let slot = 0; slot < geometry.slots; slot++) {
      control.i32[control.slotAt(slot) + HEAD] = options.journalsAt ?? 0;
      control.i32[control.slotAt(slot) + TAIL] = options.journalsAt ?? 0;
    }
    const catalogue = { regionId: 0, word: 16 };
    control.i32[CATALOGUE_REGION] = catalogue.regionId + 1;
    control.i32[CATALOGUE_WORD] = catalogue.word;
    const machine = new Machine(random, files, store, new Model());
    if (options.isBare === true) {
      const { memoryId } = control;
      const identity = { logId: LOG_ID, geometry, catalogue, memoryId, origin: 0 };
      new LogWriter(files, identity, 1, 0, CLOSED_MS).close();
    } else {
      const executor = store.open();
      beginLog(executor, files, LOG_ID);
      store.close(executor);
    }
    for (let i = 0; i < (options.executors ?? 2); i++) machine.open();
    return machine;
  }

  /**
   * What the next machine makes of the disk. It must be a state that the store has had, with all
   * that was durable up to `acknowledged`.
   */
  static recover(
    random: Random,
    files: FaultyFiles,
    model: Model,
    acknowledged: number,
    executors = 2,
  ): Machine {
    const { store, plan } = rebuildStore(files, 1 + random.below(3));
    try {
      const kept = model.lastCommit(acknowledged);
      if (plan.epoch < kept) {
        throw new Error(`epoch ${kept} was durable, and ${plan.epoch} is what was recovered`);
      }
      const epoch = new Epochs(store.memory.control).current();
      if (epoch <= plan.epoch) throw new Error(`epoch ${epoch} comes again after ${plan.epoch}`);
      const state = model.after(plan.epoch);
      expectState(store.memory, state);
      const machine = new Machine(
        random,
        files,
        store,
        new Model(state, model.lastCommit(plan.epoch)),
      );
      for (let i = 0; i < executors; i++) machine.open();
      machine.expectSum();
      return machine;
    } catch (error) {
      store.dispose();
      throw error;
    }
  }

  get memory(): StoreMemory {
    return this.store.memory;
  }

  /** The durable epoch, as all who wait for it see it. */
  get durableEpoch(): number {
    return this.executors[0].durability.epoch;
  }

  open(): Executor {
    const executor = this.store.open();
    this.#serve(executor);
    this.executors.push(executor);
    return executor;
  }

  /**
   * Whoever waits for the log gets a round of it. One who has just committed only calls for its writer,
   * which is another thread in life: with a round inside that call, others would commit, perhaps at a
   * later epoch, before the caller's commit is noted in the model.
   */
  #serve(executor: Executor): void {
    const { i32 } = this.memory.control;
    executor.durability.ensureLogWriter = () => {
      if (i32[DURABLE_WAITERS] > 0) this.round();
    };
  }

  any(): Executor {
    return this.executors[this.random.below(this.executors.length)];
  }

  /** Somebody dies in the middle of a commit. Nobody notices before there is more work. */
  dieInCommit(): void {
    this.#settleCut();
    const { random } = this;
    const victim = this.store.open();
    const cut = this.work.cuttable(victim);
    dieForGood(1 + random.below(12), random.below(2) === 0 ? "before" : "after", cut.run);
    this.store.kill(victim);
    this.#cut = cut;
  }

  #settleCut(): void {
    const cut = this.#cut;
    this.#cut = undefined;
    if (cut === undefined) return;
    this.executors[0].sweep();
    cut.settle();
  }

  /** So many transactions, by anyone. */
  commit(count: number): void {
    this.#settleCut();
    for (let i = 0; i < count; i++) this.work.step(this.any());
  }

  /** A round of the log; somebody becomes its writer if nobody is. */
  round(): Round {
    this.#settleCut();
    this.writer ??= this.newGroupCommit();
    const { writer } = this;
    this.#inRound(() => {
      this.lastRound = writer.round();
    });
    if (this.lastRound === "done" && this.random.below(2) === 0) writer.prepare();
    return this.lastRound;
  }

  newGroupCommit(): GroupCommit {
    const executor = this.store.open();
    const writer = new GroupCommit(executor, this.files, LOG_ID);
    if (!writer.tryBegin()) throw new Error("the log has a writer");
    const { epochs } = executor;
    epochs.advance = (epoch) => {
      this.#commitInRound();
      Epochs.prototype.advance.call(epochs, epoch);
      this.#commitInRound();
    };
    return writer;
  }

  #inRound(work: () => void): void {
    this.#isInRound = true;
    try {
      work();
    } finally {
      this.#isInRound = false;
    }
  }

  /** Somebody commits while the log's writer is at work, if the journal has room for it. */
  #commitInRound(): void {
    if (!this.isBusy || !this.#isInRound || this.random.below(3) > 0) return;
    const executor = this.any();
    const { control } = this.memory;
    const at = control.slotAt(executor.slot);
    const used = (control.i32[at + HEAD] - control.i32[at + TAIL]) | 0;
    if (used < control.geometry.journalBytes / 16) this.work.transfer(executor);
  }

  /** The log's writer goes in good order. */
  endLogWriter(): void {
    const { writer } = this;
    this.writer = undefined;
    if (writer === undefined) return;
    writer.end();
    this.store.close(writer.executor);
  }

  killLogWriter(): void {
    if (this.writer !== undefined) this.store.kill(this.writer.executor);
    this.writer = undefined;
  }

  /** The log's writer dies at its n-th call to the disk, if it gets there. Says whether it did. */
  dieInRound(n: number): boolean {
    this.#settleCut();
    this.writer ??= this.newGroupCommit();
    const { i32 } = this.memory.control;
    const [state, error] = [i32[LOG_STATE], i32[LOG_ERROR]];
    this.#writerDiesAt = this.files.operations + n;
    try {
      const { writer } = this;
      this.#inRound(() => {
        this.lastRound = writer.round();
      });
      writer.prepare();
      if (this.files.operations < this.#writerDiesAt) return false;
    } finally {
      this.#writerDiesAt = Number.POSITIVE_INFINITY;
    }
    // What it would have said about its failure, it did not live to say.
    i32[LOG_STATE] = state;
    i32[LOG_ERROR] = error;
    this.killLogWriter();
    return true;
  }

  /**
   * The n-th call to the disk from now on is the last one. Either the power is lost, or all processes
   * are killed and their memory is gone, while the disk goes on.
   */
  crashAt(n: number, crash: Crash, on?: OperationKind): void {
    const at = this.files.operations + n;
    if (crash === "processes") this.#allDieAt = at;
    else this.files.fail({ kind: "power", at, ...(on === undefined ? {} : { on }) });
  }

  /** Takes a checkpoint, while others go on for so many transactions. */
  checkpoint(meanwhile = 0): void {
    let left = meanwhile;
    this.checkpointWith(() => {
      if (left <= 0 || this.random.below(3) > 0) return;
      left--;
      if (this.random.below(6) === 0) {
        this.dieInCommit();
        return;
      }
      this.commit(1);
      if (this.random.below(4) === 0) this.round();
      if (this.random.below(8) === 0) this.any().epochs.advance();
    });
  }

  /**
   * Takes a checkpoint; `interfere` is called in its middle, again and again: before a group of units
   * is looked at, and before each of its blocks is copied.
   */
  checkpointWith(interfere: (when: "group" | "block") => void): void {
    const executor = this.store.open();
    const { memory } = executor;
    const regionOf = memory.region.bind(memory);
    let isInside = false;
    executor.enter = () => {
      interfere("group");
      isInside = true;
      return Executor.prototype.enter.call(executor);
    };
    executor.leave = (entered) => {
      isInside = false;
      Executor.prototype.leave.call(executor, entered);
    };
    // Not while it settles a dead executor's slot: others would wait for it.
    memory.region = (id) => {
      if (isInside) interfere("block");
      return regionOf(id);
    };
    this.#serve(executor);
    try {
      takeCheckpoint(executor, this.files, { logId: LOG_ID, keepLogMs: 0 });
    } catch (error) {
      this.store.kill(executor);
      throw error;
    }
    this.store.close(executor);
  }

  /** An executor dies between two transactions, and another is opened. */
  killExecutor(): void {
    this.#settleCut();
    const at = this.random.below(this.executors.length);
    const [victim] = this.executors.splice(at, 1);
    this.store.kill(victim);
    this.open().sweep();
  }

  /** Something that happens in the life of a store. */
  step(): void {
    const { random } = this;
    const what = random.below(100);
    if (what < 62) this.commit(1);
    else if (what < 82) this.round();
    else if (what < 86) this.checkpoint(random.below(12));
    else if (what < 88) this.killLogWriter();
    else if (what < 91) this.dieInRound(1 + random.below(8));
    else if (what < 93) this.endLogWriter();
    else if (what < 94) this.killExecutor();
    else if (what < 95) this.dieInCommit();
    else if (what < 97) this.any().epochs.advance();
    else this.any().slabs.releaseEmptyBlocks();
  }

  /** Whether the machine is still there. */
  get isUp(): boolean {
    try {
      this.files.has("log");
      return !this.#isDead;
    } catch (error) {
      if (error instanceof PowerLost) return false;
      throw error;
    }
  }

  /** Works until the crash, or until all steps are done. */
  runUntilCrash(steps: number): void {
    for (let i = 0; i < steps && this.isUp; i++) {
      try {
        this.step();
      } catch (error) {
        // Whatever else is thrown in a crash, nobody hears of it.
        if (this.isUp) throw error;
      }
    }
  }

  /** The disk as it is found after the crash; this machine is gone. */
  crash(crash: Crash): FaultyFiles {
    const { files } = this;
    const found = crash === "processes" ? files : files.powerLoss(this.random);
    files.before = undefined;
    files.forgive();
    this.dispose();
    return found;
  }

  expectSum(): void {
    const { root, sum } = this.work;
    if (root !== undefined && sum !== TOTAL) throw new Error(`the sum is ${sum}, not ${TOTAL}`);
  }

  dispose(): void {
    this.store.dispose();
  }
}

/** A store made from what is on a disk; the caller disposes of it. */
export function rebuildStore(
  files: FaultyFiles,
  parts = 1,
): { store: EngineStore; plan: RecoveryPlan } {
  const known: Damage[] = [];
  for (;;) {
    const plan = planRecovery(files, LOG_ID, known);
    const store = new EngineStore(plan.geometry, "threads", true);
    let damage: Damage | undefined;
    const hear = (told: PartProgress): void => {
      damage ??= told.damage;
    };
    try {
      for (let part = 0; part < parts; part++) {
        rebuild(files, plan, store.memory, part, parts, hear);
      }
    } catch (error) {
      store.dispose();
      throw error;
    }
    if (damage === undefined) {
      prepareDisk(files, plan, known);
      finishMemory(plan, store.memory);
      return { store, plan };
    }
    store.dispose();
    known.push(damage);
  }
}
