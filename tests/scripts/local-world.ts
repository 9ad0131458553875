/**
 * What the scripts in local/ are about: one store in memory, executors with names, values with names,
 * a log on a simulated disk. All of it runs in one thread, step by step, and says what it does to
 * memory and disk. Every step of the protocols is an atomic (engine-all-atomics.ts), so each of them
 * can be named, and somebody can die before or after it.
 *
 *   values x=1 y=2              makes them, before the trace begins
 *   A begin | A read x | A write x 5 | A commit
 *   A transact x 5              all of it, begun again for as long as it fails
 *   A sweep                     recovers whoever has died
 *   A snapshot | A sees x | A release
 *   L log                       L writes the log, one round; it becomes the log's writer if there is none
 *   C checkpoint
 *   … dies before <event>       the command above comes to its end there, and so does who runs it
 *   … dies after <event>
 *   show                        the values as they are in memory, and who has locked them
 *   tear                        the last bytes of the log have not reached the disk
 *   restart                     all processes and the memory are gone; a store is recovered from the disk
 *   power loss 7                the same, and of what was not synced the dice of seed 7 keep a part
 */

import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { phaseOf, STATUS } from "../../src/engine/slot.ts";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { epochOf, sequenceOf } from "../../src/engine/tid.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { beginLog } from "../../src/log/begin.ts";
import { takeCheckpoint } from "../../src/log/checkpoint/take.ts";
import { GroupCommit } from "../../src/log/group-commit.ts";
import { LOG_WRITER, SLOT_WORDS } from "../../src/memory/control.ts";
import {
  HEADER_WORDS,
  INSTALLING,
  LOCK,
  lockMode,
  lockOwner,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import { ConflictError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytesIn } from "../helpers/disk.ts";
import { LITTLE, LOG_ID, rebuildStore } from "../helpers/durable-machine.ts";
import { type AtomicStep, Death, hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import { type Place, read, Worker, write } from "../helpers/snapshots.ts";

const WORDS = 2;
const PHASES = ["idle", "intent", "committing", "committed"];

class Actor extends Worker {
  tx: Transaction | undefined;
  snapshot: Snapshot | undefined;
  log: GroupCommit | undefined;
}

export class LocalWorld {
  readonly #lines: string[] = [];
  readonly #places = new Map<string, Place>();
  readonly #actors = new Map<string, Actor>();
  readonly #names = new Map<number, string>();
  #files = new FaultyFiles({ seed: 1 });
  #store = new EngineStore(LITTLE, "threads", true);
  /** Where who runs the command dies. */
  #death: { readonly when: string; readonly event: string; done: boolean } | undefined;

  constructor() {
    const executor = this.#store.open();
    beginLog(executor, this.#files, LOG_ID);
    this.#store.close(executor);
  }

  run(commands: readonly string[]): string {
    for (const command of commands) {
      const values = /^values (.+)$/.exec(command);
      if (values !== null) {
        this.#create(values[1]);
        continue;
      }
      this.#lines.push(command);
      this.#watched(() => this.#do(command));
    }
    return `${this.#lines.join("\n")}\n`;
  }

  dispose(): void {
    this.#store.dispose();
  }

  #say(text: string): void {
    this.#lines.push(`    ${text}`);
  }

  #create(text: string): void {
    const maker = this.#actor("set-up");
    for (const [, name, value] of text.matchAll(/(\w+)=(\d+)/g)) {
      this.#places.set(name, maker.create([Number(value)], WORDS)[0]);
    }
    this.#store.close(maker.executor);
    this.#actors.delete("set-up");
  }

  #actor(name: string): Actor {
    let actor = this.#actors.get(name);
    if (actor === undefined) {
      actor = new Actor(this.#store);
      this.#actors.set(name, actor);
      this.#names.set(actor.executor.slot, name);
    }
    return actor;
  }

  #place(name: string): Place {
    const place = this.#places.get(name);
    if (place === undefined) throw new Error(`no value is called ${name}`);
    return place;
  }

  #do(command: string): void {
    if (command === "show") this.#show();
    else if (command === "tear") this.#tear();
    else if (command === "restart") this.#restart(this.#files.settled());
    else if (/^power loss \d+$/.test(command)) {
      this.#restart(this.#files.powerLoss(new Random(Number(command.slice(11)))));
    } else {
      const match = /^(\w+) (\w+)(?: (\w+))?(?: (\d+))?(?: dies (before|after) (.+))?$/.exec(
        command,
      );
      if (match === null) throw new Error(`not a command: ${command}`);
      const [, name, verb, value, number, when, event] = match;
      const actor = this.#actor(name);
      this.#death = when === undefined ? undefined : { when, event, done: false };
      try {
        this.#act(actor, verb, value, Number(number));
      } catch (error) {
        if (!(error instanceof Death) && this.#death?.done !== true) throw error;
      }
      const death = this.#death;
      this.#death = undefined;
      if (death === undefined) return;
      if (!death.done) throw new Error(`nobody died: ${command}`);
      this.#store.kill(actor.executor);
      this.#actors.delete(name);
      this.#say(`${name} is dead`);
    }
  }

  #act(actor: Actor, verb: string, value: string, number: number): void {
    const { executor } = actor;
    switch (verb) {
      case "begin":
        actor.tx = new Transaction(executor);
        executor.enter();
        return;
      case "read":
        this.#say(`${value} = ${read(actor.tx!, this.#place(value))}`);
        return;
      case "write":
        write(actor.tx!, this.#place(value), number);
        return;
      case "commit":
        this.#commit(actor);
        return;
      case "transact":
        this.#transact(actor, value, number);
        return;
      case "sweep":
        this.#say(`${executor.sweep()} recovered`);
        return;
      case "snapshot":
        actor.snapshot = actor.take();
        return;
      case "sees":
        this.#say(`${value} = ${actor.readAt(actor.snapshot!, this.#place(value))}`);
        return;
      case "release":
        actor.snapshot!.release();
        return;
      case "log":
        this.#writeLog(actor);
        return;
      case "checkpoint":
        takeCheckpoint(executor, this.#files, { logId: LOG_ID, keepLogMs: 0 });
        return;
      default:
        throw new Error(`nobody can ${verb}`);
    }
  }

  #writeLog(actor: Actor): void {
    const log = actor.log ?? new GroupCommit(actor.executor, this.#files, LOG_ID);
    if (actor.log === undefined && !log.tryBegin()) {
      this.#say("somebody else writes the log");
      return;
    }
    actor.log = log;
    this.#say(`${log.round()}, durable up to epoch ${actor.executor.durability.epoch}`);
  }

  #transact(actor: Actor, value: string, number: number): void {
    const from = this.#lines.length;
    actor.write(this.#place(value), number);
    // How often it is tried before somebody looks whether the other is alive is a matter of time.
    const attempts = this.#lines.splice(from).join("\n");
    this.#lines.push(attempts.replace(/^(( +.+\n){3})\1*/, "$1    … as long as it takes\n"));
    this.#say("committed");
  }

  #commit(actor: Actor): void {
    const { executor, tx } = actor;
    try {
      this.#say(executor.committer.commit(tx!) ? "committed" : "conflict");
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      this.#say("conflict");
    }
    executor.leave();
    actor.tx = undefined;
  }

  #show(): void {
    for (const [name, { regionId, word }] of this.#places) {
      const { i32 } = this.#store.memory.region(regionId);
      const lock = i32[word + LOCK];
      const locked = lock === 0 ? "" : `, locked by ${this.#nameOf(lockOwner(lock))}`;
      this.#say(`${name} = ${i32[word + HEADER_WORDS]}, ${this.#version(i32, word)}${locked}`);
    }
  }

  /** The last bytes that were written to the last segment, and were not zero. */
  #tear(): void {
    const name = `log/${this.#files
      .list("log")
      .filter((each) => /^\d+/.test(each))
      .at(-1)}`;
    const bytes = bytesIn(this.#files, name);
    let end = bytes.length;
    while (bytes[end - 1] === 0) end--;
    this.#files.spoil(name, end - 8, new Uint8Array(8));
    this.#say(`${name}: its last 8 bytes are zero`);
  }

  #restart(disk: FaultyFiles): void {
    this.#store.dispose();
    this.#actors.clear();
    this.#names.clear();
    this.#files = disk;
    const { store, plan } = rebuildStore(disk);
    this.#store = store;
    const { chain, batches, epoch, cut, damage } = plan;
    const from = chain.length === 0 ? "the beginning of the log" : `${chain.length} checkpoint`;
    this.#say(`recovers from ${from}, replays ${batches.length} of the log's batches`);
    if (cut !== undefined) this.#say(`the log ends early: ${cut.file}, ${cut.what}`);
    for (const each of damage) this.#say(`damaged: ${each.file}, ${each.what}`);
    this.#say(`as of epoch ${epoch}`);
    this.#show();
  }

  #watched(work: () => void): void {
    const off = hookAtomics({
      before: (step) => this.#strike("before", step),
      after: (step) => this.#strike("after", step),
    });
    this.#files.before = ({ kind, name }) => {
      if (this.#death?.done === true) throw new Death("it is dead");
      if (["open", "read", "list"].includes(kind)) return;
      const event = name === "" ? `disk: ${kind}` : `disk: ${kind} ${name}`;
      this.#dieIf("before", event);
      this.#say(event);
    };
    try {
      work();
    } finally {
      off();
      this.#files.before = undefined;
    }
  }

  #strike(when: "before" | "after", step: AtomicStep): void {
    if (this.#death?.done === true) throw new Death("it is dead");
    const event = this.#eventOf(step);
    if (event === undefined) return;
    if (when === "after") this.#say(`${event}${this.#resultOf(step)}`);
    this.#dieIf(when, event);
  }

  #dieIf(when: "before" | "after", event: string): void {
    const death = this.#death;
    if (death?.when !== when || death.event !== event) return;
    death.done = true;
    throw new Death(event);
  }

  /** What a step is called; undefined if it is none that the scripts are about. */
  #eventOf({ array, index, value }: AtomicStep): string | undefined {
    const { control } = this.#store.memory;
    const valueHere = this.#valueAt(array, index);
    if (valueHere !== undefined) {
      if (value === 0) return `unlock ${valueHere}`;
      const isInstalling = lockMode(Number(value)) === INSTALLING;
      return `${this.#nameOf(lockOwner(Number(value)))} locks ${valueHere}${isInstalling ? " to install it" : ""}`;
    }
    if (array.buffer !== control.i32.buffer) return undefined;
    if (index === LOG_WRITER && value !== 0) return `log writer ${this.#nameOf(Number(value) - 1)}`;
    const slot = Math.floor((index - control.slotAt(0)) / SLOT_WORDS);
    const isSlot = slot >= 0 && slot < control.geometry.slots;
    if (!isSlot || index !== control.slotAt(slot) + STATUS) return undefined;
    return `${this.#nameOf(slot)}: ${PHASES[phaseOf(Number(value))]}`;
  }

  /** The value whose lock word this is. */
  #valueAt(array: AtomicStep["array"], index: number): string | undefined {
    for (const [name, { regionId, word }] of this.#places) {
      const { i32 } = this.#store.memory.region(regionId);
      if (i32.buffer === array.buffer && index === word + LOCK) return name;
    }
    return undefined;
  }

  /** What has come of it: the value that is to be seen now, or somebody else in the way. */
  #resultOf({ array, index, value }: AtomicStep): string {
    if (this.#valueAt(array, index) !== undefined && value === 0) {
      return ` = ${array[index - LOCK + HEADER_WORDS]}`;
    }
    if (array[index] === value) return "";
    if (index === LOG_WRITER) return `: it is ${this.#nameOf(Number(array[index]) - 1)}`;
    return `: ${this.#nameOf(lockOwner(Number(array[index])))} has locked it`;
  }

  #version(i32: Int32Array, word: number): string {
    const [high, low] = [i32[word + VERSION_HIGH], i32[word + VERSION_LOW]];
    return `version ${epochOf(high, low)}.${sequenceOf(low)}`;
  }

  #nameOf(slot: number): string {
    return this.#names.get(slot) ?? `slot ${slot}`;
  }
}
