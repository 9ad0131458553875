/**
 * Log: the transaction goes to the journals of all backups before any primary installs it (FaRM
 * §3.4: commit messages go first to the replicas). From the last acknowledgement on it is
 * committed, whatever happens to the primaries.
 *
 *   message  name, writes: those whose partitions the backup has
 *   reply    nothing
 */

import type { ConfigurationId, Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { assert } from "../../runtime/assert.ts";
import type { ServedTables } from "../../tables/served/contract.ts";
import { RECORD_HEADER_WORDS } from "../backup-records.ts";
import { LOG } from "../kinds.ts";
import { Message } from "../message.ts";
import type { Name } from "../names.ts";
import { writesIn } from "../writes.ts";
import type { ServingThread } from "./table.ts";

/** Beside the writes: headers of frames, epochs, a name, and how much there is; rather too many. */
const RECORD_WORDS = 32;

/** Writes of several parts, for one backup: where they lie, not copies of them. */
export class LogWrites {
  count = 0;
  #words = 0;
  readonly #sources: Int32Array[] = [];
  readonly #places: number[] = [];

  /** Words of a record that holds them, its name included. */
  get recordWords(): number {
    return RECORD_WORDS + this.#words;
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
  readonly #name: Name;
  readonly #writes: LogWrites;

  constructor(to: NodeId, name: Name, writes: LogWrites) {
    super(to);
    this.#name = name;
    this.#writes = writes;
  }

  encode(out: Writer): void {
    this.#name.encode(out);
    this.#writes.encode(out);
  }

  protected decode(_reply: Reader): void {}
}

/** At a backup: keeps the record, once, and then says so. */
export function serveLog({ backup, view }: ServingThread, incoming: Incoming): void {
  assert(backup !== undefined, "records go to the thread that keeps them");
  const { body } = incoming;
  const start = body.at;
  const name = backup.name.decode(body);
  if (!backup.isKnown(name)) {
    checkWrites(backup.tables, body);
    backup.keep(name, recordOf(body, start, view.current.configurationId));
  }
  incoming.reply();
  backup.applyLeftOvers();
}

/** A record that could not be applied later would keep all that come after it waiting. */
function checkWrites(tables: ServedTables, body: Reader): void {
  for (const request of writesIn(body)) tables.byId(request.table).check(request);
}

/** The message from its name on, behind the number of the configuration. */
function recordOf(body: Reader, start: number, configurationId: ConfigurationId): Int32Array {
  const record = new Int32Array(RECORD_HEADER_WORDS + ((body.end - start + 1) & ~1));
  record[0] = configurationId;
  record.set(body.views.i32.subarray(start, body.end), RECORD_HEADER_WORDS);
  return record;
}
