/**
 * A sorted linked list in shared memory, built on FaRM's objects: allocate, read, write, free.
 *
 *   table "list"          objects
 *   ┌───────────────┐     ┌─────┬──────┐   ┌─────┬──────┐
 *   │ name │ first ─┼────▶│ key │ next ┼──▶│ key │ null │
 *   └───────────────┘     └─────┴──────┘   └─────┴──────┘
 *
 * Nothing here locks or retries. Whatever a transaction reads on its way along the list becomes
 * part of its read set; if another thread changes any of it before the commit, the transaction is
 * run again. So an insert never attaches a node to one that was removed a moment ago.
 */

import { type Database, Pointer, pointer, str, type Transaction, table } from "situ";

export const List = table("list", { name: str(32), first: pointer() }, { key: "name" });

/** A node: the key in bytes 0–3, the pointer to the next node in bytes 8–31. */
const NODE_BYTES = 32;
const NEXT = 8;

interface Node {
  readonly key: number;
  readonly next: Pointer | null;
}

export class SortedList {
  readonly #db: Database;
  readonly #name: string;

  constructor(db: Database, name: string) {
    this.#db = db;
    this.#name = name;
  }

  /** Makes the empty list, unless it is there. */
  create(): void {
    this.#db.transactSync((tx) => {
      if (!tx.has(List, this.#name)) tx.insert(List, { name: this.#name, first: null });
    });
  }

  /** Says whether the key was added; false if it was there. */
  insert(key: number): boolean {
    return this.#db.transactSync((tx) => {
      const { before, at, node } = this.#find(tx, key);
      if (node?.key === key) return false;
      // Near its neighbour: a walk along the list then stays in memory that was just touched.
      const near = before ?? at;
      const added = tx.alloc(NODE_BYTES, near ? { near } : {});
      tx.write(added, encode({ key, next: at }));
      this.#link(tx, before, added);
      return true;
    });
  }

  /** Says whether the key was removed; false if it was not there. */
  remove(key: number): boolean {
    return this.#db.transactSync((tx) => {
      const { before, at, node } = this.#find(tx, key);
      if (at === null || node?.key !== key) return false;
      this.#link(tx, before, node.next);
      // From the commit on, every pointer to the node is dead: reading it fails with SITU_FREED.
      tx.free(at);
      return true;
    });
  }

  /** All keys as of one moment. */
  keys(): number[] {
    return this.#db.transactSync((tx) => {
      const keys: number[] = [];
      for (let at = this.#first(tx); at !== null; ) {
        const node = decode(tx.read(at));
        keys.push(node.key);
        at = node.next;
      }
      return keys;
    });
  }

  /** The first node with this key or a greater one, and the node before it. */
  #find(
    tx: Transaction,
    key: number,
  ): { before: Pointer | null; at: Pointer | null; node: Node | undefined } {
    let before: Pointer | null = null;
    let at = this.#first(tx);
    while (at !== null) {
      const node = decode(tx.read(at));
      if (node.key >= key) return { before, at, node };
      before = at;
      at = node.next;
    }
    return { before, at, node: undefined };
  }

  #first(tx: Transaction): Pointer | null {
    return tx.get(List, this.#name)!.first;
  }

  /** Lets the node before, or the root if there is none, lead to `next`. */
  #link(tx: Transaction, before: Pointer | null, next: Pointer | null): void {
    if (before === null) tx.update(List, this.#name, { first: next });
    else tx.write(before, encode({ key: decode(tx.read(before)).key, next }));
  }
}

function encode({ key, next }: Node): Uint8Array {
  const bytes = new Uint8Array(NODE_BYTES);
  new DataView(bytes.buffer).setUint32(0, key);
  // A fat pointer: where, how large, and the incarnation that it expects there.
  if (next !== null) bytes.set(next.toBytes(), NEXT);
  return bytes;
}

function decode(bytes: Uint8Array): Node {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { key: view.getUint32(0), next: Pointer.fromBytes(bytes, NEXT) };
}
