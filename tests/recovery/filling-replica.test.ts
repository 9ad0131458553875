/**
 * What a node that fills a partition takes over of transactions in doubt, and what is handed to it: also of those that
 * it has ended itself, in other partitions, and of those that its primary knows to be committed and has not applied. What
 * it learns of those that are over.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { table, u32 } from "../../src/index.ts";
import { Told } from "../../src/protocols/backup-records.ts";
import type { CurrentView } from "../../src/protocols/cluster-view.ts";
import { NO_TRANSACTION } from "../../src/protocols/copying/fetch-ends.ts";
import { CopySource } from "../../src/protocols/copying/source.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { Name } from "../../src/protocols/names.ts";
import { AT_BACKUP, Head, recordOf } from "../../src/protocols/records.ts";
import type { PartitionWrites } from "../../src/protocols/recovery/replica.ts";
import { StoreReplica } from "../../src/protocols/recovery/store-replica.ts";
import { SAW_COMMIT, SAW_LOG, SAW_NOTHING } from "../../src/protocols/recovery/votes.ts";
import { encodeWrites, WriteList } from "../../src/protocols/writes.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import type { CopiedTable } from "../../src/tables/served/contract.ts";
import { BEGINNING } from "../../src/tables/served/partition-rows.ts";
import type { Table } from "../../src/tables/table.ts";

const Counters = table("counters", { id: u32(), count: u32() }, { key: "id" }) as unknown as Table;
/** In which all transactions here have begun, and the one after it. */
const BEFORE = 1;
const NOW = 2;
const PARTITIONS = [0, 1];
/** Before the row of a put (src/tables/served/requests.ts). */
const PUT_WORDS = 6;

let node: SimulatedNode;
let replica: StoreReplica;
let remote: RemoteTable;

beforeEach(() => {
  const fabric = new SimulatedFabric({ seed: 1 });
  const nodes = [{ id: 0, host: "simulated", port: 0 }];
  const partitions = PARTITIONS.length;
  const configuration = configurationOf({ nodes, backups: 0, partitions }, "the test");
  node = new SimulatedNode(fabric, 0, configuration);
  node.tables.open(JSON.stringify(schemaOf(Counters)));
  const { participant, backup, view } = node.service;
  replica = new StoreReplica(participant, backup!);
  remote = new RemoteTable(Counters, view.current.placement);
});
afterEach(() => node.close());

function nameOf(sequence: number): Name {
  return Object.assign(new Name(), { coordinator: 4, sequence, low: 0 });
}

function headOf(name: Name): Head {
  return new Head(name, BEFORE, undefined, PARTITIONS);
}

/** A row of a partition, always the same one. */
function rowIn(partition: number): number {
  for (let id = 0; ; id++) if (remote.partitionOf(remote.keyOf({ id })) === partition) return id;
}

function writesTo(partition: number, count: number): PartitionWrites {
  const list = new WriteList(new Writer());
  const words = remote.codec.encode({ id: rowIn(partition), count });
  list.put(remote.id, partition, remote.codec.scratch.i32, 0, words);
  return { words: list.words(), count: 1 };
}

/** A record that the node has logged as a backup. */
function log(name: Name, { words, count }: PartitionWrites): void {
  const out = new Writer();
  headOf(name).encode(out);
  encodeWrites(out, words, count);
  const record = recordOf(AT_BACKUP, { views: out.views }, 0, out.at);
  node.service.backup!.keep(name, record, [7]);
}

function countIn(partition: number): unknown {
  const source = sourceOf(() => true);
  const { writes } = source.read(served(), BEGINNING, new Set([partition]))!;
  return remote.codec.decode(writes.views, PUT_WORDS, writes.views.i32[PUT_WORDS - 2]).count;
}

function served(): CopiedTable {
  return node.tables.byId(remote.id) as CopiedTable;
}

function sourceOf(hasReplicated: () => boolean, view: CurrentView = node.service.view): CopySource {
  const { backup, driver } = node.service;
  const { executor, tables } = node;
  const { clock } = driver.endpoint;
  return new CopySource({ view, executor, tables, backup: backup!, clock, replica, hasReplicated });
}

test("a transaction that has ended here in another partition comes to one that is filled, once", () => {
  const name = nameOf(1);
  log(name, writesTo(1, 10));
  expect(replica.commit(name)).toBe(true);
  expect(countIn(1)).toBe(10);

  // Of a partition that the node has had all the time, it is over.
  replica.takeOver(headOf(name), 0, SAW_LOG, writesTo(0, 10));
  expect(replica.writes(name, 0)).toBeUndefined();

  replica.fills(0, NOW);
  replica.takeOver(headOf(name), 0, SAW_LOG, writesTo(0, 10));
  expect(replica.writes(name, 0)).toBeDefined();
  expect(replica.seen(name, 0)).toBe(SAW_COMMIT);
  expect([...replica.inDoubt()].map(({ name: { sequence } }) => sequence)).toEqual([1]);
  expect(replica.commit(name)).toBe(true);
  expect(countIn(0)).toBe(10);

  // Somebody who has not heard that hands it on once more: later ones may have written the row since.
  replica.takeOver(headOf(name), 0, SAW_COMMIT, writesTo(0, 10));
  expect(replica.writes(name, 0)).toBeUndefined();
});

test("one that begins anew to fill a partition says nothing of what had come before", () => {
  const name = nameOf(1);
  replica.fills(0, NOW);
  replica.takeOver(headOf(name), 0, SAW_LOG, writesTo(0, 10));
  expect(replica.seen(name, 0)).toBe(SAW_LOG);
  node.service.backup!.forget(NOW + 1, (partition) => partition === 0);
  replica.fills(0, NOW + 1);
  expect(replica.seen(name, 0)).toBe(SAW_NOTHING);
  replica.takeOver(headOf(name), 0, SAW_LOG, writesTo(0, 10));
  expect(replica.commit(name)).toBe(true);
  expect(countIn(0)).toBe(10);
});

test("what began when the node filled the partition already is over where it has ended", () => {
  const name = nameOf(1);
  replica.fills(0, BEFORE);
  log(name, writesTo(0, 10));
  expect(replica.commit(name)).toBe(true);
  replica.takeOver(headOf(name), 0, SAW_COMMIT, writesTo(0, 10));
  expect(replica.writes(name, 0)).toBeUndefined();
});

test("what is committed and waits for another one that writes the same row is handed on with it", () => {
  const [first, second] = [nameOf(1), nameOf(2)];
  log(first, writesTo(0, 1));
  log(second, writesTo(0, 2));
  node.service.backup!.commit(second, new Told());
  expect(replica.isBehind(0)).toBe(true);
  expect([...replica.inDoubt()].map(({ name: { sequence } }) => sequence)).toEqual([1, 2]);
  expect(replica.writes(second, 0)).toBeDefined();
  expect(replica.orderOf(first)).toBeLessThan(replica.orderOf(second));
});

test("rows are given out when all that is in doubt was handed on", () => {
  let hasReplicated = false;
  const source = sourceOf(() => hasReplicated);
  expect(source.read(served(), BEGINNING, new Set(PARTITIONS))).toBeUndefined();
  hasReplicated = true;
  expect(source.read(served(), BEGINNING, new Set(PARTITIONS))).toMatchObject({
    rows: 0,
    isDone: true,
  });
});

/** The same node, with one more partition of its cluster lost. */
function viewWithLost(partition: number): CurrentView {
  const { current } = node.service.view;
  const primaryOf = (each: number): number =>
    each === partition ? 9 : current.placement.primaryOf(each);
  const placement = Object.create(current.placement, { primaryOf: { value: primaryOf } });
  return { current: Object.create(current, { placement: { value: placement } }) };
}

/** What a primary tells of what is committed. */
function endsOf(...names: readonly Name[]) {
  return { names, heads: [] };
}

const ONLY_0: ReadonlySet<number> = new Set([0]);

describe("what is committed and over, of which no record comes", () => {
  test("is known to one who copies its rows", () => {
    const name = nameOf(1);
    replica.fills(0, NOW);
    expect(replica.seen(name, 0)).toBe(SAW_NOTHING);
    replica.hear(endsOf(name), ONLY_0);
    expect(replica.seen(name, 0)).toBe(SAW_COMMIT);
    replica.fillsNoMore(0);
    expect(replica.seen(name, 0)).toBe(SAW_COMMIT);
    // And it tells the next one.
    expect(replica.committedAfter(NO_TRANSACTION, 9)).toEqual([{ coordinator: 4, sequence: 1 }]);
  });

  test("leaves a record of another partition as it is", () => {
    const name = nameOf(1);
    log(name, writesTo(1, 10));
    replica.fills(0, NOW);
    replica.hear(endsOf(name), ONLY_0);
    expect(replica.seen(name, 0)).toBe(SAW_COMMIT);
    expect(replica.seen(name, 1)).toBe(SAW_LOG);
    expect(replica.writes(name, 1)).toBeDefined();
    expect(replica.committedAfter(NO_TRANSACTION, 9)).toEqual([{ coordinator: 4, sequence: 1 }]);
    expect(replica.commit(name)).toBe(true);
    expect(countIn(1)).toBe(10);
  });

  test("comes as a record all the same where another primary has one", () => {
    const name = nameOf(1);
    replica.fills(0, NOW);
    replica.fills(1, NOW);
    replica.hear(endsOf(name), ONLY_0);
    replica.takeOver(headOf(name), 1, SAW_LOG, writesTo(1, 10));
    expect(replica.commit(name)).toBe(true);
    expect(countIn(1)).toBe(10);
  });

  test("is told in pieces, in the order of names", () => {
    for (const sequence of [7, 3, 5]) replica.hear(endsOf(nameOf(sequence)), ONLY_0);
    replica.hear(endsOf(Object.assign(nameOf(2), { coordinator: 6 })), ONLY_0);
    const told: number[] = [];
    for (let after = NO_TRANSACTION; ; ) {
      const piece = replica.committedAfter(after, 2);
      told.push(...piece.map(({ sequence }) => sequence));
      if (piece.length < 2) break;
      after = piece[1];
    }
    expect(told).toEqual([3, 5, 7, 2]);
  });

  test("is not told before all that is in doubt was handed on", () => {
    const ends = (isHandedOn: boolean) =>
      sourceOf(() => isHandedOn).ends(ONLY_0, NO_TRANSACTION, 9, true);
    expect(ends(false)).toBeUndefined();
    expect(ends(true)).toEqual(endsOf());
  });

  test("is kept in the store where a partition that it writes is lost", () => {
    const [name, other] = [nameOf(1), nameOf(2)];
    log(name, writesTo(0, 10));
    expect(replica.commit(name)).toBe(true);
    const told = (lost: number | undefined) => {
      const view = lost === undefined ? node.service.view : viewWithLost(lost);
      return sourceOf(() => true, view).ends(ONLY_0, NO_TRANSACTION, 9, true)!;
    };
    expect(told(undefined).heads).toEqual([]);
    const { heads } = told(1);
    expect(heads.map((head) => [head.name.sequence, head.partitions])).toEqual([[1, PARTITIONS]]);

    replica.hear({ names: [other], heads: [headOf(other)] }, ONLY_0);
    expect(node.service.backup!.logged).toBe(0);
    node.crash();
    node.comeBack();
    const { participant, backup } = node.service;
    replica = new StoreReplica(participant, backup!);
    expect(replica.seen(other, 0)).toBe(SAW_COMMIT);
    expect([...replica.installed()].map((head) => head.name.sequence)).toEqual([1, 2]);
    expect([...replica.inDoubt()]).toEqual([]);
  });
});
