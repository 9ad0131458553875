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
import { MAX_SESSION_NAME_LENGTH } from "../../runtime/limits.ts";
import type { ServedTables } from "../../tables/served/contract.ts";
import { LOG } from "../kinds.ts";
import { Message } from "../message.ts";
import { AT_BACKUP, type Head, recordOf, skipHead } from "../records.ts";
import { writesIn } from "../writes.ts";
import type { ServingThread } from "./table.ts";

/** Beside writes and partitions: headers of frames, a name, an origin, how much there is; rather too many. */
const RECORD_WORDS = 32 + MAX_SESSION_NAME_LENGTH;

/** Writes of several parts, for one backup: where they lie, not copies of them. */
export class LogWrites {
  count = 0;
  #words = 0;
  readonly #sources: Int32Array[] = [];
  readonly #places: number[] = [];

  /** Words of a record that holds them, its head included. */
  recordWords(head: Head): number {
    return RECORD_WORDS + head.partitions.length + this.#words;
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
export function serveLog({ backup }: ServingThread, incoming: Incoming): void {
  assert(backup !== undefined, "records go to the thread that keeps them");
  const { body } = incoming;
  const start = body.at;
  const name = skipHead(body, backup.name);
  if (!backup.isKnown(name)) {
    checkWrites(backup.tables, body);
    backup.keep(name, recordOf(AT_BACKUP, body, start, body.end));
  }
  incoming.reply();
  backup.applyLeftOvers();
}

/** A record that could not be applied later would keep all that come after it waiting. */
function checkWrites(tables: ServedTables, body: Reader): void {
  for (const request of writesIn(body)) tables.byId(request.table).check(request);
}
