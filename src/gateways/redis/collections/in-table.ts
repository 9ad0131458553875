/**
 * A large hash or set: a row for each member in a table of its own, so that a change costs the same
 * however many there are. Members have positions from 0 on without gaps. The last one takes the
 * place of one that is removed; so a member at random, and the next step of a scan, are one lookup.
 */

import { uniqueNumber } from "../../../runtime/random.ts";
import type { Replies } from "../../resp/replies.ts";
import type { Keyspace } from "../keyspace.ts";
import { type Form, NO_VALUE } from "./form.ts";
import { type Large, largeValue } from "./large.ts";
import { MemberTable } from "./member-table.ts";

export class InTable implements Form {
  readonly #table: MemberTable;
  readonly #id: bigint;
  #size: number;
  // The current member; its value is read when someone asks.
  #member: Uint8Array = NO_VALUE;
  #position = 0;
  #value: Uint8Array | undefined;

  constructor(keys: Keyspace, { id, members }: Large) {
    this.#table = MemberTable.of(keys);
    this.#id = id;
    this.#size = members;
  }

  static empty(keys: Keyspace): InTable {
    return new InTable(keys, { id: uniqueNumber(), members: 0 });
  }

  get size(): number {
    return this.#size;
  }

  find(member: Uint8Array): boolean {
    const row = this.#table.read(this.#id, member);
    if (row === undefined) return false;
    this.#member = row.member;
    this.#position = row.position;
    this.#value = row.value;
    return true;
  }

  go(position: number): void {
    this.#member = this.#table.memberAt(this.#id, position);
    this.#position = position;
    this.#value = undefined;
  }

  get member(): Uint8Array {
    return this.#member;
  }

  get value(): Uint8Array {
    if (this.#value === undefined) this.find(this.#member);
    return this.#value ?? NO_VALUE;
  }

  replyMember(replies: Replies): void {
    replies.bulk(this.#member);
  }

  replyValue(replies: Replies): void {
    replies.bulk(this.value);
  }

  add(member: Uint8Array, value: Uint8Array): void {
    this.#table.insert({ id: this.#id, member, position: this.#size, value });
    this.#size++;
  }

  change(value: Uint8Array): void {
    this.#table.changeValue(this.#id, this.#member, value);
  }

  remove(): void {
    const id = this.#id;
    const table = this.#table;
    const last = this.#size - 1;
    table.remove(id, this.#member);
    if (this.#position !== last) table.move(id, table.memberAt(id, last), this.#position);
    this.#size = last;
  }

  row(): Uint8Array {
    return largeValue({ id: this.#id, members: this.#size });
  }
}
