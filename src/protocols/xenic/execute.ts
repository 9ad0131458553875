/**
 * EXECUTE (§4.2, step 2): a primary locks the rows that are to be written and reads all rows, in one message. A row that
 * another transaction has locked, be it to read or to write, is a conflict, and the answer says so at once.
 *
 * Locks first, reads afterwards: what is read while all locks are held is what the transaction may rely on. Who has
 * met a conflict has no lock here any more and never gets one (`held.end`): a late copy of the same message must not lock
 * what nobody will unlock. A second copy that comes while the first is being served is dropped; one that comes later is
 * answered again, with what the rows are then.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_EXECUTE, XENIC_EXECUTED } from "../kinds.ts";
import { ABORTED, type Name } from "../names.ts";
import type { TwoWords } from "./caching-index.ts";
import {
  ABSENT,
  BUSY,
  CONFLICT,
  type Item,
  OK,
  ownerOf,
  REFUSED,
  rowId,
  type Status,
  TOO_LARGE,
  XenicMessage,
} from "./message.ts";
import type { AnyNic, Held } from "./nic.ts";
import { type NicRoutine, start, together } from "./routine.ts";

export function executeMessage(
  name: Name,
  self: NodeId,
  round: number,
  items: readonly Item[],
): XenicMessage {
  return new XenicMessage(XENIC_EXECUTE, name, { answerTo: self, number: round, items });
}

export function serveExecute(nic: AnyNic, message: XenicMessage): void {
  const { name, number: round, answerTo, items } = message;
  const answer = (status: Status, found: readonly Item[] = []): void => {
    nic.ports.post(
      answerTo,
      new XenicMessage(XENIC_EXECUTED, name, { status, number: round, items: found }),
    );
  };
  nic.held.find(name);
  if (nic.held.isOver(name)) {
    answer(CONFLICT);
    return;
  }
  const isLocking = items.some(({ isWritten }) => isWritten);
  if (!isLocking) {
    // Nothing is left here by one who only reads.
    start(gather(nic, items, ownerOf(name)), (found) => {
      if (found === undefined) answer(CONFLICT);
      else answer(OK, found);
    });
    return;
  }
  const held = nic.hold(name);
  if (held.pending.has(round)) return;
  held.pending.add(round);
  start(lockAndRead(nic, held, items), ({ status, found }) => {
    held.pending.delete(round);
    answer(status, found);
  });
}

/** Locks what is written, then reads everything. In vain: the transaction is over here. */
export function* lockAndRead(
  nic: AnyNic,
  held: Held,
  items: readonly Item[],
): NicRoutine<{ readonly status: Status; readonly found: readonly Item[] }> {
  const owner = ownerOf(held.name);
  const status = lockAll(nic, held, items, owner);
  if (status !== OK) {
    letGo(nic, held);
    return { status, found: [] };
  }
  const found = yield* gather(nic, items, owner);
  // It may have been aborted while its rows were on their way.
  if (nic.held.isOver(held.name)) return { status: CONFLICT, found: [] };
  if (found === undefined) {
    letGo(nic, held);
    return { status: CONFLICT, found: [] };
  }
  // What is committed must find room, so there is none for a new row before.
  if (found.some((item) => item.isWritten && item.value === ABSENT && nic.rows.isFull(item))) {
    letGo(nic, held);
    return { status: REFUSED, found: [] };
  }
  return { status: OK, found };
}

function lockAll(nic: AnyNic, held: Held, items: readonly Item[], owner: TwoWords): Status {
  const { rows, host, options } = nic;
  for (const item of items) if (rows.isLockedByOther(item, owner)) return CONFLICT;
  // A host that does not keep up with its log is given time: what is under way may end, nothing new begins.
  if (held.locks.size === 0 && host.commits.length >= options.logRecords) return BUSY;
  for (const item of items) {
    if (!item.isWritten) continue;
    const status = rows.lock(item, owner);
    if (status === BUSY) {
      const wanted = items.filter(({ isWritten }) => isWritten);
      return rows.canHold([...held.locks.values(), ...wanted]) ? BUSY : TOO_LARGE;
    }
    if (status !== OK) return status;
    held.locks.set(rowId(item), item);
  }
  return OK;
}

/** All rows with their versions and values; undefined if another transaction has locked one. */
export function* gather(
  nic: AnyNic,
  items: readonly Item[],
  owner: TwoWords,
): NicRoutine<Item[] | undefined> {
  const rows = yield* together(items.map((item) => nic.rows.fetch(item, owner)));
  const found: Item[] = [];
  for (const [i, { table, key, isWritten }] of items.entries()) {
    const row = rows[i];
    if (row === undefined) return undefined;
    found.push({ table, key, isWritten, version: row.version, value: row.value });
  }
  return found;
}

/** The transaction is over here: its locks are gone, and late messages of it find nothing. */
export function letGo(nic: AnyNic, held: Held): void {
  const owner = ownerOf(held.name);
  for (const row of held.locks.values()) nic.rows.unlock(row, owner);
  held.locks.clear();
  nic.held.end(held.name, ABORTED);
}
