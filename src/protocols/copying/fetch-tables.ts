/**
 * Fetch tables: which tables another node has. One who copies opens all of them before it copies the first row, and
 * one that is sent a record of a table that it has not heard of asks for them, too.
 *
 *   message  how many of them are known
 *   reply    how many there are; how many follow, and the schema of each
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import type { Reader, Writer } from "../../fabric/wire.ts";
import { MAX_SCHEMAS_BYTES, MAX_TABLES } from "../../runtime/limits.ts";
import { FETCH_TABLES } from "../kinds.ts";
import { Message, type Routine } from "../message.ts";
import type { CopySource } from "./source.ts";

class FetchTables extends Message {
  readonly kind = FETCH_TABLES;
  readonly schemas: string[] = [];
  total = 0;
  readonly #known: number;

  constructor(to: NodeId, known: number) {
    super(to);
    this.#known = known;
  }

  encode(out: Writer): void {
    out.word(this.#known);
  }

  protected decode(reply: Reader): void {
    this.total = reply.count(MAX_TABLES);
    this.schemas.length = 0;
    for (let left = reply.count(MAX_TABLES); left > 0; left--) this.schemas.push(reply.text());
  }
}

/** The schemas of all tables of a node. */
export function* fetchSchemas(node: NodeId): Routine<string[]> {
  const all: string[] = [];
  for (;;) {
    const message = new FetchTables(node, all.length);
    yield [message];
    if (message.error !== undefined) throw message.error;
    all.push(...message.schemas);
    if (message.schemas.length === 0 || all.length >= message.total) return all;
  }
}

/** At any node. */
export function serveFetchTables({ tables }: CopySource, incoming: Incoming): void {
  const known = incoming.body.count(MAX_TABLES);
  const all = tables.schemas();
  const told: string[] = [];
  let bytes = 0;
  for (const schema of all.slice(known)) {
    if (bytes > MAX_SCHEMAS_BYTES) break;
    bytes += schema.length;
    told.push(schema);
  }
  const out = incoming.reply();
  out.word(all.length);
  out.word(told.length);
  for (const schema of told) out.text(schema);
}
