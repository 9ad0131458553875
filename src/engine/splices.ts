/**
 * Splices: changes of an object that is not copied. Inserting an entry into a node of a tree moves the entries behind
 * it; a transaction that does nothing else to the node need not have it in its arena. It notes the edits (edits.ts),
 * and the commit applies them to the object where it lies.
 *
 *   - The journal gets, as redo words, what each edit will leave behind. It reads the words of a MOVE from the object,
 *     before that is locked: if another changes the object meanwhile, the lock finds another version.
 *   - Installing applies the edits in place. A reader who was there before the lock finds that the version has changed;
 *     one who comes later waits. If the owner dies over it, its redo words are written over what it left.
 *   - A transaction that opens the object again, or changes it a second time, gets it into its arena first, and
 *     from then on it is like any other (`materialize`).
 *
 * The pieces that become redo words are taken from the object as it was. So no MOVE may read what an edit before it
 * has written: first the words behind are moved, then the gap is filled.
 */

import { HEADER_WORDS } from "../memory/object.ts";
import {
  type AccessSet,
  BUFFER,
  DATA_WORDS,
  DIRTY_FROM,
  DIRTY_TO,
  EDIT_WORDS,
  EDITS,
  KIND,
  LAST_EDIT,
  NOT_EDITED,
  PENDING_FROM,
  PENDING_TO,
  SPLICED,
  WORD,
} from "./access-set.ts";
import { editLength, editOffset, editOperation, editWord, MOVE_EDIT, WRITE_EDIT } from "./edits.ts";

/** Of an object that is spliced: its pieces, and the words that they take as redo words. */
export const PIECES = PENDING_FROM;
export const PIECE_WORDS = PENDING_TO;
/** Before the words of a piece: where they go, and how many. */
export const PIECE_HEADER_WORDS = 2;

/** From here on a native move beats a loop over words. */
const LONG_MOVE_WORDS = 32;

/** The object of an entry that is not in the arena, with so many data words, is changed in place. */
export function beginSplice(set: AccessSet, entry: number, dataWords: number): void {
  const { words } = set;
  // Not -1, which is an object that is only read. Nothing is ever read there.
  words[entry + BUFFER] = 0;
  words[entry + DATA_WORDS] = dataWords;
  words[entry + DIRTY_FROM] = dataWords;
  words[entry + DIRTY_TO] = 0;
  words[entry + EDITS] = 0;
  words[entry + EDIT_WORDS] = 0;
  words[entry + PIECES] = 0;
  words[entry + PIECE_WORDS] = 0;
  words[entry + KIND] |= SPLICED;
}

/** Words move inside of the object. */
export function spliceMove(
  set: AccessSet,
  entry: number,
  from: number,
  to: number,
  count: number,
): void {
  if (count === 0) return;
  const at = addEdit(set, entry, 2, to, count);
  set.edits.words[at] = editWord(MOVE_EDIT, from, count);
  set.edits.words[at + 1] = to;
}

/** Words are written into the object. */
export function spliceWrite(
  set: AccessSet,
  entry: number,
  to: number,
  source: Int32Array,
  count: number,
): void {
  const at = addEdit(set, entry, 1 + count, to, count);
  const { words } = set.edits;
  words[at] = editWord(WRITE_EDIT, to, count);
  for (let i = 0; i < count; i++) words[at + 1 + i] = source[i];
}

export function spliceWord(set: AccessSet, entry: number, to: number, value: number): void {
  const at = addEdit(set, entry, 2, to, 1);
  set.edits.words[at] = editWord(WRITE_EDIT, to, 1);
  set.edits.words[at + 1] = value;
}

function addEdit(
  set: AccessSet,
  entry: number,
  editWords: number,
  to: number,
  count: number,
): number {
  const { words, edits } = set;
  const at = edits.add(editWords);
  if (words[entry + EDITS] === 0) words[entry + EDITS] = at - 1;
  else edits.words[words[entry + LAST_EDIT]] = at - 1;
  words[entry + LAST_EDIT] = at - 1;
  words[entry + EDIT_WORDS] += editWords;
  words[entry + PIECES]++;
  words[entry + PIECE_WORDS] += PIECE_HEADER_WORDS + count;
  if (to < words[entry + DIRTY_FROM]) words[entry + DIRTY_FROM] = to;
  if (to + count > words[entry + DIRTY_TO]) words[entry + DIRTY_TO] = to + count;
  return at;
}

/** Applies the edits of an object to its data at `at`: where it lies, or to a copy. */
export function applySplice(set: AccessSet, first: number, i32: Int32Array, at: number): void {
  const { words } = set.edits;
  for (let edit = first; edit !== 0; edit = words[edit]) {
    const word = words[edit + 1];
    const length = editLength(word);
    if (editOperation(word) === MOVE_EDIT) {
      moveWords(i32, at + editOffset(word), at + words[edit + 2], length);
    } else {
      const to = at + editOffset(word);
      for (let i = 0; i < length; i++) i32[to + i] = words[edit + 2 + i];
    }
  }
}

/** Brings a spliced object into the arena, changed. What others have made of it meanwhile is for the caller to check. */
export function materialize(set: AccessSet, entry: number): void {
  const { words } = set;
  const from = words[entry + DIRTY_FROM];
  const to = words[entry + DIRTY_TO];
  const edits = words[entry + EDITS];
  const dataWords = words[entry + DATA_WORDS];
  const at = set.reserve(entry, dataWords);
  const source = words[entry + WORD] + HEADER_WORDS;
  const { i32 } = set.arena;
  i32.set(set.regionOf(entry).i32.subarray(source, source + dataWords), at);
  applySplice(set, edits, i32, at);
  words[entry + KIND] &= ~SPLICED;
  words[entry + DIRTY_FROM] = from;
  words[entry + DIRTY_TO] = to;
  words[entry + EDITS] = set.recordsEdits ? edits : NOT_EDITED;
  words[entry + PENDING_FROM] = dataWords;
  words[entry + PENDING_TO] = 0;
}

/** Moves words inside an array; the places may overlap. */
export function moveWords(i32: Int32Array, from: number, to: number, words: number): void {
  if (words > LONG_MOVE_WORDS) i32.copyWithin(to, from, from + words);
  else if (from < to) for (let i = words - 1; i >= 0; i--) i32[to + i] = i32[from + i];
  else for (let i = 0; i < words; i++) i32[to + i] = i32[from + i];
}
