/** The log's writer, round by round: what is committed gets to disk, once, whole, in order. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { GroupCommit } from "../../src/log/group-commit.ts";
import { forEachRecord } from "../../src/log/segments/format.ts";
import { readPayload } from "../../src/log/segments/payloads.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

const LOG_ID = "0123456789abcdef01234567";

class LoggedStore {
  readonly store = new EngineStore(SMALL, "mapped files", true);
  readonly folder = mkdtempSync(join(tmpdir(), "situ-test-writer-"));
  readonly files = new NodeFiles(this.folder);

  writer(executor = this.store.open()): GroupCommit {
    const writer = new GroupCommit(executor, this.files, LOG_ID);
    expect(writer.tryBegin()).toBe(true);
    return writer;
  }

  /** TIDs of the log's records, in the log's order, as text; and how many words they have. */
  records(): { tid: string; words: number }[] {
    const scan = scanLog(this.files, 0);
    expect(scan.damage).toEqual([]);
    return scan.batches.flatMap((batch) => {
      const words = readPayload(this.files, batch);
      const found: { tid: string; words: number }[] = [];
      forEachRecord(words, (at, length) =>
        found.push({ tid: `${words[at + 2]}:${words[at + 3]}`, words: length }),
      );
      expect(found).toHaveLength(batch.records);
      return found;
    });
  }

  dispose(): void {
    this.store.dispose();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe("the log's writer", () => {
  const stores: LoggedStore[] = [];
  const logged = (): LoggedStore => {
    const made = new LoggedStore();
    stores.push(made);
    return made;
  };
  afterEach(() => {
    for (const store of stores.splice(0)) store.dispose();
  });

  const allocate = (executor: Executor, bytes = 40): void => {
    transact(executor, (tx) => tx.allocate(bytes));
  };

  test("a round writes all that was committed, and publishes its epoch", () => {
    const logs = logged();
    const [one, two] = [logs.store.open(), logs.store.open()];
    const writer = logs.writer();
    expect(writer.round()).toBe("idle");
    for (let i = 0; i < 5; i++) allocate(i % 2 === 0 ? one : two);
    const epoch = one.epochs.current();
    expect(writer.round()).toBe("done");
    expect(one.durability.epoch).toBe(epoch);
    expect(logs.records()).toHaveLength(5);
    expect(writer.round()).toBe("idle");
    one.durability.call();
    expect(writer.round()).toBe("done");
    expect(logs.records()).toHaveLength(5);
  });

  test("a journal that is full makes its owner wait, and goes round", () => {
    const logs = logged();
    const one = logs.store.open();
    const writer = logs.writer();
    let records = 0;
    for (let round = 0; round < 20; round++) {
      const tx = new Transaction(one);
      for (;;) {
        tx.clear();
        one.enter();
        tx.allocate(3000 + 17 * (records % 5));
        const committed = one.commit(tx);
        one.leave();
        if (!committed) break;
        records++;
      }
      expect(tx.journalFull).toBe(true);
      tx.clear();
      expect(writer.round()).toBe("done");
      expect(logs.records()).toHaveLength(records);
    }
    expect(records).toBeGreaterThan(20 * 10);
  });

  test("a transaction as large as a journal gets through, wherever the head is", () => {
    const logs = logged();
    const one = logs.store.open();
    const writer = logs.writer();
    one.durability.ensureLogWriter = () => writer.round();
    for (let i = 0; i < 12; i++) {
      allocate(one, 1000 * (i + 1));
      transact(one, (tx) => tx.allocate(SMALL.journalBytes - 4 * (4 + 5) - 8));
    }
    writer.round();
    expect(logs.records()).toHaveLength(24);
    // And so does a larger one; the next waits until the log has it.
    for (let i = 0; i < 3; i++) transact(one, (tx) => tx.allocate(SMALL.journalBytes));
    writer.round();
    expect(logs.records()).toHaveLength(27);
  });

  test("a dead writer's successor writes what was not published, and nothing twice", () => {
    const logs = logged();
    const one = logs.store.open();
    const first = logs.store.open();
    const dying = logs.writer(first);
    allocate(one);
    dying.round();
    allocate(one);
    logs.store.kill(first);
    const writer = logs.writer();
    writer.round();
    allocate(one);
    writer.round();
    expect(logs.records()).toHaveLength(3);
    expect(new Set(logs.records().map(({ tid }) => tid)).size).toBe(3);
  });

  test("a committer that died after its commit point is in the log", () => {
    const logs = logged();
    const [one, two] = [logs.store.open(), logs.store.open()];
    const writer = logs.writer();
    allocate(one);
    logs.store.kill(one);
    allocate(two);
    expect(writer.round()).toBe("done");
    expect(logs.records()).toHaveLength(2);
    logs.store.open();
    expect(writer.round()).toBe("idle");
  });
});
