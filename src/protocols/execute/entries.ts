/**
 * The rows that a transaction over several machines has seen or written, and what becomes of them when
 * it commits: a part for each node.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { type Reader, Writer } from "../../fabric/wire.ts";
import type { Values } from "../../tables/indexes/structure.ts";
import type { Held } from "../coordinator.ts";
import { Part, WriteList } from "../writes.ts";
import type { RemoteTable } from "./remote-table.ts";

/** A row that the transaction has seen or written. */
export interface Entry {
  readonly table: RemoteTable;
  readonly key: unknown;
  readonly partition: number;
  readonly node: NodeId;
  /** Whether `row` is what the transaction must see. */
  isKnown: boolean;
  isWritten: boolean;
  row: Values | undefined;
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
  readonly first: NodeId;
}

/** `read` are the parts with what was read; `held` takes what travels with COMMIT. */
export function writtenBy(
  all: Iterable<Entry>,
  read: ReadonlyMap<NodeId, Part>,
  held: HeldRows | undefined,
): Written | undefined {
  const byNode = new Map<NodeId, Entry[]>();
  let first: NodeId | undefined;
  for (const entry of all) {
    if (!entry.isWritten) continue;
    first ??= entry.node;
    const found = byNode.get(entry.node);
    if (found === undefined) byNode.set(entry.node, [entry]);
    else found.push(entry);
  }
  if (first === undefined) return undefined;
  const parts = new Map(read);
  for (const [node, entries] of byNode) {
    scratch.clear();
    const list = new WriteList(scratch);
    for (const entry of entries) addWrite(list, entry);
    const part = new Part(list.words(), list.count);
    // With COMMIT, or where anything must go with LOCK, all of it: to add or remove a row may move
    // another one, that is locked, out of its place.
    if (held !== undefined && entries.every(isOverwrite)) {
      held.writes.set(node, part);
      continue;
    }
    const seen = parts.get(node);
    if (seen !== undefined) {
      part.dependencies = seen.dependencies;
      part.dependencyCount = seen.dependencyCount;
    }
    parts.set(node, part);
  }
  return { parts, first };
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

export function write(entry: Entry, row: Values | undefined): void {
  entry.row = row;
  entry.isKnown = true;
  entry.isWritten = true;
}

/** What the body gets is its own to change. */
export function copyOf(row: Values | undefined): Values | undefined {
  return row === undefined ? undefined : { ...row };
}

/** For `fetch`: a row has arrived. */
export function took(entry: Entry, reply: Reader, words: number): void {
  // Written blindly meanwhile: then that counts.
  if (entry.isKnown) return;
  entry.row = words === 0 ? undefined : entry.table.codec.decode(reply.views, reply.at, words);
  entry.isKnown = true;
}
