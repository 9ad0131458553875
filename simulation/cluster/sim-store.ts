/**
 * The store of a simulated machine: memory that outlives the process, and, where there is a log, a
 * disk that outlives the power. The log is written by rounds of the real writer (src/log), which the
 * node's machine runs every few milliseconds of virtual time; recovery is the real one, in one thread.
 */

import { settingsOf } from "../../src/database/open-options.ts";
import { Executor } from "../../src/engine/executor.ts";
import type { Leases } from "../../src/engine/leases/leases.ts";
import type { Damage } from "../../src/folder/files.ts";
import { createControl } from "../../src/folder/memory-creation.ts";
import { geometryOf } from "../../src/folder/memory-size.ts";
import { beginLog } from "../../src/log/begin.ts";
import { GroupCommit } from "../../src/log/group-commit.ts";
import { rebuild } from "../../src/log/recovery/part.ts";
import { planRecovery } from "../../src/log/recovery/plan.ts";
import { prepareDisk } from "../../src/log/recovery/prepare-disk.ts";
import { finishMemory } from "../../src/log/recovery/recover.ts";
import { controlBytes, type Geometry } from "../../src/memory/control.ts";
import { CONTROL_NAME, StoreMemory, segmentSizes } from "../../src/memory/store-memory.ts";
import { ThreadSegments } from "../../src/memory/thread-segments.ts";
import { assert } from "../../src/runtime/assert.ts";
import type { Random } from "../../src/runtime/random.ts";
import { createCatalogue } from "../../src/tables/catalogue.ts";
import { systemError } from "../disk/faults.ts";
import { FaultyFiles } from "../faulty-files.ts";

/** A life of the node and one that has died, and what the log needs. */
const SLOTS = 2;
const LOGGED_SLOTS = 6;
const JOURNAL_BYTES = 4 * 1024 * 1024;
const MEMORY_BYTES = 16 * 1024 * 1024;
const LOG_ID = "0123456789abcdef01234567";

export class SimulatedStore {
  #files: FaultyFiles | undefined;
  #memory: SharedMemory;
  #leases = new SimulatedLeases();
  #lives = 0;
  #log: GroupCommit | undefined;
  #isDiskFull = false;

  constructor(id: number, isLogged: boolean) {
    const settings = settingsOf({
      path: `/simulated/${id}`,
      sharing: "threads",
      memoryBytes: MEMORY_BYTES,
    });
    this.#memory = new SharedMemory(
      geometryOf(
        { ...settings, memoryBytes: MEMORY_BYTES },
        isLogged ? LOGGED_SLOTS : SLOTS,
        JOURNAL_BYTES,
      ),
    );
    const memory = this.#memory.create();
    if (isLogged) memory.control.startLog();
    const executor = Executor.open(memory, this.#leases.of(0));
    createCatalogue(executor);
    memory.control.publish();
    if (isLogged) {
      this.#files = new FaultyFiles({ seed: id + 1 });
      beginLog(executor, this.#files, LOG_ID);
    }
    executor.close();
  }

  /** For the next life of the node; what the last one left is recovered. */
  open(): Executor {
    const leases = this.#leases.of(++this.#lives);
    const executor = Executor.open(this.#memory.attach(), leases);
    executor.sweep();
    if (this.#files !== undefined) {
      const writer = Executor.open(this.#memory.attach(), leases, true);
      this.#log = new GroupCommit(writer, this.#files, LOG_ID);
      assert(this.#log.tryBegin(), "a node alone writes its log");
    }
    return executor;
  }

  /** A round of the log. */
  round(): void {
    const round = this.#log?.round();
    assert(round !== "failed", "nothing is wrong with the disk");
    assert(round !== "disk full" || this.#isDiskFull, "there is room on the disk");
  }

  /** From now on nothing more can be written to the disk, until there is room again. */
  setDiskFull(isFull: boolean): void {
    assert(this.#files !== undefined, "there is a disk");
    this.#isDiskFull = isFull;
    this.#files.before = ({ kind, name }) => {
      if (this.#isDiskFull && (kind === "write" || kind === "create")) {
        throw systemError("ENOSPC", kind, name);
      }
    };
  }

  /** The process was killed: its leases are gone, and nothing else. */
  died(): void {
    this.#leases.died(this.#lives);
    this.#log = undefined;
  }

  /** What is left is on disk, or not even there. */
  lostPower(random: Random): void {
    assert(this.#files !== undefined, "what has no log does not survive this");
    const files = this.#files.powerLoss(random);
    this.#files = files;
    this.#leases = new SimulatedLeases();
    const damaged: Damage[] = [];
    for (;;) {
      const plan = planRecovery(files, LOG_ID, damaged);
      const shared = new SharedMemory(plan.geometry);
      const memory = shared.create();
      memory.control.startLog();
      let damage: Damage | undefined;
      rebuild(files, plan, memory, 0, 1, (told) => {
        damage ??= told.damage;
      });
      if (damage === undefined) {
        prepareDisk(files, plan, damaged);
        finishMemory(plan, memory);
        memory.control.publish();
        this.#memory = shared;
        return;
      }
      damaged.push(damage);
    }
  }

  close(): void {
    this.#log?.end();
    this.#log?.executor.close();
  }
}

/** The memory of a machine; every thread looks at it with views of its own. */
class SharedMemory {
  readonly #geometry: Geometry;
  readonly #buffers = new Map<string, SharedArrayBuffer>();

  constructor(geometry: Geometry) {
    this.#geometry = geometry;
    for (const [name, bytes] of segmentSizes(geometry)) {
      this.#buffers.set(name, new SharedArrayBuffer(bytes));
    }
  }

  create(): StoreMemory {
    return createControl(new ThreadSegments(this.#buffers), this.#geometry);
  }

  attach(): StoreMemory {
    const segments = new ThreadSegments(this.#buffers);
    const control = segments.attach(CONTROL_NAME, controlBytes(this.#geometry));
    return new StoreMemory(segments, control, this.#geometry);
  }
}

/** A life of the process holds them, and loses all when it is killed. */
class SimulatedLeases {
  /** Which life holds the lease of a slot. */
  readonly #holders = new Map<number, number>();

  of(life: number): Leases {
    const holders = this.#holders;
    return {
      tryAcquire(slot) {
        if (holders.has(slot)) return false;
        holders.set(slot, life);
        return true;
      },
      release(slot) {
        if (holders.get(slot) === life) holders.delete(slot);
      },
      // The threads of a life leave one by one, each after it has released its own.
      close() {},
    };
  }

  died(life: number): void {
    for (const [slot, holder] of this.#holders) if (holder === life) this.#holders.delete(slot);
  }
}
