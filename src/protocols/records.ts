/**
 * What a node keeps of a transaction until it knows the outcome. A primary keeps a record before it answers
 * LOCK, a backup before it answers LOG; both have one format, so that whoever settles what a coordinator has
 * left finds the same at all of them (FaRM §5.3: LOCK and COMMIT-BACKUP records).
 *
 *   word 0   RECORD_FORMAT             word 1   role: AT_PRIMARY or AT_BACKUP
 *   then     head of the transaction, as in LOCK and LOG:
 *              name          coordinator and sequence; its low
 *              configuration in which the commit began
 *              origin        session and number of the client, or an empty session; and of all others
 *                            whose calls it carries out (origin.ts)
 *              partitions    how many, and which: all that the transaction writes, at whatever node
 *   then     from an even word on the writes of this node's partitions (writes.ts)
 *
 * A record is there from before its message is answered until the transaction that installs it, or the word
 * that it is aborted, removes it. So one that is not there was installed, aborted, or never answered.
 */

import { copyWords } from "../engine/journal.ts";
import type { ConfigurationId } from "../fabric/fabric.ts";
import { Reader, Writer } from "../fabric/wire.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_PARTITIONS } from "../runtime/limits.ts";
import { Name } from "./names.ts";
import { decodeOrigins, encodeOrigins, type Origin, skipOrigins } from "./origin.ts";

/** Records of older versions of Situ have another one. */
const RECORD_FORMAT = 2;
const RECORD_HEADER_WORDS = 2;
/** Its number is a word of every frame. */
const MAX_CONFIGURATION = 0x7fffffff;

export const AT_PRIMARY = 1;
export const AT_BACKUP = 2;
export type Role = typeof AT_PRIMARY | typeof AT_BACKUP;

/** What all nodes that take part know of a transaction. */
export class Head {
  readonly name: Name;
  readonly configurationId: ConfigurationId;
  readonly origin: Origin | undefined;
  /** All partitions that the transaction writes, in their order. */
  readonly partitions: readonly number[];

  constructor(
    name: Name,
    configurationId: ConfigurationId,
    origin: Origin | undefined,
    partitions: readonly number[],
  ) {
    this.name = name;
    this.configurationId = configurationId;
    this.origin = origin;
    this.partitions = partitions;
  }

  encode(out: Writer): void {
    this.name.encode(out);
    out.word(this.configurationId);
    encodeOrigins(out, this.origin);
    out.word(this.partitions.length);
    for (const partition of this.partitions) out.word(partition);
  }

  static decode(body: Reader): Head {
    const name = new Name().decode(body);
    const configurationId = body.count(MAX_CONFIGURATION);
    const origin = decodeOrigins(body);
    const partitions: number[] = [];
    for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
      partitions.push(body.count(MAX_PARTITIONS));
    }
    return new Head(name, configurationId, origin, partitions);
  }
}

/** Reads the name of a head and passes over the rest, which was checked to be there. */
export function skipHead(body: Reader, name: Name): Name {
  name.decode(body);
  body.word();
  skipOrigins(body);
  body.skip(body.count(MAX_PARTITIONS));
  return name;
}

/** Short records are cut from one buffer after another: one of its own costs more than all else about a record. */
const POOL_WORDS = 2048;
const MAX_POOLED_WORDS = POOL_WORDS / 8;
let pool = new Int32Array(0);
let poolAt = 0;

function newRecord(words: number): Int32Array {
  if (words > MAX_POOLED_WORDS) return new Int32Array(words);
  if (poolAt + words > pool.length) {
    pool = new Int32Array(POOL_WORDS);
    poolAt = 0;
  }
  poolAt += words;
  return pool.subarray(poolAt - words, poolAt);
}

/** The words [from, to) of a message, from its head to the end of its writes, as a record. */
export function recordOf(
  role: Role,
  { views }: Pick<Reader, "views">,
  from: number,
  to: number,
): Int32Array {
  const record = newRecord(RECORD_HEADER_WORDS + ((to - from + 1) & ~1));
  record[0] = RECORD_FORMAT;
  record[1] = role;
  copyWords(views.i32, from, record, RECORD_HEADER_WORDS, to - from);
  return record;
}

/** Reads records, one at a time. */
export class RecordReader {
  readonly #copy = new Writer();
  readonly #body = new Reader(this.#copy.views);

  /** A reader at the head of a record, at the same even and odd words as in the message. */
  open(record: Int32Array): Reader {
    if (record[0] !== RECORD_FORMAT) throw otherFormat();
    this.#copy.clear();
    this.#copy.words(record, 0, record.length);
    return this.#body.reset(this.#copy.views, RECORD_HEADER_WORDS, record.length);
  }
}

function otherFormat(): SituError {
  return new SituError(
    "SITU_LAYOUT",
    "the store holds records of transactions that another version of Situ has written: start that " +
      "version once more, and stop it when all nodes of the cluster are up",
  );
}
