/**
 * LOG (§4.2, step 5): a backup's NIC appends the writes of one shard to its host's log and answers when they are there. In a
 * multi-hop commit it is sent by the primary that has executed the transaction, and answered to the coordinator
 * (§4.2.3). The first LOG then carries the result and the coordinator's own writes, and its answer hands them on.
 *
 * The log has no limit that refuses a record: two backups that wait for each other's room would wait for ever. Instead an answer
 * says that the log is long, and the coordinator begins nothing new until it is not: so it is bounded by what is under way.
 *
 * LOG is sent when nothing can make the transaction abort any more, but a death. A record has the names of all shards that
 * the transaction writes, so that recovery knows where to look for the others.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_LOG, XENIC_LOG_LENGTH, XENIC_LOGGED } from "../kinds.ts";
import type { Name } from "../names.ts";
import type { Post } from "./asking.ts";
import { BUSY, type Item, OK, type Status, XenicMessage } from "./message.ts";
import type { AnyNic } from "./nic.ts";
import type { Placement } from "./ports.ts";

/** What the first LOG of a multi-hop commit carries for the coordinator. */
export interface Carried {
  /** Its own writes. */
  readonly items: readonly Item[];
  readonly result: Int32Array;
}

export interface LogOptions {
  readonly carried?: Carried;
  /** The primary gets it, too, where the coordinator is a backup itself. */
  readonly provesAll?: boolean;
}

/** LOG for each backup of each shard that is written. */
export function logPosts(
  placement: Placement,
  name: Name,
  answerTo: NodeId,
  shards: readonly number[],
  writes: readonly Item[],
  { carried, provesAll = false }: LogOptions,
): Post[] {
  const posts: Post[] = [];
  for (const shard of shards) {
    const items = writes.filter(({ table, key }) => placement.shardOf(table, key) === shard);
    const backups = placement.backupsOf(shard);
    const keepers = provesAll && backups.includes(answerTo) ? [placement.primaryOf(shard)] : [];
    for (const to of [...backups, ...keepers]) {
      const isFirst = posts.length === 0 && carried !== undefined;
      const further = isFirst ? carried.items.filter((item) => !items.includes(item)) : [];
      const message = new XenicMessage(XENIC_LOG, name, {
        answerTo,
        number: shard,
        shards,
        // What is not this shard's is for the coordinator.
        items: [...items, ...further],
        ...(isFirst ? { words: carriedWords(carried.result) } : {}),
      });
      posts.push({ to, message });
    }
  }
  return posts;
}

export function serveLog(nic: AnyNic, message: XenicMessage): void {
  const { name, number: shard, shards, answerTo, items, words } = message;
  let logged = nic.logged.find(name);
  // What is over was answered by everybody, or nobody would have said so.
  if (logged === undefined && nic.logged.isOver(name)) return;
  if (logged === undefined) {
    logged = { name, shards: new Map() };
    nic.logged.begin(name, logged);
  }
  const { shardOf } = nic.placement;
  const own = items.filter(({ table, key }) => shardOf(table, key) === shard);
  const answer = (): void => {
    const carried = words.length === 0 ? [] : items;
    nic.ports.post(
      answerTo,
      new XenicMessage(XENIC_LOGGED, name, {
        status: lengthOf(nic),
        number: shard,
        shards,
        items: carried,
        words,
      }),
    );
  };
  const state = logged.shards.get(shard);
  if (state === "there") answer();
  if (state !== undefined) return;
  const { shards: states } = logged;
  states.set(shard, "appending");
  nic.ports.write(recordWords(own), () => {
    states.set(shard, "there");
    const { configurationId, primaryOf } = nic.placement;
    const isKept = primaryOf(shard) === nic.self;
    nic.host.logged.push({ name, configurationId, shards, shard, items: own, isKept });
    answer();
  });
}

/** A coordinator has said that its transactions below its low are over; the answer says whether the log is still long. */
export function serveLow(nic: AnyNic, from: NodeId, { name }: XenicMessage): void {
  nic.ports.post(from, new XenicMessage(XENIC_LOG_LENGTH, name, { status: lengthOf(nic) }));
}

/** BUSY if the host does not keep up with its log. */
function lengthOf(nic: AnyNic): Status {
  return nic.host.logged.length >= nic.options.logRecords ? BUSY : OK;
}

/** Words of a record in the host's log. */
export function recordWords(items: readonly Item[]): number {
  return items.reduce((sum, { value }) => sum + 4 + (value?.length ?? 0), 6);
}

/** A result, even an empty one, as words of which there is at least one. */
export function carriedWords(result: Int32Array): Int32Array {
  const words = new Int32Array(result.length + 1);
  words[0] = result.length;
  words.set(result, 1);
  return words;
}

export function resultOf(words: Int32Array): Int32Array {
  return words.slice(1);
}
