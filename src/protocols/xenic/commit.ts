/**
 * COMMIT and ABORT (§4.2, step 6), at primaries.
 *
 * COMMIT comes when all backups have logged the transaction. The primary's NIC appends the writes to its host's log; when they
 * are there, its index has the new values, the rows are unlocked, and pinned until the host has applied them. A primary that
 * has executed the transaction itself knows the writes already and is told no more than the name.
 *
 * ABORT unlocks. It is answered too, and sent until it is: a lock that is left behind would stay. Both may come late or twice:
 * who is over is answered again. An ABORT that overtakes its EXECUTE ends the transaction before it has begun here.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_ABORT, XENIC_ABORTED, XENIC_COMMIT, XENIC_COMMITTED } from "../kinds.ts";
import { ABORTED, COMMITTED, type Name } from "../names.ts";
import { letGo } from "./execute.ts";
import { recordWords } from "./log.ts";
import { ABSENT, type Item, ownerOf, rowId, XenicMessage } from "./message.ts";
import type { AnyNic } from "./nic.ts";

export function commitMessage(
  name: Name,
  self: NodeId,
  shards: readonly number[],
  items: readonly Item[],
): XenicMessage {
  return new XenicMessage(XENIC_COMMIT, name, { answerTo: self, shards, items });
}

export function abortMessage(name: Name, self: NodeId): XenicMessage {
  return new XenicMessage(XENIC_ABORT, name, { answerTo: self });
}

export function serveCommit(nic: AnyNic, { name, items, shards, answerTo }: XenicMessage): void {
  const answer = (): void => nic.ports.post(answerTo, new XenicMessage(XENIC_COMMITTED, name));
  const held = nic.held.find(name);
  if (held === undefined) {
    // It was committed here before; an earlier copy of this did it.
    if (nic.held.isOver(name)) answer();
    return;
  }
  if (held.isCommitting) return;
  held.isCommitting = true;
  const owner = ownerOf(name);
  const writes = held.executed === undefined ? items : ownOf(nic, held.executed.items);
  const install = (): void => {
    const { configurationId } = nic.placement;
    const record = { name, configurationId, shards, shard: -1, items: writes, isKept: false };
    if (writes.length > 0) nic.host.appendCommit(record);
    for (const item of writes) {
      nic.rows.commit(item, owner, item.value ?? ABSENT);
      held.locks.delete(rowId(item));
    }
    // Rows that were locked and are as they were.
    for (const row of held.locks.values()) nic.rows.unlock(row, owner);
    nic.held.end(name, COMMITTED);
    answer();
  };
  // One who has executed a transaction and has no part in its writes is only told that it is over.
  if (writes.length === 0) install();
  else nic.ports.write(recordWords(writes), install);
}

function ownOf(nic: AnyNic, items: readonly Item[]): Item[] {
  return items.filter((item) => nic.rows.has(item));
}

export function serveAbort(nic: AnyNic, { name, answerTo }: XenicMessage): void {
  const held = nic.held.find(name);
  if (held !== undefined) letGo(nic, held);
  else if (!nic.held.isOver(name)) nic.held.end(name, ABORTED);
  nic.ports.post(answerTo, new XenicMessage(XENIC_ABORTED, name));
}
