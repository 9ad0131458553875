/**
 * Edits: how an object has changed, in fewer words than the changed words themselves. Inserting one entry into
 * a node of a tree moves half of the node; the log gets "move" and "write", not the half node. An edit begins
 * with one word, operation in bits 0–1, length in bits 2–15, offset above 16 bits:
 *
 *   WRITE   offset, length            then these words
 *   MOVE    from, length              then one word: to. The places may overlap
 *   REPACK  first slot, slots         then one word: end of the heap, and above 16 bits words of a slot
 *
 * REPACK closes the gaps in a heap of keys (stores/btree/variable-nodes.ts): the last word of each slot says
 * where its key lies and, above 16 bits, how many words it has. The keys are laid down from the end of the heap
 * in the order of their slots.
 *
 * Edits are not idempotent: they turn one version of an object into the next, and must be applied to exactly that
 * version, once. So only the log has them. In memory, where a commit may have to be installed a second time over a
 * half-installed object, the record keeps the changed words beside them (journal.ts). Recovery applies an entry
 * only to an object whose version is older than the record's TID; that this is the version right before it is
 * up to the order of the log, and to checkpoints, which hold each object as of its version
 * (log/checkpoint/copy.ts).
 */

export const WRITE_EDIT = 0;
export const MOVE_EDIT = 1;
export const REPACK_EDIT = 2;
const OPERATION_MASK = 3;
const LENGTH_SHIFT = 2;
const LENGTH_MASK = 0x3fff;
const OFFSET_SHIFT = 16;

/** Larger objects have no edits: lengths have 14 bits. */
export const MAX_EDITED_WORDS = LENGTH_MASK;

/** Where one executor's transaction keeps the edits of all objects: lists, linked by their first word. */
export class EditList {
  words = new Int32Array(256);
  /** The first free word. Word 0 is never used, so that 0 is no edit. */
  end = 1;

  clear(): void {
    this.end = 1;
  }

  /** A new edit of so many words, to be linked by the caller. Returns where its words begin. */
  add(words: number): number {
    const at = this.end;
    this.end = at + 1 + words;
    if (this.end > this.words.length) this.#grow();
    this.words[at] = 0;
    return at + 1;
  }

  #grow(): void {
    let length = 2 * this.words.length;
    while (length < this.end) length *= 2;
    const larger = new Int32Array(length);
    larger.set(this.words);
    this.words = larger;
  }
}

export function editWord(operation: number, offset: number, length: number): number {
  return operation | (length << LENGTH_SHIFT) | (offset << OFFSET_SHIFT);
}

export function editOperation(first: number): number {
  return first & OPERATION_MASK;
}

export function editLength(first: number): number {
  return (first >>> LENGTH_SHIFT) & LENGTH_MASK;
}

export function editOffset(first: number): number {
  return first >>> OFFSET_SHIFT;
}

/** Words of the edit that begins with this one. */
export function wordsOfEdit(first: number): number {
  return editOperation(first) === WRITE_EDIT ? 1 + editLength(first) : 2;
}

/**
 * Applies edits to the data of an object of `dataWords` words at `at`. Says what is wrong with them, if anything
 * is: nothing outside of the object is ever read or written.
 */
export function applyEdits(
  edits: Int32Array,
  from: number,
  to: number,
  i32: Int32Array,
  at: number,
  dataWords: number,
): string | undefined {
  for (let edit = from; edit < to; ) {
    const first = edits[edit];
    const operation = editOperation(first);
    const length = editLength(first);
    const offset = editOffset(first);
    const next = edit + wordsOfEdit(first);
    if (next > to) return "an edit is cut off";
    if (operation === REPACK_EDIT) {
      const slotWords = edits[edit + 1] >>> OFFSET_SHIFT;
      const end = edits[edit + 1] & 0xffff;
      const most = Math.min(dataWords, MAX_EDITED_WORDS);
      if (slotWords === 0 || end > most || offset + length * slotWords > end) {
        return "it packs a heap that is nowhere";
      }
      repack(i32, at, offset, length, slotWords, end);
    } else {
      if (offset + length > dataWords) return `it edits words ${offset} to ${offset + length}`;
      if (operation === WRITE_EDIT) {
        for (let i = 0; i < length; i++) i32[at + offset + i] = edits[edit + 1 + i];
      } else if (operation === MOVE_EDIT) {
        const target = edits[edit + 1];
        if (target < 0 || target + length > dataWords) return `it moves words to ${target}`;
        i32.copyWithin(at + target, at + offset, at + offset + length);
      } else {
        return "it has an unknown edit";
      }
    }
    edit = next;
  }
  return undefined;
}

const heap = new Int32Array(LENGTH_MASK);

/** Lays the keys of all slots down without gaps. Returns where they begin. Ignores places that cannot be. */
export function repack(
  i32: Int32Array,
  at: number,
  slotsAt: number,
  slots: number,
  slotWords: number,
  end: number,
): number {
  const least = slotsAt + slots * slotWords;
  let begin = end;
  for (let slot = 0; slot < slots; slot++) {
    const placeAt = at + slotsAt + (slot + 1) * slotWords - 1;
    const words = i32[placeAt] >>> 16;
    const from = i32[placeAt] & 0xffff;
    if (from < least || from + words > end || begin - words < least) continue;
    begin -= words;
    for (let i = 0; i < words; i++) heap[begin + i] = i32[at + from + i];
    i32[placeAt] = (words << 16) | begin;
  }
  for (let i = begin; i < end; i++) i32[at + i] = heap[i];
  return begin;
}
