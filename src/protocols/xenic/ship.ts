/**
 * SHIP (§4.2.3, multi-hop): a transaction whose rows are at one remote primary, or at the coordinator's own and one
 * remote primary, is executed at the remote one. It locks and reads its rows, runs the procedure, and sends LOG to
 * all backups, which answer the coordinator directly:
 *
 *     coordinator ── SHIP ──▶ primary ── LOG ──▶ backups ── LOGGED ──▶ coordinator ── COMMIT ──▶ primary
 *
 * The coordinator has locked its own rows before, all of them, also those that are only read: nobody could validate them
 * afterwards, since LOG is sent without asking it. The primary's own rows that are only read are validated here, when
 * all locks of the transaction are held. A conflict, a refusal, and a transaction that writes nothing are
 * answered by the primary itself (SHIPPED); so is one whose shards have no backups left.
 *
 * A second SHIP of a transaction that was executed sends its LOGs again, so who has lost answers gets them.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_SHIP, XENIC_SHIPPED } from "../kinds.ts";
import type { Name } from "../names.ts";
import { gather, letGo, lockAndRead } from "./execute.ts";
import { carriedWords, logPosts } from "./log.ts";
import { CONFLICT, type Item, OK, ownerOf, REFUSED, type Status, XenicMessage } from "./message.ts";
import type { AnyNic, Executed, Held } from "./nic.ts";
import { type Execution, perform } from "./procedure.ts";
import { type NicRoutine, start } from "./routine.ts";
import { areStill } from "./validate.ts";

/** `items` with values are the coordinator's own, which it has locked. */
export function shipMessage(
  name: Name,
  self: NodeId,
  procedure: number,
  args: Int32Array,
  items: readonly Item[],
): XenicMessage {
  return new XenicMessage(XENIC_SHIP, name, {
    answerTo: self,
    number: procedure,
    items,
    words: args,
  });
}

export function serveShip(nic: AnyNic, message: XenicMessage): void {
  const { name, items, answerTo } = message;
  const answer = (status: Status, result?: Executed): void => {
    const { items: found = [], shards = [] } = result ?? {};
    const words = result === undefined ? undefined : carriedWords(result.result);
    const fields = { status, items: found, shards, ...(words === undefined ? {} : { words }) };
    nic.ports.post(answerTo, new XenicMessage(XENIC_SHIPPED, name, fields));
  };
  nic.held.find(name);
  if (nic.held.isOver(name)) {
    answer(CONFLICT);
    return;
  }
  if (!items.some(({ isWritten }) => isWritten)) {
    start(readOnly(nic, message), ({ status, executed }) => answer(status, executed));
    return;
  }
  const held = nic.hold(name);
  if (held.executed !== undefined) sendLogs(nic, held, answerTo, answer);
  if (held.executed !== undefined || held.isShipping) return;
  held.isShipping = true;
  start(readWrite(nic, held, message), ({ status, executed }) => {
    held.isShipping = false;
    if (status !== OK || executed === undefined || executed.shards.length === 0) {
      answer(status, executed);
      return;
    }
    held.executed = executed;
    sendLogs(nic, held, answerTo, answer);
  });
}

interface Shipped {
  readonly status: Status;
  readonly executed?: Executed;
}

function* readOnly(nic: AnyNic, message: XenicMessage): NicRoutine<Shipped> {
  const { name, items, words, number } = message;
  const owner = ownerOf(name);
  const found = yield* gather(nic, items, owner);
  if (found === undefined) return { status: CONFLICT };
  // Rows that came from host memory were read at different moments.
  if (found.length > 1 && !(yield* areStill(nic, found, owner))) return { status: CONFLICT };
  const execution = yield* perform(nic.options.procedures[number], words, found);
  if (execution.kind !== "done") return { status: statusOf(execution) };
  return { status: OK, executed: { items: [], shards: [], result: execution.result } };
}

function* readWrite(nic: AnyNic, held: Held, message: XenicMessage): NicRoutine<Shipped> {
  const { items, words, number } = message;
  const { shardOf } = nic.placement;
  const own = items.filter((item) => nic.rows.has(item));
  const foreign = items.filter((item) => !own.includes(item));
  const { status, found } = yield* lockAndRead(nic, held, own);
  if (status !== OK) return { status };
  const onlyRead = found.filter(({ isWritten }) => !isWritten);
  const isValid = onlyRead.length === 0 || (yield* areStill(nic, onlyRead, ownerOf(held.name)));
  if (nic.held.isOver(held.name)) return { status: CONFLICT };
  if (!isValid) {
    letGo(nic, held);
    return { status: CONFLICT };
  }
  const execution = yield* perform(nic.options.procedures[number], words, [...found, ...foreign]);
  // It may have been aborted while the procedure ran elsewhere.
  if (nic.held.isOver(held.name)) return { status: CONFLICT };
  if (execution.kind !== "done") {
    letGo(nic, held);
    return { status: statusOf(execution) };
  }
  const writes = execution.writes.map((row) => ({ ...row, isWritten: true }));
  const shards = [...new Set(writes.map(({ table, key }) => shardOf(table, key)))];
  if (writes.length === 0) letGo(nic, held);
  return { status: OK, executed: { items: writes, shards, result: execution.result } };
}

function statusOf({ kind }: Execution): Status {
  return kind === "conflict" ? CONFLICT : REFUSED;
}

function sendLogs(
  nic: AnyNic,
  held: Held,
  answerTo: NodeId,
  answer: (status: Status, executed: Executed) => void,
): void {
  const { placement } = nic;
  const executed = held.executed as Executed;
  const { items, shards, result } = executed;
  const coordinators = items.filter(
    ({ table, key }) => placement.primaryOf(placement.shardOf(table, key)) === answerTo,
  );
  const carried = { items: coordinators, result };
  const posts = logPosts(placement, held.name, answerTo, shards, items, { carried });
  if (posts.length === 0) answer(OK, { items: coordinators, shards, result });
  for (const { to, message } of posts) nic.ports.post(to, message);
}
