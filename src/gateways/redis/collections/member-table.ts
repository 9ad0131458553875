/**
 * The table of members (tables.ts) as large collections use it, in the transaction of a keyspace.
 * Where a member is must not be believed too early: what a transaction has read at two moments may
 * not fit together, and then it cannot commit and is run again.
 */

import { MAX_KEY_BYTES } from "../../../runtime/limits.ts";
import type { Index } from "../../../tables/indexes/entries.ts";
import { openIndex } from "../../../tables/indexes/forms.ts";
import type { RowValues } from "../../../tables/indexes/structure.ts";
import type { Keyspace } from "../keyspace.ts";
import { RedisMembers } from "../tables.ts";

export interface MemberRow {
  readonly id: bigint;
  readonly member: Uint8Array;
  readonly position: number;
  readonly value: Uint8Array;
}

const tables = new WeakMap<Keyspace, MemberTable>();

export class MemberTable {
  readonly #keys: Keyspace;
  readonly #byPosition: Index;

  constructor(keys: Keyspace) {
    this.#keys = keys;
    const { members, executor } = keys;
    this.#byPosition = openIndex(executor, RedisMembers, members.storedIndex("position"));
  }

  /** The one of a keyspace. */
  static of(keys: Keyspace): MemberTable {
    let table = tables.get(keys);
    if (table === undefined) {
      table = new MemberTable(keys);
      tables.set(keys, table);
    }
    return table;
  }

  read(id: bigint, member: Uint8Array): MemberRow | undefined {
    // Too long to be anyone's: the table would call it an error.
    if (member.length > MAX_KEY_BYTES) return undefined;
    const row = this.#keys.members.rows.read(this.#keys.tx, [id, member]);
    return row as MemberRow | undefined;
  }

  /** The name of the member at a position, or undefined if there is none. */
  nameAt(id: bigint, position: number): Uint8Array | undefined {
    const found = this.#byPosition.find(this.#keys.tx, [id, position]);
    return found === undefined ? undefined : (found as [bigint, Uint8Array])[1];
  }

  /** The same for a position that has one. */
  memberAt(id: bigint, position: number): Uint8Array {
    return this.nameAt(id, position) ?? this.#keys.tx.conflict(-1);
  }

  insert(row: MemberRow): void {
    const { members, tx } = this.#keys;
    if (!members.store.insert(tx, row as unknown as RowValues)) tx.conflict(-1);
  }

  changeValue(id: bigint, member: Uint8Array, value: Uint8Array): void {
    const { members, tx } = this.#keys;
    if (!members.store.update(tx, [id, member], { value })) tx.conflict(-1);
  }

  move(id: bigint, member: Uint8Array, position: number): void {
    const { members, tx } = this.#keys;
    if (!members.store.update(tx, [id, member], { position })) tx.conflict(-1);
  }

  remove(id: bigint, member: Uint8Array): void {
    const { members, tx } = this.#keys;
    if (!members.store.remove(tx, [id, member])) tx.conflict(-1);
  }
}
