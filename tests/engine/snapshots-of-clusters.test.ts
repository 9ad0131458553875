/** What a snapshot of a cluster sees of transactions that were prepared across its cut (docs/decisions/0071). */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readObject } from "../../src/engine/objects.ts";
import { readAtSnapshot } from "../../src/engine/run.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import {
  addTo,
  balanceOf,
  createAccount,
  createAccounts,
  freeAccount,
  readAccount,
  transact,
} from "../helpers/engine-accounts.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

const LIFE_MS = 60_000;

let store: EngineStore;
let node: Executor;

beforeEach(() => {
  store = new EngineStore(SMALL);
  node = store.open();
  node.isPatient = false;
});
afterEach(() => store.dispose());

function prepare(body: (tx: Transaction) => void): Transaction {
  const tx = new Transaction(node);
  body(tx);
  expect(node.committer.prepare(tx)).toBe(true);
  return tx;
}

function commit(tx: Transaction, visibleFrom: number): void {
  tx.visibleFrom = visibleFrom;
  expect(node.committer.commitPrepared(tx)).toBe(true);
  tx.clear();
}

/** A cut at an epoch that is some epochs ahead. */
function cut(ahead = 5): Snapshot {
  const snapshot = Snapshot.ahead(node, node.epochs.current() + ahead, LIFE_MS)!;
  node.epochs.raiseTo(snapshot.epoch + 1);
  return snapshot;
}

function seen(snapshot: Snapshot, at: Pointer): number {
  return readAtSnapshot(
    node,
    new Transaction(node),
    snapshot,
    (tx) => readAccount(tx, at),
    undefined,
  );
}

describe("a transaction that is installed after the cut", () => {
  test("is seen if it is visible from an epoch up to the cut", () => {
    const [a, b] = createAccounts(node, 2, 100);
    const tx = prepare((each) => {
      addTo(each, a, -30);
      addTo(each, b, 30);
    });
    const snapshot = cut();
    commit(tx, tx.bound);
    expect([seen(snapshot, a), seen(snapshot, b)]).toEqual([70, 130]);
    // Later ones change nothing of it.
    transact(node, (each) => addTo(each, a, 1));
    commit(
      prepare((each) => addTo(each, b, 1)),
      node.epochs.current(),
    );
    expect([seen(snapshot, a), seen(snapshot, b)]).toEqual([70, 130]);
    expect(balanceOf(readObject(node, b))).toBe(131);
  });

  test("is not seen if it is visible from a later one: another node was past the cut", () => {
    const [a] = createAccounts(node, 1, 100);
    const tx = prepare((each) => addTo(each, a, 1));
    const snapshot = cut();
    commit(tx, snapshot.epoch + 1);
    expect(seen(snapshot, a)).toBe(100);
  });

  test("is seen by one of two snapshots, if its epoch lies between them", () => {
    const [a] = createAccounts(node, 1, 100);
    const first = cut();
    const tx = prepare((each) => addTo(each, a, 1));
    const second = cut();
    expect(tx.bound).toBeGreaterThan(first.epoch);
    commit(tx, tx.bound);
    expect([seen(first, a), seen(second, a)]).toEqual([100, 101]);
  });

  test("is not seen by a snapshot of the node alone, before it is installed and after", () => {
    const [a] = createAccounts(node, 1, 100);
    const other = store.open();
    const tx = prepare((each) => addTo(each, a, 1));
    const snapshot = cut();
    const local = Snapshot.take(other, LIFE_MS, 1_000);
    commit(tx, tx.bound);
    const atLocal = readAtSnapshot(
      other,
      new Transaction(other),
      local,
      (each) => readAccount(each, a),
      0,
    );
    expect([seen(snapshot, a), atLocal]).toEqual([101, 100]);
  });

  test("with new objects and freed ones", () => {
    const [a, b] = createAccounts(node, 2, 100);
    let added: Pointer | undefined;
    const tx = prepare((each) => {
      added = createAccount(each, 7);
      freeAccount(each, b);
      addTo(each, a, 1);
    });
    const early = Snapshot.ahead(node, tx.bound, LIFE_MS)!;
    const snapshot = cut();
    commit(tx, snapshot.epoch);
    expect([seen(early, a), seen(early, b)]).toEqual([100, 100]);
    expect([seen(snapshot, a), seen(snapshot, added!)]).toEqual([101, 7]);
    // Its memory is another object's by now.
    const [reused] = createAccounts(node, 1, 9);
    expect(seen(snapshot, added!)).toBe(7);
    expect(balanceOf(readObject(node, reused))).toBe(9);
  });

  test("keeps nothing for snapshots that see it in place, or not at all", () => {
    const [a] = createAccounts(node, 1, 100);
    const before = node.versions.keeper.usedBytes();
    commit(
      prepare((each) => addTo(each, a, 1)),
      node.epochs.current(),
    );
    expect(node.versions.keeper.usedBytes()).toBe(before);
  });
});

describe("a prepared transaction that the snapshot does not see", () => {
  test("is read through: nobody waits for its end", () => {
    const [a] = createAccounts(node, 1, 100);
    const snapshot = cut();
    const tx = prepare((each) => addTo(each, a, 1));
    expect(tx.bound).toBeGreaterThan(snapshot.epoch);
    expect(seen(snapshot, a)).toBe(100);
    commit(tx, tx.bound);
    expect(seen(snapshot, a)).toBe(100);
  });
});

describe("the bound of a prepared transaction", () => {
  test("is not before the epoch of what it overwrites", () => {
    const [a] = createAccounts(node, 1, 100);
    for (let round = 0; round < 5; round++) {
      node.epochs.advance();
      const tx = prepare((each) => addTo(each, a, 1));
      expect(tx.bound).toBe(node.epochs.current());
      commit(tx, tx.bound);
    }
  });

  test("stays when nothing more is locked, and grows when something is", () => {
    const [a, b] = createAccounts(node, 2, 100);
    const tx = prepare((each) => addTo(each, a, 1));
    const { bound } = tx;
    node.epochs.advance();
    addTo(tx, a, 1);
    expect(node.committer.prepare(tx)).toBe(true);
    expect(tx.bound).toBe(bound);
    addTo(tx, b, 1);
    expect(node.committer.prepare(tx)).toBe(true);
    expect(tx.bound).toBe(node.epochs.current());
    commit(tx, tx.bound);
  });
});

test("an epoch that has ended cannot be registered any more", () => {
  expect(Snapshot.ahead(node, node.epochs.current() - 1, LIFE_MS)).toBeUndefined();
  expect(node.versions.registry.summary().open).toBe(0);
});
