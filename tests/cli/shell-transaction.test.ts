/** Transactions over several lines, and completion, on a session without a terminal. */

import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Screen } from "../../src/cli/screen.ts";
import { complete } from "../../src/cli/work/shell/complete.ts";
import type { Outcome } from "../../src/cli/work/shell/outcome.ts";
import { ShellSession } from "../../src/cli/work/shell/session.ts";
import { dataStatement, typed } from "../../src/cli/work/shell/statements.ts";
import type { Database } from "../../src/index.ts";
import { Place } from "./run.ts";
import { Account, makeBank, openBank, Word } from "./store.ts";

let place: Place;
let other: Database;
let session: ShellSession;

beforeEach(async () => {
  place = new Place();
  const path = place.store();
  await makeBank(path);
  other = await openBank(path);
  const screen = new Screen(true);
  session = await ShellSession.open({ path, screen, mostRows: 100, transactionMs: 10_000 });
});

afterEach(async () => {
  await session.close();
  await other.close();
  await place.end();
});

async function run(line: string): Promise<Outcome> {
  return session.carryOut((await dataStatement(typed(line), session))!);
}

async function balanceOf(id: number): Promise<unknown> {
  const outcome = await run(`get account ${id}`);
  return outcome.kind === "row" ? outcome.row?.balance : undefined;
}

describe("between begin and commit", () => {
  test("statements see what they did, and others only when it is committed", async () => {
    session.begin();
    await run("update account 1 {balance: 77}");
    expect(await balanceOf(1)).toBe(77n);
    expect(other.get(Account, 1)?.balance).toBe(10n);
    expect(await session.finish("commit")).toBe(2);
    expect(other.get(Account, 1)?.balance).toBe(77n);
    expect(session.isInTransaction).toBe(false);
  });

  test("rollback, and leaving without commit, leave nothing", async () => {
    session.begin();
    await run("delete account 1");
    await session.finish("rollback");
    session.begin();
    await run("delete account 2");
    await session.close();
    expect(other.get(Account, 1)).toBeDefined();
    expect(other.get(Account, 2)).toBeDefined();
  });

  test("a failed statement does not end it", async () => {
    session.begin();
    await expect(run("insert account {id: 1, owner: 'x', balance: 0, note: null}")).rejects.toThrow(
      expect.objectContaining({ code: "SITU_EXISTS" }),
    );
    await run("update account 1 {owner: 'y'}");
    await session.finish("commit");
    expect(other.get(Account, 1)?.owner).toBe("y");
  });

  test("others that change what was read: nothing happens, and it is told what", async () => {
    session.begin();
    await balanceOf(1);
    await balanceOf(2);
    await run("update account 3 {balance: 0}");
    other.transactSync((tx) => tx.update(Account, 2, { balance: 999n }));
    const failure = await session.finish("commit").catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "SITU_CONFLICT" });
    expect(String(failure)).toContain('"get account 2" would have a different result now');
    expect(String(failure)).not.toContain('"get account 1" would');
    expect(other.get(Account, 3)?.balance).toBe(30n);
    expect(session.lost).toEqual([
      "get account 1",
      "get account 2",
      "update account 3 {balance: 0}",
    ]);
    expect(session.isInTransaction).toBe(false);
  });

  test("others that change it and change it back are no conflict", async () => {
    session.begin();
    await balanceOf(1);
    await run("update account 3 {balance: 0}");
    other.transactSync((tx) => tx.update(Account, 1, { balance: 999n }));
    other.transactSync((tx) => tx.update(Account, 1, { balance: 10n }));
    await session.finish("commit");
    expect(other.get(Account, 3)?.balance).toBe(0n);
  });

  test("a row that appears in a range that was scanned, or takes a key, is one", async () => {
    session.begin();
    await run("count account from 140 to 160");
    await run("put word {text: 'x', n: 1}");
    other.transactSync((tx) =>
      tx.insert(Account, { id: 155, owner: "new", balance: 0n, note: null }),
    );
    await expect(session.finish("commit")).rejects.toThrow("count account from 140 to 160");
    expect(other.get(Word, "x")).toBeUndefined();

    session.begin();
    await run("insert word {text: 'y', n: 1}");
    other.transactSync((tx) => tx.insert(Word, { text: "y", n: 2 }));
    await expect(session.finish("commit")).rejects.toThrow(/insert word/);
    expect(other.get(Word, "y")?.n).toBe(2);
  });

  test("it ends when its time is over, and says so", async () => {
    const { path, screen } = session.options;
    const hasty = await ShellSession.open({ path, screen, mostRows: 100, transactionMs: 50 });
    try {
      const lost = new Promise((resolve) => {
        hasty.onLost = resolve;
      });
      hasty.begin();
      await hasty.carryOut((await dataStatement(typed("delete account 1"), hasty))!);
      expect(await lost).toMatchObject({ code: "SITU_TIMEOUT" });
      expect(hasty.isInTransaction).toBe(false);
      expect(other.get(Account, 1)).toBeDefined();
      await expect(hasty.finish("commit")).rejects.toThrow("no transaction to commit");
    } finally {
      await hasty.close();
    }
  });

  test("one at a time", async () => {
    session.begin();
    expect(() => session.begin()).toThrow("a transaction is already open");
    await session.finish("rollback");
    await expect(session.finish("commit")).rejects.toThrow("no transaction to commit");
  });

  test("many at once from others: every transaction that commits has seen the truth", async () => {
    let isOver = false;
    const others = (async () => {
      let i = 0;
      for (; !isOver; i++) {
        other.transactSync((tx) => {
          const { balance } = tx.get(Account, 1)!;
          tx.update(Account, 1, { balance: balance + 1n });
        });
        await setTimeout(i % 3);
      }
      return i;
    })();
    let committed = 0;
    for (let i = 0; i < 60; i++) {
      session.begin();
      const seen = (await balanceOf(1)) as bigint;
      // It may be found out with the statement, or with the commit.
      const change = run(`update account 1 {balance: ${seen + 1_000n}}`).then(() =>
        session.finish("commit"),
      );
      const failure = await change.then(
        () => undefined,
        (error: unknown) => error as { code: string },
      );
      if (failure === undefined) committed++;
      else expect(failure.code).toBe("SITU_CONFLICT");
      while (session.isInTransaction) await setTimeout(1);
    }
    isOver = true;
    const increments = await others;
    expect(other.get(Account, 1)?.balance).toBe(10n + BigInt(increments + 1_000 * committed));
    expect(committed).toBeGreaterThan(0);
  });
});

test("a table that somebody makes meanwhile is found", async () => {
  const { table, u32, open } = await import("../../src/index.ts");
  const Late = table("late", { id: u32() }, { key: "id" });
  await using third = await open({ path: session.options.path, tables: [Late] });
  third.transactSync((tx) => tx.insert(Late, { id: 5 }));
  expect(await run("get late 5")).toMatchObject({ kind: "row", row: { id: 5 } });
  await expect(run("get lat 5")).rejects.toThrow("did you mean late?");
});

describe("Tab offers", () => {
  const offered = (line: string): string[] => complete(line, session)[0];

  const LINES: readonly [string, string[]][] = [
    ["ro", ["rollback "]],
    ["get ", ["account ", "seat ", "blob ", "word "]],
    ["count a", ["account "]],
    ["tables; describe s", ["seat "]],
    ["get word hel", ["hello "]],
    ["delete word w", ["world "]],
    ["get blob p", ["plain "]],
    ["scan account index ", ["byOwner "]],
    ["scan account index byOwner x re", ["reverse "]],
    ["scan account from 14", ["14 "]],
    ["put account {", ["balance: ", "id: ", "note: ", "owner: "]],
    ["put account {id: 1, o", ["owner: "]],
    ["update account 1 {", ["balance: ", "note: ", "owner: "]],
    ["put account {id: ", []],
    ["begin ", []],
    ["get nothing x", []],
    ["help ver", ["verify "]],
  ];

  test("what fits where the cursor is", () => {
    for (const [line, names] of LINES) expect(offered(line), line).toEqual(names);
  });

  test("a key that is no word in quotes", () => {
    expect(offered("get word ")).toEqual(["hello ", '"help me" ', "world "]);
  });
});
