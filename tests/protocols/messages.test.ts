/**
 * What each message of a protocol does when it comes twice, late, or out of order: written out one by
 * one, as a coordinator would send them. docs/FAULTS.md: "messages dropped, duplicated, reordered, delayed
 * past the time-out: idempotent".
 */

import { describe, expect, test } from "vitest";
import { raiseEpoch } from "../../src/engine/epoch.ts";
import { ABORTED, COMMITTED, type Outcome } from "../../src/protocols/coordinator.ts";
import type { Exchange, Message, Routine } from "../../src/protocols/message.ts";
import { LOCKED, OK, OVER } from "../../src/protocols/message.ts";
import { firstSequenceOf, Name } from "../../src/protocols/names.ts";
import { Abort } from "../../src/protocols/phases/abort.ts";
import { Commit } from "../../src/protocols/phases/commit.ts";
import { Lock } from "../../src/protocols/phases/lock.ts";
import { Log, LogWrites } from "../../src/protocols/phases/log.ts";
import { ReadLock } from "../../src/protocols/phases/read-lock.ts";
import { Truncate } from "../../src/protocols/phases/truncate.ts";
import { Validate } from "../../src/protocols/phases/validate.ts";
import { Head } from "../../src/protocols/records.ts";
import type { Part } from "../../src/protocols/writes.ts";
import { LOST_EPOCHS } from "../../src/runtime/limits.ts";
import { balancesOf, FIRST_BALANCE, Scene } from "../simulation/scene.ts";

/** The node that sends, and the one that serves. */
const FROM = 0;
const AT = 1;

function nameOf(sequence: number, low = 1): Name {
  return Object.assign(new Name(), { coordinator: FROM * 2, sequence, low });
}

function headOf(name: Name): Head {
  return new Head(name, 5, undefined, []);
}

function logOf(part: Part): LogWrites {
  const list = new LogWrites();
  list.add(part.writes, 0);
  return list;
}

/** Sequences of their own, which no coordinator of the scene uses. */
let next = firstSequenceOf(1) + 1_000_000;

class Script {
  readonly scene = new Scene();
  readonly account = this.scene.accountAt(AT);
  readonly name = nameOf(next++);

  constructor() {
    this.scene.open([this.account]);
  }

  send<T extends Message>(message: T): T {
    this.scene.runAt(FROM, once(message));
    return message;
  }

  lock(balance: bigint, name = this.name, round = 1): Lock {
    return this.send(new Lock(AT, headOf(name), this.scene.put(this.account, balance), round));
  }

  get prepared(): number {
    return this.scene.nodes[AT].service.participant.prepared;
  }

  get balance(): bigint | undefined {
    return this.scene.balance(this.account);
  }
}

function* once(message: Exchange): Routine<void> {
  yield [message];
}

describe("LOCK", () => {
  test("twice: locked once, the same answer", () => {
    const script = new Script();
    const [first, second] = [script.lock(1n), script.lock(1n)];
    expect([first.outcome, second.outcome]).toEqual([OK, OK]);
    expect(second.epoch).toBe(first.epoch);
    expect(script.prepared).toBe(1);
    script.send(new Abort(AT, script.name));
    expect(script.prepared).toBe(0);
    script.scene.rest();
    expect(script.balance).toBe(FIRST_BALANCE);
  });

  test("after ABORT: over, nothing is locked", () => {
    const script = new Script();
    script.send(new Abort(AT, script.name));
    expect(script.lock(1n).outcome).toBe(OVER);
    expect(script.prepared).toBe(0);
    script.scene.rest();
  });

  test("after COMMIT: over, nothing is done again", () => {
    const script = new Script();
    script.lock(1n);
    script.send(new Commit(AT, script.name, 0));
    const other = nameOf(next++);
    script.lock(2n, other);
    script.send(new Commit(AT, other, 0));
    expect(script.lock(1n).outcome).toBe(OVER);
    expect(script.balance).toBe(2n);
  });

  test("of a sequence below the coordinator's low, of which nothing is remembered: over", () => {
    const script = new Script();
    script.lock(1n);
    script.send(new Abort(AT, script.name));
    const later = nameOf(next++, next);
    expect(script.send(new Abort(AT, later)).error).toBeUndefined();
    expect(script.lock(1n).outcome).toBe(OVER);
    expect(script.prepared).toBe(0);
  });

  test("of what another one has locked: refused, and over", () => {
    const script = new Script();
    const other = nameOf(next++);
    expect(script.lock(1n).outcome).toBe(OK);
    expect(script.lock(2n, other).outcome).toBe(LOCKED);
    expect(script.prepared).toBe(1);
    script.send(new Abort(AT, script.name));
    // The answer may have been lost: who asks again does not get the lock after all.
    expect(script.lock(2n, other).outcome).toBe(OVER);
    expect(script.prepared).toBe(0);
  });
});

describe("READ_LOCK", () => {
  const readLock = (script: Script, round: number, ids: readonly number[], name = script.name) => {
    const { accounts } = script.scene;
    const rows: (bigint | undefined)[] = [];
    const keys = ids.map((key) => ({
      table: accounts.id,
      partition: accounts.partitionOf(key),
      key,
    }));
    const message = new ReadLock(AT, name, round, keys, (index, reply, words) => {
      const row = words === 0 ? undefined : accounts.codec.decode(reply.views, reply.at, words);
      rows[index] = row?.balance as bigint | undefined;
    });
    script.send(message);
    return { message, rows };
  };

  test("twice: locked once, the same rows; LOCK brings the new one, once", () => {
    const script = new Script();
    for (const _ of [1, 2]) {
      const { message, rows } = readLock(script, 1, [script.account]);
      expect(message).toMatchObject({ outcome: OK, locked: [true] });
      expect(rows).toEqual([FIRST_BALANCE]);
      expect(script.prepared).toBe(1);
    }
    for (const _ of [1, 2]) expect(script.lock(7n, script.name, 2).outcome).toBe(OK);
    for (const _ of [1, 2]) {
      const commit = script.send(new Commit(AT, script.name, 0));
      expect(commit.error).toBeUndefined();
      expect(script.balance).toBe(7n);
    }
    expect(script.prepared).toBe(0);
    expect(readLock(script, 1, [script.account]).message.outcome).toBe(OVER);
  });

  test("a later round of what this life of the node has not locked: over", () => {
    const script = new Script();
    expect(readLock(script, 2, [script.account]).message.outcome).toBe(OVER);
    expect(script.lock(7n, script.name, 3).outcome).toBe(OVER);
    expect(script.prepared).toBe(0);
  });

  test("a second round adds to the first; ABORT lets go of both", () => {
    const script = new Script();
    const absent = script.scene.accountAt(AT, 3);
    expect(readLock(script, 1, [script.account]).message.locked).toEqual([true]);
    const { message, rows } = readLock(script, 2, [script.account, absent]);
    expect(message.outcome).toBe(OK);
    expect(message.hasReads).toBe(true);
    expect(rows).toEqual([FIRST_BALANCE, undefined]);
    expect(message.locked[1]).toBe(false);
    expect(script.send(new Validate(AT, script.name)).isValid).toBe(true);
    script.send(new Abort(AT, script.name));
    expect(script.prepared).toBe(0);
    script.scene.rest();
    expect(script.balance).toBe(FIRST_BALANCE);
  });

  test("somebody inserts the row that was absent: not valid", () => {
    const script = new Script();
    const absent = script.scene.accountAt(AT, 3);
    expect(readLock(script, 1, [absent]).message).toMatchObject({ outcome: OK, locked: [false] });
    const other = nameOf(next++);
    script.send(new Lock(AT, headOf(other), script.scene.put(absent, 5n), 1));
    script.send(new Commit(AT, other, 0));
    expect(script.send(new Validate(AT, script.name)).isValid).toBe(false);
    script.send(new Abort(AT, script.name));
    expect(script.prepared).toBe(0);
  });

  test("of what another one has locked: refused; after ABORT: over", () => {
    const script = new Script();
    const other = nameOf(next++);
    expect(readLock(script, 1, [script.account]).message.outcome).toBe(OK);
    expect(readLock(script, 1, [script.account], other).message.outcome).toBe(LOCKED);
    script.send(new Abort(AT, script.name));
    expect(readLock(script, 1, [script.account]).message.outcome).toBe(OVER);
    expect(script.prepared).toBe(0);
    script.scene.rest();
  });
});

describe("COMMIT and ABORT", () => {
  test("COMMIT twice: installed once, acknowledged twice", () => {
    const script = new Script();
    script.lock(1n);
    expect(script.send(new Commit(AT, script.name, 0)).error).toBeUndefined();
    const other = nameOf(next++);
    script.lock(2n, other);
    script.send(new Commit(AT, other, 0));
    expect(script.send(new Commit(AT, script.name, 0)).error).toBeUndefined();
    expect(script.balance).toBe(2n);
    expect(script.prepared).toBe(0);
  });

  test("COMMIT of what is not known: an earlier life has installed it, and a late LOCK is over", () => {
    const script = new Script();
    expect(script.send(new Commit(AT, script.name, 0)).error).toBeUndefined();
    expect(script.balance).toBe(FIRST_BALANCE);
    expect(script.lock(1n).outcome).toBe(OVER);
  });

  test("a late ABORT after COMMIT changes nothing", () => {
    const script = new Script();
    script.lock(1n);
    script.send(new Commit(AT, script.name, 0));
    script.send(new Abort(AT, script.name));
    expect(script.balance).toBe(1n);
    expect(script.prepared).toBe(0);
  });

  test("the epoch of a commit is at least that of all who took part", () => {
    const script = new Script();
    const { epochs } = script.scene.nodes[AT].executor;
    script.lock(1n);
    script.send(new Commit(AT, script.name, epochs.current() + 1_000));
    const lock = script.lock(2n, nameOf(next++));
    expect(lock.epoch).toBeGreaterThan(1_000);
    expect(epochs.current()).toBe(lock.epoch);
  });
});

/** A node that has lost its power comes back 2^28 epochs later. */
test("the epochs of participants are far apart: they come together, and nothing stays locked", () => {
  const scene = new Scene();
  const [here, there] = [scene.accountAt(0), scene.accountAt(1)];
  scene.open([here, there]);
  const { executor } = scene.nodes[1];
  raiseEpoch(executor.memory.control, executor.epochs.current() + LOST_EPOCHS);
  const { coordinator } = scene.nodes[0].service;
  let attempts = 0;
  let outcome: Outcome;
  do {
    // Blind writes: nothing is validated that could be refused.
    const parts = new Map([
      [0, scene.put(here, 1n)],
      [1, scene.put(there, 2n)],
    ]);
    outcome = scene.runAt(0, coordinator.commit(parts));
  } while (outcome === ABORTED && ++attempts < 10);
  expect(outcome).toBe(COMMITTED);
  expect(attempts).toBeGreaterThan(0);
  scene.rest();
  expect([scene.balance(here), scene.balance(there)]).toEqual([1n, 2n]);
});

describe("VALIDATE", () => {
  test("of a transaction that is over, or was never locked: not valid", () => {
    const script = new Script();
    expect(script.send(new Validate(AT, script.name)).isValid).toBe(false);
    script.lock(1n);
    expect(script.send(new Validate(AT, script.name)).isValid).toBe(true);
    script.send(new Abort(AT, script.name));
    expect(script.send(new Validate(AT, script.name)).isValid).toBe(false);
  });
});

describe("LOG and TRUNCATE", () => {
  test("LOG twice, and again after truncation: applied once", () => {
    const script = new Script();
    const { scene, account } = script;
    const backup = scene.nodes[AT].service.backup!;
    const mine = scene.accountAt(FROM);
    const log = (sequence: number, balance: bigint): Log =>
      script.send(new Log(AT, headOf(nameOf(sequence)), logOf(scene.put(mine, balance))));
    const [first, second] = [next++, next++];
    log(first, 1n);
    log(first, 1n);
    expect(backup.logged).toBe(1);
    log(second, 2n);
    script.send(new Truncate(AT, FROM * 2, 1, [first, second]));
    expect(backup.logged).toBe(0);
    expect(scene.balances(AT).get(`n${mine}`)).toBe(2n);
    expect(log(first, 1n).error?.code).toBe("SITU_PROTOCOL");
    script.send(new Truncate(AT, FROM * 2, next, [first]));
    expect(log(first, 1n).error?.code).toBe("SITU_PROTOCOL");
    expect(backup.logged).toBe(0);
    expect(scene.balances(AT).get(`n${mine}`)).toBe(2n);
    expect(scene.balance(account)).toBe(FIRST_BALANCE);
  });

  test("records are applied in the order of their arrival, whichever is truncated first", () => {
    const script = new Script();
    const { scene } = script;
    const backup = scene.nodes[AT].service.backup!;
    const mine = scene.accountAt(FROM);
    const [first, second] = [next++, next++];
    for (const [sequence, balance] of [
      [first, 1n],
      [second, 2n],
    ] as const) {
      script.send(new Log(AT, headOf(nameOf(sequence)), logOf(scene.put(mine, balance))));
    }
    const waiting = new Truncate(AT, FROM * 2, 1, [second]);
    scene.nodes[FROM].service.driver.detach(once(waiting));
    scene.pass(10);
    expect(backup.logged).toBe(2);
    script.send(new Truncate(AT, FROM * 2, 1, [first]));
    expect(backup.logged).toBe(0);
    expect(scene.balances(AT).get(`n${mine}`)).toBe(2n);
  });

  test("TRUNCATE of what is aborted: the record is gone, and a late LOG is refused", () => {
    const script = new Script();
    const { scene } = script;
    const backup = scene.nodes[AT].service.backup!;
    const mine = scene.accountAt(FROM);
    const before = scene.balances(AT).get(`n${mine}`);
    const [kept, late] = [next++, next++];
    const log = (sequence: number): Log =>
      script.send(new Log(AT, headOf(nameOf(sequence)), logOf(scene.put(mine, 1n))));
    log(kept);
    script.send(new Truncate(AT, FROM * 2, 1, [], [kept, late]));
    expect([backup.logged, log(late).error?.code, log(kept).error?.code]).toEqual([
      0,
      "SITU_PROTOCOL",
      "SITU_PROTOCOL",
    ]);
    expect(scene.balances(AT).get(`n${mine}`)).toBe(before);
  });
});

test("only nodes take part in a commit: from clients these messages are refused", async () => {
  const script = new Script();
  const { scene, name, account } = script;
  const client = await scene.client();
  const part = scene.put(account, 1n);
  const messages = [
    new Lock(AT, headOf(name), part, 1),
    new ReadLock(AT, name, 1, [], () => {}),
    new Commit(AT, name, 0),
    new Abort(AT, name),
    new Log(AT, headOf(name), logOf(part)),
    new Truncate(AT, 0, 1, []),
  ];
  let isDone = false;
  const send = function* (): Routine<void> {
    yield messages;
  };
  client.driver.run(
    send(),
    1_000,
    () => {
      isDone = true;
    },
    () => {},
  );
  scene.until(() => isDone);
  expect(messages.map(({ error }) => error?.code)).toEqual(messages.map(() => "SITU_PERMISSION"));
  expect(await scene.run(balancesOf(client, [account]))).toMatchObject({
    result: [FIRST_BALANCE],
  });
  scene.rest();
});
