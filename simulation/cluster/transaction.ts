/**
 * Transactions as workloads see them, the same for both ways that a body can run: at a client, which
 * reads and then submits, and at a node, as a procedure that locks what it reads (rpc) and coordinates
 * itself.
 */

import type { ClusterClient, Wanted } from "../../src/cluster/client.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { type Reader, Writer } from "../../src/fabric/wire.ts";
import type { Coordinator, Held, Outcome } from "../../src/protocols/coordinator.ts";
import { ABORTED, COMMITTED } from "../../src/protocols/coordinator.ts";
import { type Lookup, lookupAll } from "../../src/protocols/execute/lookup.ts";
import type { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { OK, type Routine } from "../../src/protocols/message.ts";
import type { KeyToRead } from "../../src/protocols/phases/read.ts";
import { ReadLock } from "../../src/protocols/phases/read-lock.ts";
import { Part, partAt, WriteList } from "../../src/protocols/writes.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Found } from "../../src/stores/remote/remote.ts";
import type { Values } from "../../src/tables/indexes/structure.ts";

export interface RowKey {
  readonly table: RemoteTable;
  readonly key: unknown;
}

/** Rows in the order of their keys; "locked" if somebody else was just changing one. */
export type ReadRows = readonly (Values | undefined)[] | "locked";

export interface SimulatedTransaction {
  read(keys: readonly RowKey[]): Routine<ReadRows>;
  put(table: RemoteTable, row: Values): void;
  remove(table: RemoteTable, key: unknown): void;
  /** Once, and last. */
  commit(): Routine<Outcome>;
  /** Instead of a commit. */
  giveUp(): void;
}

interface WantedRows extends Wanted {
  readonly keys: KeyToRead[];
  /** Which of all keys these are. */
  readonly places: number[];
}

/** Keys by the node that is their primary, with where their rows go. */
function wantedOf(keys: readonly RowKey[], rows: (Values | undefined)[]): Map<NodeId, WantedRows> {
  const wanted = new Map<NodeId, WantedRows>();
  keys.forEach(({ table, key }, place) => {
    const partition = table.partitionOf(key);
    const node = table.primaryOf(partition);
    let found = wanted.get(node);
    if (found === undefined) {
      const places: number[] = [];
      const take = (index: number, reply: Reader, words: number): void => {
        const { codec } = keys[places[index]].table;
        rows[places[index]] = words === 0 ? undefined : codec.decode(reply.views, reply.at, words);
      };
      found = { keys: [], places, take };
      wanted.set(node, found);
    }
    found.keys.push({ table: table.id, partition, key: table.sent(key) });
    found.places.push(place);
  });
  return wanted;
}

/** Collects writes by their primaries. */
class Writes {
  readonly #lists = new Map<NodeId, WriteList>();

  put(table: RemoteTable, row: Values): void {
    const partition = table.partitionOf(table.keyOf(row));
    const words = table.codec.encode(row);
    this.#at(table.primaryOf(partition)).put(
      table.id,
      partition,
      table.codec.scratch.i32,
      0,
      words,
    );
  }

  remove(table: RemoteTable, key: unknown): void {
    const partition = table.partitionOf(key);
    this.#at(table.primaryOf(partition)).remove(table.id, partition, table.sent(key));
  }

  get first(): NodeId | undefined {
    const [first] = this.#lists.keys();
    return first;
  }

  /** Joins them with what was read at the same nodes. */
  addTo(read: ReadonlyMap<NodeId, Part>): Map<NodeId, Part> {
    const parts = new Map(read);
    for (const [node, list] of this.#lists) {
      const part = new Part(list.words(), list.count);
      const dependencies = parts.get(node);
      if (dependencies !== undefined) {
        part.dependencies = dependencies.dependencies;
        part.dependencyCount = dependencies.dependencyCount;
      }
      parts.set(node, part);
    }
    return parts;
  }

  #at(node: NodeId): WriteList {
    let list = this.#lists.get(node);
    if (list === undefined) {
      list = new WriteList(new Writer());
      this.#lists.set(node, list);
    }
    return list;
  }
}

/** The body runs at a client. */
export class ClientTransaction implements SimulatedTransaction {
  readonly #session: ClusterClient;
  readonly #random: Random;
  readonly #parts = new Map<NodeId, Part>();
  readonly #writes = new Writes();
  /** How many moments what was read is from. */
  #moments = 0;

  constructor(session: ClusterClient, random: Random) {
    this.#session = session;
    this.#random = random;
  }

  *read(keys: readonly RowKey[]): Routine<ReadRows> {
    const rows: (Values | undefined)[] = keys.map(() => undefined);
    const rest = yield* this.#lookUp(keys, rows);
    if (rest === "locked") return "locked";
    const asked = rest.map((index) => keys[index]);
    const answers: (Values | undefined)[] = asked.map(() => undefined);
    const wanted = wantedOf(asked, answers);
    this.#moments += wanted.size;
    if (!(yield* this.#session.read(wanted, this.#parts))) return "locked";
    rest.forEach((index, i) => {
      rows[index] = answers[i];
    });
    return rows;
  }

  /** By verb, where the table was opened for that. Returns which keys must be asked for. */
  *#lookUp(
    keys: readonly RowKey[],
    rows: (Values | undefined)[],
  ): Routine<readonly number[] | "locked"> {
    const rest: number[] = [];
    const lookups: (Lookup<Found> & { readonly index: number })[] = [];
    for (const [index, { table, key }] of keys.entries()) {
      const node = table.primaryOf(table.partitionOf(key));
      const store = table.storeAt(node);
      if (store === undefined) rest.push(index);
      else lookups.push({ node, reading: store.lookup(key), index });
    }
    if (lookups.length === 0) return rest;
    const results = yield* lookupAll(lookups);
    for (const [i, found] of results.entries()) {
      const { index, node } = lookups[i];
      if (found.outcome === "locked") return "locked";
      if (found.outcome === "ask") {
        rest.push(index);
        continue;
      }
      this.#moments += found.isProved ? 1 : 2;
      const part = partAt(this.#parts, node);
      for (const { regionId, word, versionHigh, versionLow } of found.dependencies) {
        part.depend(regionId, word, versionHigh, versionLow);
      }
      if (found.outcome === "absent") continue;
      rows[index] = keys[index].table.codec.decode(found.views, found.at, found.words);
    }
    return rest;
  }

  put(table: RemoteTable, row: Values): void {
    this.#writes.put(table, row);
  }

  remove(table: RemoteTable, key: unknown): void {
    this.#writes.remove(table, key);
  }

  *commit(): Routine<Outcome> {
    const { first } = this.#writes;
    if (first === undefined) {
      // What came with one message, or was proved by one verb, is from one moment.
      const isValid = this.#moments <= 1 || (yield* this.#session.validate(this.#parts));
      return isValid ? COMMITTED : ABORTED;
    }
    // Now and then to one who has none of it: who then has all of it gets it from there.
    const { nodes } = this.#session;
    const isAstray = this.#random.below(10) === 0;
    const coordinator = isAstray ? nodes[this.#random.below(nodes.length)] : first;
    return yield* this.#session.submit(this.#writes.addTo(this.#parts), coordinator);
  }

  giveUp(): void {}
}

/** The body runs at a node, which coordinates. */
export class NodeTransaction implements SimulatedTransaction {
  readonly #coordinator: Coordinator;
  /** Writes that travel with LOCK, and with COMMIT. */
  readonly #writes = new Writes();
  readonly #overwrites = new Writes();
  readonly #held: Held;
  /** Rows that are locked and can be overwritten, as `table key`. */
  readonly #locked = new Set<string>();

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
    this.#held = {
      name: coordinator.sequences.begin(),
      rounds: new Map(),
      reads: new Set(),
      epoch: 0,
      writes: new Map(),
    };
  }

  *read(keys: readonly RowKey[]): Routine<ReadRows> {
    const rows: (Values | undefined)[] = keys.map(() => undefined);
    const held = this.#held;
    const messages: { readonly message: ReadLock; readonly places: readonly number[] }[] = [];
    for (const [node, { keys: at, take, places }] of wantedOf(keys, rows)) {
      const round = (held.rounds.get(node) ?? 0) + 1;
      held.rounds.set(node, round);
      messages.push({ message: new ReadLock(node, held.name, round, at, take), places });
    }
    yield messages.map(({ message }) => message);
    for (const { message } of messages) if (message.error !== undefined) throw message.error;
    if (!messages.every(({ message }) => message.outcome === OK)) return "locked";
    for (const { message, places } of messages) {
      if (message.hasReads) held.reads.add(message.to);
      held.epoch = Math.max(held.epoch, message.epoch);
      message.locked.forEach((isLocked, i) => {
        if (isLocked) this.#locked.add(nameOf(keys[places[i]]));
      });
    }
    return rows;
  }

  put(table: RemoteTable, row: Values): void {
    const isLocked = this.#locked.has(nameOf({ table, key: table.keyOf(row) }));
    (isLocked ? this.#overwrites : this.#writes).put(table, row);
  }

  remove(table: RemoteTable, key: unknown): void {
    this.#writes.remove(table, key);
  }

  *commit(): Routine<Outcome> {
    const writes = this.#overwrites.addTo(new Map());
    const held = { ...this.#held, writes };
    return yield* this.#coordinator.commit(this.#writes.addTo(new Map()), held);
  }

  giveUp(): void {
    this.#coordinator.release(this.#held);
  }
}

function nameOf({ table, key }: RowKey): string {
  return `${table.id} ${String(key)}`;
}
