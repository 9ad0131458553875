/**
 * A disk in memory that fails as disks do, by a plan and by a seed: the sibling of node-files.ts in
 * tests. Bytes are written to a cache of blocks, and names to a cache of names; a sync makes them
 * lasting. `powerLoss` gives the disk that a machine finds when it starts again.
 *
 *   const disk = new FaultyFiles({ seed: 42 });
 *   disk.fail({ kind: "power", at: 17 });
 *   try { work(disk); } catch (error) { if (!(error instanceof PowerLost)) throw error; }
 *   const found = disk.powerLoss(new Random(42));
 */

import type { StoreFile, StoreFiles } from "../src/folder/files.ts";
import { Random } from "../src/runtime/random.ts";
import { type Fate, FileContent } from "./disk/blocks.ts";
import {
  type Fault,
  FaultPlan,
  type Operation,
  type OperationKind,
  PowerLost,
  systemError,
} from "./disk/faults.ts";
import { folderOf, Names } from "./disk/folder.ts";

export interface FaultyOptions {
  /** Decides how short short writes are. */
  readonly seed?: number;
  readonly blockBytes?: number;
  readonly capacityBytes?: number;
}

export class FaultyFiles implements StoreFiles {
  readonly place = "the simulated disk";
  /** Room for files in their full lengths; may be changed at any time. */
  capacityBytes: number;
  /** Called before each operation; may take its time, or throw. */
  before: ((operation: Operation) => void) | undefined;
  readonly #blockBytes: number;
  readonly #random: Random;
  readonly #plan = new FaultPlan();
  #names = new Names();
  #operations = 0;
  #isOff = false;

  constructor(options: FaultyOptions = {}) {
    this.#random = new Random(options.seed ?? 1);
    this.#blockBytes = options.blockBytes ?? 512;
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
  }

  /** How many operations there have been: all calls but `has`, `size` and `close`. */
  get operations(): number {
    return this.#operations;
  }

  /** Room that is taken. */
  get usedBytes(): number {
    let bytes = 0;
    for (const content of this.#names.files.values()) bytes += content.size;
    return bytes;
  }

  fail(fault: Fault): void {
    this.#plan.add(fault);
  }

  /** No failures any more, but for a power that was lost. */
  forgive(): void {
    this.#plan.clear();
  }

  create(name: string, bytes: number): StoreFile {
    return this.#run("create", name, () => {
      if (!this.#names.hasFolder(folderOf(name))) throw systemError("ENOENT", "create", name);
      const replaced = this.#names.files.get(name)?.size ?? 0;
      if (this.usedBytes - replaced + bytes > this.capacityBytes) {
        throw systemError("ENOSPC", "create", name);
      }
      const content = new FileContent(this.#blockBytes);
      if (bytes > 0) content.resize(bytes);
      this.#names.change({ kind: "link", name, content });
      return this.#handle(name, content, false);
    });
  }

  open(name: string, readOnly = false): StoreFile {
    return this.#run("open", name, () => this.#handle(name, this.#content(name), readOnly));
  }

  has(name: string): boolean {
    this.#expectPower();
    return this.#names.files.has(name);
  }

  list(folder: string): string[] {
    return this.#run("list", folder, () => {
      const names = [...this.#names.files.keys()].filter((name) => folderOf(name) === folder);
      return names.map((name) => name.slice(folder === "" ? 0 : folder.length + 1)).sort();
    });
  }

  makeFolder(folder: string): void {
    this.#run("makeFolder", folder, () => {
      if (!this.#names.hasFolder(folder)) this.#names.change({ kind: "folder", name: folder });
    });
  }

  rename(from: string, to: string): void {
    this.#run("rename", from, () => {
      this.#content(from);
      if (folderOf(from) !== folderOf(to)) throw new RangeError("a file stays in its folder");
      this.#names.change({ kind: "rename", name: from, to });
    });
  }

  remove(name: string): void {
    this.#run("remove", name, () => {
      this.#content(name);
      this.#names.change({ kind: "unlink", name });
    });
  }

  syncFolder(folder: string): void {
    this.#run("syncFolder", folder, () => {
      if (!this.#names.hasFolder(folder)) throw systemError("ENOENT", "open", folder);
      this.#names.sync(folder);
    });
  }

  /** Turns a bit over on the disk, the lowest of its byte unless told. */
  flipBit(name: string, offset: number, bit = 0): void {
    this.#content(name).spoil(offset, (old) => old ^ (1 << bit));
  }

  /** Puts other bytes on the disk, which nobody has written. */
  spoil(name: string, offset: number, bytes: Uint8Array): void {
    const content = this.#content(name);
    bytes.forEach((byte, i) => {
      content.spoil(offset + i, () => byte);
    });
  }

  /** The disk as it is after a crash of the program alone: what was written is there. */
  settled(): FaultyFiles {
    return this.#successor(this.#names.copied((content) => content.settled()));
  }

  /**
   * The disk as it is after a power loss: of what was not synced, any part may be there. Which, and
   * how much of the last blocks, is up to the dice.
   */
  powerLoss(random: Random): FaultyFiles {
    const isTearing = random.below(2) === 0;
    const style = STYLES[random.below(STYLES.length)];
    const copies = new Map<FileContent, FileContent>();
    const copy = (content: FileContent): FileContent => {
      let found = copies.get(content);
      if (found === undefined) {
        const fate = style(content.unsynced, random);
        const orTorn = (change: number): Fate => {
          const its = fate(change);
          return its === "kept" && isTearing && random.below(4) === 0 ? "torn" : its;
        };
        found = content.afterPowerLoss(orTorn, random);
        copies.set(content, found);
      }
      return found;
    };
    return this.#successor(this.#names.afterPowerLoss(random, copy));
  }

  #successor(names: Names): FaultyFiles {
    const found = new FaultyFiles({
      seed: this.#random.next(),
      blockBytes: this.#blockBytes,
      capacityBytes: this.capacityBytes,
    });
    found.#names = names;
    return found;
  }

  #content(name: string): FileContent {
    const content = this.#names.files.get(name);
    if (content === undefined) throw systemError("ENOENT", "open", name);
    return content;
  }

  #handle(name: string, content: FileContent, readOnly: boolean): StoreFile {
    let isOpen = true;
    const expectOpen = (call: string, writes: boolean): void => {
      this.#expectPower();
      if (!isOpen || (writes && readOnly)) throw systemError("EBADF", call, name);
    };
    return {
      name,
      write: (parts, at) => {
        expectOpen("write", true);
        return this.#run("write", name, (fault) => this.#write(name, content, parts, at, fault));
      },
      read: (into, at) => {
        expectOpen("read", false);
        return this.#run("read", name, () => content.read(into, at));
      },
      sync: () => {
        expectOpen("fdatasync", false);
        this.#run(
          "sync",
          name,
          () => content.sync(),
          () => content.loseUnsynced(),
        );
      },
      size: () => {
        expectOpen("fstat", false);
        return content.size;
      },
      truncate: (bytes) => {
        expectOpen("ftruncate", true);
        this.#run("truncate", name, () => content.resize(bytes));
      },
      close: () => {
        if (!isOpen) throw systemError("EBADF", "close", name);
        isOpen = false;
      },
    };
  }

  #write(
    name: string,
    content: FileContent,
    parts: readonly Uint8Array[],
    at: number,
    fault: Fault | undefined,
  ): number {
    const data = concat(parts);
    const room = Math.max(this.capacityBytes - this.usedBytes, 0) + content.size - at;
    let bytes = Math.min(data.length, room);
    if (bytes <= 0 && data.length > 0) throw systemError("ENOSPC", "write", name);
    if (fault?.kind === "short") bytes = Math.min(bytes, 1 + this.#random.below(data.length));
    content.write(data.subarray(0, bytes), at);
    return bytes;
  }

  #expectPower(): void {
    if (this.#isOff) throw new PowerLost(this.#operations);
  }

  /** `failed` is called before an error of the plan is thrown. */
  #run<Result>(
    kind: OperationKind,
    name: string,
    effect: (fault: Fault | undefined) => Result,
    failed?: () => void,
  ): Result {
    this.#expectPower();
    const operation = { number: ++this.#operations, kind, name };
    this.before?.(operation);
    const fault = this.#plan.take(operation);
    if (fault?.kind === "power") {
      this.#isOff = true;
      // Begun, at least: some of it may be found. A sync that did not return is as good as none.
      if (kind !== "sync" && kind !== "syncFolder") effect(undefined);
      throw new PowerLost(operation.number);
    }
    if (fault?.kind === "EIO" || fault?.kind === "ENOSPC") {
      failed?.();
      throw systemError(fault.kind, kind, name);
    }
    return effect(fault);
  }
}

/** A copy, and not a Buffer: the slices of one are no copies. */
function concat(parts: readonly Uint8Array[]): Uint8Array {
  const data = new Uint8Array(parts.reduce((bytes, part) => bytes + part.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  return data;
}

/** How a power loss treats the changes to a file: given their number, the fate of each. */
type Style = (changes: number, random: Random) => (change: number) => Fate;

const STYLES: readonly Style[] = [
  // Each on its own, with odds of its own.
  (_, random) => {
    const odds = 1 + random.below(9);
    return () => (random.below(10) < odds ? "kept" : "lost");
  },
  // A suffix is lost, and the last that is kept is torn.
  (changes, random) => {
    const kept = random.below(changes + 1);
    return (change) => (change < kept ? "kept" : change === kept ? "torn" : "lost");
  },
  // A single one is lost.
  (changes, random) => {
    const lost = random.below(Math.max(changes, 1));
    return (change) => (change === lost ? "lost" : "kept");
  },
  () => () => "lost",
  () => () => "kept",
];
