/** A replica that keeps its records in a map, and shows what it did with them. */

import type { Name } from "../../src/protocols/names.ts";
import type { Head } from "../../src/protocols/records.ts";
import type { PartitionWrites, Replica } from "../../src/protocols/recovery/replica.ts";
import { keyOf } from "../../src/protocols/recovery/round.ts";
import {
  SAW_ABORT,
  SAW_COMMIT,
  SAW_END,
  SAW_LOCK,
  SAW_NOTHING,
  type Seen,
  strongest,
} from "../../src/protocols/recovery/votes.ts";

interface KeptPartition {
  seen: Seen;
  writes: PartitionWrites | undefined;
  isLocked: boolean;
  isOver: boolean;
}

interface Kept {
  readonly head: Head;
  readonly partitions: Map<number, KeptPartition>;
}

export class PaperReplica implements Replica {
  /** What was installed in each partition: the first word of the writes. */
  readonly installed = new Map<string, number>();
  readonly #kept = new Map<string, Kept>();

  /** As if a message of the commit had brought it. */
  see(head: Head, partition: number, seen: Seen): void {
    const words = new Int32Array([writtenBy(head.name, partition), 0]);
    this.takeOver(head, partition, seen, { words, count: 1 });
    if (seen === SAW_LOCK) this.lock(head.name, partition);
    if (seen === SAW_COMMIT || seen === SAW_ABORT) this.#end(head.name, seen, partition);
  }

  /** Partitions of transactions that are locked here, or whose records are not settled. */
  get left(): number {
    let left = 0;
    for (const { partitions } of this.#kept.values()) {
      for (const { isOver, isLocked } of partitions.values()) if (!isOver || isLocked) left++;
    }
    return left;
  }

  /** Here all that is locked has a record. */
  release(): void {}

  *inDoubt(): Generator<Head> {
    for (const { head, partitions } of this.#kept.values()) {
      if ([...partitions.values()].some(({ isOver }) => !isOver)) yield head;
    }
  }

  seen(name: Name, partition: number): Seen {
    return this.#find(name, partition)?.seen ?? SAW_NOTHING;
  }

  writes(name: Name, partition: number): PartitionWrites | undefined {
    const kept = this.#find(name, partition);
    return kept?.isOver === false ? kept.writes : undefined;
  }

  /** Each transaction writes rows of its own. */
  orderOf(): number {
    return -1;
  }

  takeOver(head: Head, partition: number, seen: Seen, writes: PartitionWrites | undefined): void {
    const key = keyOf(head.name);
    const all = this.#kept.get(key) ?? { head, partitions: new Map() };
    this.#kept.set(key, all);
    const kept = all.partitions.get(partition);
    if (kept === undefined) {
      all.partitions.set(partition, { seen, writes, isLocked: false, isOver: false });
      return;
    }
    kept.seen = strongest(kept.seen, seen);
    kept.writes ??= writes;
  }

  lock(name: Name, partition: number): boolean {
    const kept = this.#find(name, partition);
    if (kept?.isOver === false && kept.writes !== undefined) kept.isLocked = true;
    return true;
  }

  isLocked(name: Name, partition: number): boolean {
    return this.#find(name, partition)?.isLocked ?? false;
  }

  isBehind(): boolean {
    return false;
  }

  commit(name: Name): boolean {
    this.#end(name, SAW_COMMIT);
    return true;
  }

  abort(name: Name): void {
    for (const [partition, kept] of this.#kept.get(keyOf(name))?.partitions ?? []) {
      if (kept.isLocked && !kept.isOver) kept.seen = SAW_ABORT;
      else this.#end(name, SAW_ABORT, partition);
    }
  }

  forget(name: Name): void {
    for (const kept of this.#kept.get(keyOf(name))?.partitions.values() ?? []) {
      kept.seen = SAW_END;
      kept.isOver = true;
      kept.isLocked = false;
    }
  }

  #find(name: Name, partition: number): KeptPartition | undefined {
    return this.#kept.get(keyOf(name))?.partitions.get(partition);
  }

  #end(name: Name, seen: Seen, only?: number): void {
    for (const [partition, kept] of this.#kept.get(keyOf(name))?.partitions ?? []) {
      if (kept.isOver || (only ?? partition) !== partition) continue;
      kept.isOver = true;
      kept.isLocked = false;
      kept.seen = seen;
      if (seen !== SAW_COMMIT || kept.writes === undefined) continue;
      this.installed.set(`${keyOf(name)} in ${partition}`, kept.writes.words[0]);
    }
  }
}

export function writtenBy({ coordinator, sequence }: Name, partition: number): number {
  return (coordinator * 1_000 + sequence) * 100 + partition;
}
