/**
 * Log: the transaction goes to the journals of all backups before any primary installs it (FaRM
 * §3.4: commit messages go first to the replicas). From the last acknowledgement on it is
 * committed, whatever happens to the primaries.
 *
 *   message  head (records.ts), writes: those whose partitions the backup has
 *   reply    nothing
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import type { ServedTables } from "../../tables/served/contract.ts";
import { replyWhenKept } from "../disk.ts";
import { LOG } from "../kinds.ts";
import { Message } from "../message.ts";
import { originWords } from "../origin.ts";
import { AT_BACKUP, type Head, recordOf, skipHead } from "../records.ts";
import { writesIn } from "../writes.ts";
import type { ServingThread } from "./table.ts";

/** Beside writes, partitions and origins: headers of frames, a name, how much there is; rather too many. */
const RECORD_WORDS = 32;

/** Writes of several parts, for one backup: where they lie, not copies of them. */
export class LogWrites {
  count = 0;
  #words = 0;
  readonly #sources: Int32Array[] = [];
  readonly #places: number[] = [];

  /** Words of a record that holds them, its head included. */
  recordWords(head: Head): number {
    return RECORD_WORDS + originWords(head.origin) + head.partitions.length + this.#words;
  }

  add(source: Int32Array, at: number): void {
    this.#sources.push(source);
    this.#places.push(at);
    this.#words += source[at];
    this.count++;
  }

  encode(out: Writer): void {
    out.word(this.count);
    out.word(this.#words);
    out.align();
    for (let i = 0; i < this.count; i++) {
      const source = this.#sources[i];
      out.words(source, this.#places[i], source[this.#places[i]]);
    }
  }
}

export class Log extends Message {
  readonly kind = LOG;
  override readonly isInsistent = true;
  readonly #head: Head;
  readonly #writes: LogWrites;

  constructor(to: NodeId, head: Head, writes: LogWrites) {
    super(to);
    this.#head = head;
    this.#writes = writes;
  }

  encode(out: Writer): void {
    this.#head.encode(out);
    this.#writes.encode(out);
  }

  protected decode(_reply: Reader): void {}
}

/** At a backup: keeps the record, once, and then says so. */
export function serveLog({ backup, disk }: ServingThread, incoming: Incoming): void {
  assert(backup !== undefined, "records go to the thread that keeps them");
  const { body } = incoming;
  const start = body.at;
  const name = skipHead(body, backup.name);
  if (!backup.isKept(name)) {
    // Nobody waits for this answer: its coordinator is through with it, or dead.
    if (backup.isOver(name)) throw new SituError("SITU_PROTOCOL", "a record of what is over");
    const rows = rowsOf(backup.tables, body);
    backup.keep(name, recordOf(AT_BACKUP, body, start, body.end), rows);
  }
  replyWhenKept(disk, incoming);
}

/** The rows that it writes. A record that could not be applied later is refused. */
function rowsOf(tables: ServedTables, body: Reader): number[] {
  const rows: number[] = [];
  for (const request of writesIn(body)) rows.push(tables.byId(request.table).check(request));
  return rows;
}
