/**
 * Where read and commit timestamps come from (NAM-DB §3.1, §4). One switch, for all threads of a compute server:
 *
 *   vector       a slot for each thread, read by each transaction, published by one write
 *   background   the same, but one reader for the whole server fetches the vector over and over
 *   compressed   a slot for each compute server: the vector is short, and commits of several threads are published by one write
 *   both         compressed, and fetched in the background
 *   oracle       one counter for all: to compare
 *
 * The vector may be cut in parts at several servers. Then two readers may see two commits in opposite
 * orders (§4.2), which is less than snapshot isolation; nothing else uses it.
 *
 * With copies of the vector (members.ts), a slot is published at the others first and then where it is read: what
 * anybody has seen is at all of them. Whoever reads the vector reads a word of the others, too. If the members have
 * changed, one of those is still a member and refuses; so a server that is not, and does not know it, misleads nobody.
 *
 * The paper leaves three things open, which matter here (decision 0070):
 *
 *   - A fetched vector may be older than the thread's own last commit. With `own: "overlay"` the thread adds its own slot.
 *     Its transactions then see their own predecessors, but two threads may see each other's commits in
 *     opposite orders, as with a vector in parts. With `own: "wait"`, which is the default, a thread that
 *     finds its last commit missing reads the vector itself, until it is there: one vector, one order.
 *   - Threads that share a slot finish in any order. What is published is the last timestamp up to which
 *     all are done (publish-window.ts); otherwise versions that are half installed would be visible.
 *   - A slot that has come to its last timestamp is used up: SITU_FULL, and the thread needs another one.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Routine } from "../message.ts";
import { type ComputeThread, type NamDirectory, vectorCopies } from "./compute-thread.ts";
import { MAX_TIMESTAMP, type VectorSlot } from "./header.ts";
import { OracleDone } from "./oracle.ts";
import { PublishWindow } from "./publish-window.ts";
import { ORACLE_COMMIT_AT, ORACLE_READ_AT, TIMESTAMPS, VECTOR_AT } from "./segments.ts";
import { AddVerb, ReadVerb, WriteVerb } from "./verbs.ts";
import {
  type OwnCommits,
  ScalarVisibility,
  VectorVisibility,
  type Visibility,
} from "./visibility.ts";

export type TimestampLayout = "vector" | "background" | "compressed" | "both" | "oracle";

export interface TimestampOptions {
  readonly layout: TimestampLayout;
  readonly own?: "wait" | "overlay";
}

/** The timestamps of one compute server. */
export class Timestamps {
  readonly layout: TimestampLayout;
  readonly #own: "wait" | "overlay";
  readonly #directory: NamDirectory;
  readonly #windows = new Map<VectorSlot, PublishWindow>();
  /** By thread: its own commits that the slot's window does not cover yet, and its last one. */
  readonly #lastOf = new Map<number, number>();
  readonly #furtherOf = new Map<number, number[]>();
  #fetched: Int32Array | undefined;
  #isFetching = false;

  constructor(directory: NamDirectory, { layout, own = "wait" }: TimestampOptions) {
    this.layout = layout;
    this.#own = own;
    this.#directory = directory;
  }

  /** A thread begins, or goes on after it was settled: the slot was published up to here. */
  resume(thread: ComputeThread, published: number): void {
    this.#windowOf(thread.slot).resume(published);
    this.#lastOf.set(thread.pair, published);
    this.#furtherOf.set(thread.pair, []);
  }

  /** What a transaction that begins now sees. */
  *read(thread: ComputeThread): Routine<Visibility> {
    if (this.layout === "oracle") {
      const [server] = this.#directory.timestampServers;
      const verb = new ReadVerb(thread, server, TIMESTAMPS, ORACLE_READ_AT, 1);
      yield* thread.perform("timestamps", [verb]);
      return new ScalarVisibility(verb.words[0] >>> 0);
    }
    let vector = this.#isFetching ? this.#fetched : undefined;
    vector ??= yield* this.fetch(thread, "timestamps");
    if (this.#own === "overlay") return new VectorVisibility(vector, this.#ownOf(thread));
    const last = this.#lastOf.get(thread.pair) ?? 0;
    while (vector[thread.slot] >>> 0 < last) vector = yield* this.fetch(thread, "timestamps");
    return new VectorVisibility(vector);
  }

  /** A commit timestamp, without communication unless there is an oracle. */
  *next(thread: ComputeThread): Routine<number> {
    if (this.layout === "oracle") {
      const [server] = this.#directory.timestampServers;
      const verb = new AddVerb(thread, server, TIMESTAMPS, ORACLE_COMMIT_AT);
      yield* thread.perform("timestamps", [verb]);
      return (verb.found + 1) >>> 0;
    }
    const timestamp = this.#windowOf(thread.slot).take();
    if (timestamp > MAX_TIMESTAMP) throw usedUp(thread.slot);
    return timestamp;
  }

  /** Whether the thread can commit nothing more. */
  isUsedUp({ slot }: ComputeThread): boolean {
    return this.layout !== "oracle" && this.#windowOf(slot).taken >= MAX_TIMESTAMP;
  }

  /** Everything of the timestamp is installed: others may see it. */
  *publish(thread: ComputeThread, timestamp: number): Routine<void> {
    if (this.layout === "oracle") {
      yield* this.#tellOracle(thread, timestamp);
      return;
    }
    const window = this.#windowOf(thread.slot);
    window.finish(timestamp);
    this.#lastOf.set(thread.pair, timestamp);
    const further = this.#furtherOf.get(thread.pair);
    if (timestamp > window.upTo) further?.push(timestamp);
    yield* this.#write(thread, window);
  }

  /** Nothing was installed under the timestamp. A thread of its own slot uses it again; in a shared one it is passed over. */
  *abandon(thread: ComputeThread, timestamp: number): Routine<void> {
    if (this.layout === "oracle") {
      yield* this.#tellOracle(thread, timestamp);
      return;
    }
    const window = this.#windowOf(thread.slot);
    if (window.giveBack(timestamp)) return;
    window.finish(timestamp);
    yield* this.#write(thread, window);
  }

  /** One round of the background reader. */
  *fetch(thread: ComputeThread, purpose: "timestamps"): Routine<Int32Array> {
    const { timestampServers, pairs, pairsPerSlot } = this.#directory;
    const slots = Math.ceil(pairs / pairsPerSlot);
    if (timestampServers.length === 1) {
      const [server, ...others] = vectorCopies(this.#directory);
      const vector = new ReadVerb(thread, server, TIMESTAMPS, VECTOR_AT, slots);
      const asked = others.map((each) => new ReadVerb(thread, each, TIMESTAMPS, VECTOR_AT, 1));
      yield* thread.perform(purpose, [vector, ...asked]);
      return this.#later(vector.words);
    }
    const parts = timestampServers.map((server, i) => {
      const { from, count } = partOf(slots, timestampServers.length, i);
      return new ReadVerb(thread, server, TIMESTAMPS, VECTOR_AT + from, count);
    });
    yield* thread.perform(purpose, parts);
    const vector = new Int32Array(slots);
    parts.forEach(({ words }, i) => {
      vector.set(words, partOf(slots, timestampServers.length, i).from);
    });
    return this.#later(vector);
  }

  /** Reads the vector over and over, until `isOver`. One thread of a compute server does nothing else. */
  *fetchAlways(thread: ComputeThread, isOver: () => boolean): Routine<void> {
    this.#isFetching = this.readsInBackground;
    try {
      while (!isOver()) yield* this.fetch(thread, "timestamps");
    } finally {
      // Nobody relies on a vector that is not renewed.
      this.#isFetching = false;
    }
  }

  /** Whether a thread of the compute server has to run `fetchAlways`. */
  get readsInBackground(): boolean {
    return this.layout === "background" || this.layout === "both";
  }

  /** Where a slot is: first where it is read. */
  serversOf(slot: VectorSlot): readonly NodeId[] {
    const { timestampServers, pairs, pairsPerSlot } = this.#directory;
    if (timestampServers.length === 1) return vectorCopies(this.#directory);
    const slots = Math.ceil(pairs / pairsPerSlot);
    const perServer = Math.ceil(slots / timestampServers.length);
    return [timestampServers[Math.floor(slot / perServer)]];
  }

  /** Where it is read comes last, so that everybody who sees it can rely on the other copies. */
  *writeSlot(thread: ComputeThread, upTo: number): Routine<void> {
    const words = new Int32Array([upTo]);
    const [first, ...others] = this.serversOf(thread.slot).map(
      (server) => new WriteVerb(thread, server, TIMESTAMPS, VECTOR_AT + thread.slot, words),
    );
    if (others.length > 0) yield* thread.perform("publishes", others);
    yield* thread.perform("publishes", [first]);
  }

  /** Of two reads that overlap, the one that began first may end last: the vector never goes back. */
  #later(vector: Int32Array): Int32Array {
    const before = this.#fetched;
    if (before !== undefined && this.#directory.timestampServers.length === 1) {
      for (let i = 0; i < vector.length; i++) {
        if (vector[i] >>> 0 < before[i] >>> 0) return before;
      }
    }
    this.#fetched = vector;
    return vector;
  }

  #ownOf(thread: ComputeThread): OwnCommits {
    const { upTo } = this.#windowOf(thread.slot);
    const further = (this.#furtherOf.get(thread.pair) ?? []).filter((each) => each > upTo);
    this.#furtherOf.set(thread.pair, further);
    return { slot: thread.slot, upTo, further: [...further] };
  }

  /** One write at a time for each slot; it says how far all is complete by now. */
  *#write(thread: ComputeThread, window: PublishWindow): Routine<void> {
    if (!window.begin()) return;
    try {
      while (window.isAhead) {
        const { upTo } = window;
        yield* this.writeSlot(thread, upTo);
        window.published(upTo);
      }
    } finally {
      window.end();
    }
  }

  *#tellOracle(thread: ComputeThread, timestamp: number): Routine<void> {
    thread.counts.publishes++;
    const done = new OracleDone(this.#directory.timestampServers[0], timestamp);
    yield [done];
    if (done.error !== undefined) throw done.error;
  }

  #windowOf(slot: VectorSlot): PublishWindow {
    let window = this.#windows.get(slot);
    if (window === undefined) {
      window = new PublishWindow();
      this.#windows.set(slot, window);
    }
    return window;
  }
}

function partOf(slots: number, parts: number, part: number): { from: number; count: number } {
  const perPart = Math.ceil(slots / parts);
  const from = Math.min(part * perPart, slots);
  return { from, count: Math.min(perPart, slots - from) };
}

function usedUp(slot: VectorSlot): SituError {
  return new SituError(
    "SITU_FULL",
    `slot ${slot} of the timestamp vector has used all of its ${MAX_TIMESTAMP} timestamps; claim another thread`,
  );
}
