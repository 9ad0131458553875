/**
 * What a transaction over several machines has accessed: the rows that it has seen, locked or written
 * so far, and on which versions at which node they depend (engine/access-set.ts is the same for the
 * objects of one store). Writes stay here until the commit; then all becomes one part for each node,
 * for a coordinator.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { type Reader, Writer } from "../../fabric/wire.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { Coordinator, Held } from "../coordinator.ts";
import { Part, partAt, WriteList } from "../writes.ts";
import { keyText, type RemoteTable } from "./remote-table.ts";

/** A row that the transaction has seen or written. */
export interface Entry {
  readonly table: RemoteTable;
  readonly key: unknown;
  readonly partition: number;
  readonly node: NodeId;
  /** Whether `row` is what the transaction must see. */
  isKnown: boolean;
  isWritten: boolean;
  row: RowValues | undefined;
  /** Whether it is to be locked when it is read, and whether it was. */
  wantsLock: boolean;
  isLocked: boolean;
}

export interface HeldRows extends Held {
  readonly writes: Map<NodeId, Part>;
}

/** What a transaction hands to its coordinator. */
export interface Written {
  readonly parts: Map<NodeId, Part>;
  /** The node that has the first of what is written. */
  readonly first: NodeId;
}

export class RemoteAccessSet {
  /** What was read at each node. */
  readonly parts = new Map<NodeId, Part>();
  /** Messages that were sent in order to read: with one only, its rows are from one moment. */
  reads = 0;
  /** What was locked as it was read. */
  held: HeldRows | undefined;
  readonly #entries = new Map<string, Entry>();

  /** The row of a key; checks the key's type. */
  entryOf(table: RemoteTable, given: unknown): Entry {
    const key = table.keptKey(given);
    const partition = table.partitionOf(key);
    const name = `${table.id} ${keyText(key)}`;
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      entry = {
        table,
        key,
        partition,
        node: table.primaryOf(partition),
        isKnown: false,
        isWritten: false,
        row: undefined,
        wantsLock: false,
        isLocked: false,
      };
      this.#entries.set(name, entry);
    }
    return entry;
  }

  partAt(node: NodeId): Part {
    return partAt(this.parts, node);
  }

  /** For those who lock rows as they read them: what is locked, and under which name. */
  hold(coordinator: Coordinator): HeldRows {
    this.held ??= {
      name: coordinator.begin(),
      rounds: new Map(),
      reads: new Set(),
      epoch: 0,
      leastEpoch: Number.POSITIVE_INFINITY,
      writes: new Map(),
    };
    return this.held;
  }

  /** Gives up what is held, to the one who now commits or releases it. */
  takeHeld(): HeldRows | undefined {
    const { held } = this;
    this.held = undefined;
    return held;
  }

  hasLocked(table: RemoteTable): boolean {
    if (this.held === undefined) return false;
    for (const entry of this.#entries.values()) {
      if (entry.isLocked && entry.table === table) return true;
    }
    return false;
  }

  writtenOf(table: RemoteTable): Entry[] {
    const written: Entry[] = [];
    for (const entry of this.#entries.values()) {
      if (entry.isWritten && entry.table === table) written.push(entry);
    }
    return written;
  }

  /** What a transaction that reads from a snapshot has written, or wants nobody to write before it commits. */
  toConfirm(): Entry[] {
    return [...this.#entries.values()].filter(({ isWritten, wantsLock }) => isWritten || wantsLock);
  }

  /** All that was written, with what was read; undefined if nothing was written. */
  written(): Written | undefined {
    const byNode = new Map<NodeId, Entry[]>();
    let first: NodeId | undefined;
    for (const entry of this.#entries.values()) {
      if (!entry.isWritten) continue;
      first ??= entry.node;
      const found = byNode.get(entry.node);
      if (found === undefined) byNode.set(entry.node, [entry]);
      else found.push(entry);
    }
    if (first === undefined) return undefined;
    const parts = new Map(this.parts);
    for (const [node, entries] of byNode) this.#addWrites(parts, node, entries);
    return { parts, first };
  }

  #addWrites(parts: Map<NodeId, Part>, node: NodeId, entries: readonly Entry[]): void {
    scratch.clear();
    const list = new WriteList(scratch);
    for (const entry of entries) addWrite(list, entry);
    const part = new Part(list.words(), list.count);
    // Rows that are locked already are written when all is validated. Where anything else is written, all of it
    // goes with the first LOCK: to add or remove a row may move another one, that is locked, out of its place.
    if (this.held !== undefined && entries.every(isOverwrite)) {
      this.held.writes.set(node, part);
      return;
    }
    const seen = parts.get(node);
    if (seen !== undefined) {
      part.dependencies = seen.dependencies;
      part.dependencyCount = seen.dependencyCount;
    }
    parts.set(node, part);
  }
}

/** One for the thread: writes are copied out of it before the next ones are collected. */
const scratch = new Writer();

/** A row that is locked where it lies is overwritten there. Removing one changes more than that. */
function isOverwrite({ isLocked, row }: Entry): boolean {
  return isLocked && row !== undefined;
}

function addWrite(list: WriteList, { table, partition, key, row }: Entry): void {
  if (row === undefined) list.remove(table.id, partition, table.sent(key));
  else list.put(table.id, partition, table.codec.scratch.i32, 0, table.codec.encode(row));
}

export function write(entry: Entry, row: RowValues | undefined): void {
  entry.row = row;
  entry.isKnown = true;
  entry.isWritten = true;
}

/** What the body gets is its own to change. */
export function copyOf(row: RowValues | undefined): RowValues | undefined {
  return row === undefined ? undefined : { ...row };
}

/** A row has arrived, at the reader's place; no words if it is absent. */
export function arrived(
  entry: Entry,
  { views, at }: Pick<Reader, "views" | "at">,
  words: number,
): void {
  // Written blindly meanwhile: then that counts.
  if (entry.isKnown) return;
  entry.row = words === 0 ? undefined : entry.table.codec.decode(views, at, words);
  entry.isKnown = true;
}
