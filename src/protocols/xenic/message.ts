/**
 * What goes from NIC to NIC in Xenic's commit (§4.2). All messages are one-way: who is answered, and by whom, is the
 * protocol's affair, because in a multi-hop commit it is not the one who asked (§4.2.3). One encoding serves all kinds:
 *
 *   name       of the transaction, with its coordinator's low (../names.ts)
 *   answerTo   the node that waits for the answer
 *   status     of an answer; 0 in a question
 *   number     the round of an EXECUTE; the shard of a LOG; the length of the log in its answer
 *   shards     of LOG: all shards that the transaction writes, at whatever node
 *   items      rows: a table, a key, whether it is written; with a version and a value where they are known
 *   words      arguments of a procedure, or its result
 *
 * A message may be lost, late, doubled or overtaken. Who asks does so again until the answer is there; who serves must
 * bear both (UnderWay in ../names.ts).
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { nodeIdOf } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_FRAME_BYTES, MAX_PARTITIONS } from "../../runtime/limits.ts";
import { Name } from "../names.ts";
import type { TwoWords } from "./caching-index.ts";

/** In place of a value: there is no such row. */
export const ABSENT = null;
export type Value = Int32Array | typeof ABSENT;

export interface RowName {
  readonly table: number;
  /** A whole number of at most 53 bits. */
  readonly key: number;
}

/** A row in a message; what is undefined is not carried. */
export interface Item extends RowName {
  readonly isWritten: boolean;
  readonly version?: TwoWords | undefined;
  readonly value?: Value | undefined;
}

/** The status of an answer. */
export const OK = 0;
/** Another transaction has locked a row, or it is not what it was. */
export const CONFLICT = 1;
/** No room in the NIC's memory, or in the host's log: later, perhaps. */
export const BUSY = 2;
/** The procedure does not want it. */
export const REFUSED = 3;
/** More rows of one table than the NIC's memory can ever hold at once. */
export const TOO_LARGE = 4;
export type Status = typeof OK | typeof CONFLICT | typeof BUSY | typeof REFUSED | typeof TOO_LARGE;

const NOTHING = new Int32Array(0);
const MAX_WORDS = MAX_FRAME_BYTES / 4;

const IS_WRITTEN = 1;
const HAS_VERSION = 2;
const HAS_VALUE = 4;
const IS_ABSENT = 8;
/** The key has two words. */
const IS_WIDE = 16;
const FLAG_BITS = 5;

export interface MessageFields {
  readonly answerTo?: NodeId;
  readonly status?: Status;
  readonly number?: number;
  readonly shards?: readonly number[];
  readonly items?: readonly Item[];
  readonly words?: Int32Array;
}

export class XenicMessage {
  readonly kind: number;
  readonly name: Name;
  readonly answerTo: NodeId;
  readonly status: Status;
  readonly number: number;
  readonly shards: readonly number[];
  readonly items: readonly Item[];
  readonly words: Int32Array;

  constructor(kind: number, name: Name, fields: MessageFields = {}) {
    this.kind = kind;
    this.name = name;
    this.answerTo = fields.answerTo ?? 0;
    this.status = fields.status ?? OK;
    this.number = fields.number ?? 0;
    this.shards = fields.shards ?? [];
    this.items = fields.items ?? [];
    this.words = fields.words ?? NOTHING;
  }

  encode(out: Writer): void {
    this.name.encode(out);
    // Three small numbers in a word: the node, the status, and how many shards there are.
    out.word(this.answerTo | (this.status << 12) | (this.shards.length << 15));
    out.word(this.number);
    for (const shard of this.shards) out.word(shard);
    out.word(this.items.length);
    for (const item of this.items) encodeItem(out, item);
    out.word(this.words.length);
    out.words(this.words, 0, this.words.length);
  }

  static decode(kind: number, body: Reader): XenicMessage {
    const name = new Name().decode(body);
    const mixed = body.word();
    const number = body.word();
    const shards: number[] = [];
    for (let left = (mixed >>> 15) & 0xffff; left > 0; left--)
      shards.push(body.count(MAX_PARTITIONS));
    const items: Item[] = [];
    for (let left = body.count(body.left); left > 0; left--) items.push(decodeItem(body));
    return new XenicMessage(kind, name, {
      answerTo: nodeIdOf(mixed & 0xfff),
      status: ((mixed >>> 12) & 7) as Status,
      number,
      shards,
      items,
      words: wordsFrom(body),
    });
  }
}

export function encodeItem(out: Writer, { table, key, isWritten, version, value }: Item): void {
  let flags = isWritten ? IS_WRITTEN : 0;
  if (version !== undefined) flags |= HAS_VERSION;
  if (value === ABSENT) flags |= IS_ABSENT;
  else if (value !== undefined) flags |= HAS_VALUE;
  const isWide = key !== (key | 0);
  if (isWide) flags |= IS_WIDE;
  out.word(flags | (table << FLAG_BITS));
  if (isWide) out.wide(key);
  else out.word(key);
  if (version !== undefined) {
    out.word(version.high);
    out.word(version.low);
  }
  if (value === undefined || value === ABSENT) return;
  out.word(value.length);
  out.words(value, 0, value.length);
}

export function decodeItem(body: Reader): Item {
  const mixed = body.word();
  if (mixed < 0) throw new SituError("SITU_PROTOCOL", `a row has no table ${mixed >> FLAG_BITS}`);
  const key = (mixed & IS_WIDE) === 0 ? body.word() : body.wide();
  if (!Number.isSafeInteger(key)) {
    throw new SituError("SITU_PROTOCOL", "the key of a row makes no sense");
  }
  const version = (mixed & HAS_VERSION) === 0 ? undefined : { high: body.word(), low: body.word() };
  let value: Value | undefined;
  if ((mixed & IS_ABSENT) !== 0) value = ABSENT;
  else if ((mixed & HAS_VALUE) !== 0) value = wordsFrom(body);
  return { table: mixed >> FLAG_BITS, key, isWritten: (mixed & IS_WRITTEN) !== 0, version, value };
}

function wordsFrom(body: Reader): Int32Array {
  const count = body.count(MAX_WORDS);
  const from = body.skip(count);
  return body.views.i32.slice(from, from + count);
}

/** The name of a transaction as the owner of a lock, and as the version of what it writes: it never comes twice. */
export function ownerOf({ coordinator, sequence }: Name): TwoWords {
  const upper = Math.floor(sequence / 2 ** 32);
  return { high: (upper << 11) | (coordinator + 1) | 0, low: sequence | 0 };
}

/** For maps of rows. */
export function rowId({ table, key }: RowName): string {
  return `${table}:${key}`;
}
