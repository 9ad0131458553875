/**
 * Fetch rows: one who copies partitions asks their primary for rows of a table, a piece at a time. Each piece is a
 * local transaction at the primary, so each row is given in a state that was committed; nothing is kept
 * there between two pieces, so they may come twice, or late, or never.
 *
 *   message  table; place; how many partitions, and which
 *   reply    OK or LOCKED; with OK: microseconds that it took; 1 if there are no more rows; place; writes
 *            (writes.ts), which are puts
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { MAX_ACCESSES, MAX_PARTITIONS } from "../../runtime/limits.ts";
import { decodeWords, encodeWords } from "../../tables/served/requests.ts";
import { FETCH_ROWS } from "../kinds.ts";
import { LOCKED, Message, OK } from "../message.ts";
import type { CopySource } from "./source.ts";

export class FetchRows extends Message {
  readonly kind = FETCH_ROWS;
  outcome = OK;
  spentMs = 0;
  isDone = false;
  place: Int32Array;
  rows = 0;
  /** Puts, one behind the other. */
  writes = new Int32Array(0);
  readonly #table: number;
  readonly #partitions: readonly number[];

  constructor(to: NodeId, table: number, place: Int32Array, partitions: readonly number[]) {
    super(to);
    this.#table = table;
    this.place = place;
    this.#partitions = partitions;
  }

  encode(out: Writer): void {
    out.word(this.#table);
    encodeWords(out, this.place);
    out.word(this.#partitions.length);
    for (const partition of this.#partitions) out.word(partition);
  }

  protected decode(reply: Reader): void {
    this.outcome = reply.word();
    if (this.outcome !== OK) return;
    this.spentMs = reply.count(0x7fffffff) / 1e3;
    this.isDone = reply.word() === 1;
    this.place = decodeWords(reply);
    this.rows = reply.count(MAX_ACCESSES);
    const words = reply.count(reply.left);
    reply.align();
    const at = reply.skip(words);
    this.writes = reply.views.i32.slice(at, at + words);
  }
}

/** At the primary. */
export function serveFetchRows(source: CopySource, incoming: Incoming): void {
  const { body } = incoming;
  const table = source.tables.byId(body.word());
  const place = decodeWords(body);
  const partitions = new Set<number>();
  for (let left = body.count(MAX_PARTITIONS); left > 0; left--) {
    partitions.add(body.count(MAX_PARTITIONS));
  }
  const read = source.read(table, place, partitions);
  const out = incoming.reply();
  if (read === undefined) {
    out.word(LOCKED);
    return;
  }
  const { rows, isDone, place: next, spentMs, writes } = read;
  out.word(OK);
  out.word(Math.min(Math.round(spentMs * 1e3), 0x7fffffff));
  out.word(isDone ? 1 : 0);
  encodeWords(out, next);
  out.word(rows);
  out.word(writes.at);
  out.align();
  out.words(writes.views.i32, 0, writes.at);
}
