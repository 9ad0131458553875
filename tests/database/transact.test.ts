/** Asynchronous transactions: batches, interleaving, time, signals, and bodies that misbehave. */

import { describe, expect, it } from "vitest";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import { ConflictError, SituError, TimeoutError } from "../../src/runtime/errors.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, Gate, sleep, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const Note = table("note", { id: u32(), text: str() }, { key: "id" });

async function bank(): Promise<Database> {
  const db = await stores.open({ tables: [Account, Note] });
  db.transactSync((tx) => {
    for (let id = 0; id < 10; id++) tx.put(Account, { id, balance: 100n });
  });
  return db;
}

/** A second handle: another executor, as another process would be. */
const other = (db: Database): Promise<Database> =>
  stores.open({ path: db.path, tables: [Account, Note] });

const balances = (db: Database): bigint[] =>
  Array.from({ length: 10 }, (_, id) => db.get(Account, id)?.balance ?? -1n);

describe("order", () => {
  it("operations issued in one tick are carried out in their order", async () => {
    const db = await bank();
    const seen = await db.transact(async (tx) => {
      const [a, b, many] = await Promise.all([
        tx.get(Account, 1),
        tx.get(Account, 2),
        tx.getMany(Account, [3, 4]),
      ]);
      const put = tx.put(Account, { id: 1, balance: 5n });
      const after = tx.get(Account, 1);
      const had = tx.has(Account, 99);
      const inserted = tx.insert(Account, { id: 99, balance: 1n });
      const has = tx.has(Account, 99);
      await put;
      expect([(await after)?.balance, await had, await inserted, await has]).toEqual([
        5n,
        false,
        undefined,
        true,
      ]);
      return [a, b, ...many].map((row) => row?.balance);
    });
    expect(seen).toEqual([100n, 100n, 100n, 100n]);
  });

  it("an operation takes its row as it is when it is issued", async () => {
    const db = await bank();
    await db.transact(async (tx) => {
      const row = { id: 1, balance: 1n };
      const first = tx.put(Account, row);
      row.id = 2;
      row.balance = 2n;
      await Promise.all([first, tx.put(Account, row)]);
    });
    expect(balances(db).slice(1, 3)).toEqual([1n, 2n]);
  });

  it("an operation that a getter of another one's row issues comes after it", async () => {
    const db = await bank();
    let inner: Promise<{ balance: bigint } | undefined> | undefined;
    await db.transact(async (tx) => {
      const row = {
        id: 1,
        get balance() {
          inner = tx.get(Account, 1);
          return 7n;
        },
      };
      await tx.put(Account, row);
      expect((await inner)?.balance).toBe(7n);
    });
    expect(db.get(Account, 1)?.balance).toBe(7n);
  });

  it("a callback that awaits nothing but its tx ends before the event loop turns", async () => {
    const db = await bank();
    let hasTurned = false;
    let isFirst = false;
    // Should this very moment be one at which a turn is due, the next one is not.
    for (let i = 0; i < 100 && !isFirst; i++) {
      hasTurned = false;
      setImmediate(() => {
        hasTurned = true;
      });
      await db.transact(async (tx) => {
        const row = await tx.get(Account, 1);
        await tx.update(Account, 1, { balance: row!.balance + 1n });
      });
      isFirst = !hasTurned;
    }
    expect(isFirst).toBe(true);
  });

  it("what is issued last and not awaited is carried out before the commit", async () => {
    const db = await bank();
    await db.transact((tx) => {
      void tx.put(Account, { id: 1, balance: 1n });
      void tx.update(Account, 2, { balance: 2n });
    });
    expect(balances(db).slice(1, 3)).toEqual([1n, 2n]);
  });

  it("getMany reads its keys when it is called", async () => {
    const db = await bank();
    const keys = [1, 2];
    const rows = await db.transact(async (tx) => {
      const asked = tx.getMany(Account, keys);
      keys.length = 0;
      return asked;
    });
    expect(rows.length).toBe(2);
  });

  it("a body need not be asynchronous", async () => {
    const db = await bank();
    expect(await db.transact(() => 7)).toBe(7);
    expect(await db.transact((tx) => tx.get(Account, 1))).toEqual({ id: 1, balance: 100n });
  });
});

describe("interleaved transactions of one thread", () => {
  it("conflict, retry, and lose nothing", async () => {
    const db = await bank();
    let runs = 0;
    const add = (id: number): Promise<void> =>
      db.transact(async (tx) => {
        runs++;
        const row = await tx.get(Account, id);
        await sleep(1);
        await tx.update(Account, id, { balance: row!.balance + 1n });
      });
    await Promise.all(Array.from({ length: 20 }, () => add(1)));
    expect(db.get(Account, 1)?.balance).toBe(120n);
    expect(runs).toBeGreaterThan(20);
    expect(db.stats().counters.conflicts).toBeGreaterThan(0);
  });

  it("transfers between many accounts keep the sum, at every moment", async () => {
    const db = await bank();
    const second = await other(db);
    let moving = true;
    const transfer = (from: number, to: number, on: Database): Promise<void> =>
      on.transact(async (tx) => {
        const [a, b] = await Promise.all([tx.get(Account, from), tx.get(Account, to)]);
        if (a!.balance < 1n) return;
        await Promise.all([
          tx.update(Account, from, { balance: a!.balance - 1n }),
          tx.update(Account, to, { balance: b!.balance + 1n }),
        ]);
      });
    const audit = async (): Promise<void> => {
      while (moving) {
        const rows = await db.transact((tx) => tx.getMany(Account, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
        expect(rows.reduce((sum, row) => sum + row!.balance, 0n)).toBe(1_000n);
        await sleep(1);
      }
    };
    const auditing = audit();
    await Promise.all(
      Array.from({ length: 200 }, (_, n) =>
        transfer(
          n % 10,
          (n * 7 + 3) % 10 === n % 10 ? (n + 1) % 10 : (n * 7 + 3) % 10,
          n % 2 ? db : second,
        ),
      ),
    );
    moving = false;
    await auditing;
    expect(balances(db).reduce((sum, balance) => sum + balance, 0n)).toBe(1_000n);
  });

  it("transactSync in between wins; the awaiting one runs again", async () => {
    const db = await bank();
    let runs = 0;
    const seen: bigint[] = [];
    const [read, changed] = [new Gate(), new Gate()];
    const running = db.transact(async (tx) => {
      runs++;
      seen.push((await tx.get(Account, 1))!.balance);
      read.open();
      await changed.opened;
      await tx.put(Account, { id: 2, balance: seen.at(-1)! });
    });
    await read.opened;
    db.transactSync((tx) => tx.update(Account, 1, { balance: 7n }));
    changed.open();
    await running;
    expect([runs, seen, db.get(Account, 2)?.balance]).toEqual([2, [100n, 7n], 7n]);
  });

  it("reads alone conflict too: what a transaction returns was true at one moment", async () => {
    const db = await bank();
    let runs = 0;
    const sum = await db.transact(async (tx) => {
      runs++;
      const a = await tx.get(Account, 1);
      if (runs === 1) await move(db, 1, 2);
      const b = await tx.get(Account, 2);
      return a!.balance + b!.balance;
    });
    expect([runs, sum]).toEqual([2, 200n]);
  });
});

/** Moves 10 in a transaction that does not belong to the running one. */
async function move(db: Database, from: number, to: number): Promise<void> {
  const second = await other(db);
  second.transactSync((tx) => {
    tx.update(Account, from, { balance: tx.get(Account, from)!.balance - 10n });
    tx.update(Account, to, { balance: tx.get(Account, to)!.balance + 10n });
  });
}

describe("operations that nobody awaits", () => {
  it.each([
    [
      "insert of a key that is taken",
      "SITU_EXISTS",
      (tx: AsyncTransaction): void => {
        void tx.insert(Account, { id: 1, balance: 0n });
      },
    ],
    [
      "update of a missing row",
      "SITU_MISSING",
      (tx: AsyncTransaction): void => {
        void tx.update(Account, 99, { balance: 0n });
      },
    ],
    [
      "a wrong type",
      "SITU_TYPE",
      (tx: AsyncTransaction): void => {
        void tx.put(Account, { id: 1, balance: 0 as never });
      },
    ],
  ] as const)("%s fails the transaction", async (_, code, fail) => {
    const db = await bank();
    const before = balances(db);
    await failure(code, () =>
      db.transact(async (tx) => {
        await tx.put(Account, { id: 5, balance: 0n });
        fail(tx);
        await tx.get(Account, 2);
        return "ignored";
      }),
    );
    expect(balances(db)).toEqual(before);
  });

  it("neither its first nor its last one ends the process", async () => {
    const path = stores.folder();
    const { status, result, stderr } = await runChild(
      stores,
      `
      const { open, table, u32, i64 } = situ;
      const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
      const db = await open({ path: data.path, tables: [Account], memoryBytes: 16 << 20 });
      const codes = [];
      const note = (promise) => promise.catch((error) => codes.push(error.code));
      await note(db.transact((tx) => { tx.update(Account, 1, {}); tx.update(Account, 2, {}); throw new Error("own"); }));
      await note(db.transact(async (tx) => { tx.update(Account, 1, {}); await tx.has(Account, 1); tx.update(Account, 2, {}); }));
      try { db.transactSync(async (tx) => { await null; tx.get(Account, 1); }); } catch (error) { codes.push(error.code); }
      try { db.transactSync(async () => { throw new Error("own"); }); } catch (error) { codes.push(error.code); }
      await new Promise((resolve) => setTimeout(resolve, 50));
      await db.close();
      return codes;`,
      { path },
    );
    expect({ status, result, stderr }).toEqual({
      status: 0,
      result: [undefined, "SITU_MISSING", "SITU_ASYNC_BODY", "SITU_ASYNC_BODY"].map(
        (code) => code ?? null,
      ),
      stderr: "",
    });
  });

  it("a failure that is handled is none", async () => {
    const db = await bank();
    await db.transact(async (tx) => {
      const inserting = tx.insert(Account, { id: 1, balance: 0n });
      const settled = await Promise.allSettled([
        inserting,
        tx.put(Account, { id: 2, balance: 2n }),
      ]);
      expect(settled.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
    });
    expect(balances(db).slice(1, 3)).toEqual([100n, 2n]);
  });
});

describe("bodies that throw", () => {
  it.each([
    ["an Error", new Error("mine")],
    ["a string", "mine"],
    ["undefined", undefined],
    ["an error of Situ's own kind", new SituError("SITU_MISSING", "mine")],
  ])("%s: the same thing comes out, nothing changed", async (_, thrown) => {
    const db = await bank();
    const before = balances(db);
    const caught: unknown[] = [];
    try {
      db.transactSync((tx) => {
        tx.put(Account, { id: 1, balance: 0n });
        tx.delete(Account, 2);
        tx.insert(Account, { id: 77, balance: 0n });
        throw thrown;
      });
    } catch (error) {
      caught.push(error);
    }
    await db
      .transact(async (tx) => {
        await tx.put(Account, { id: 1, balance: 0n });
        await tx.delete(Account, 2);
        throw thrown;
      })
      .catch((error: unknown) => caught.push(error));
    await db
      .transact((tx) => {
        void tx.put(Account, { id: 1, balance: 0n });
        throw thrown;
      })
      .catch((error: unknown) => caught.push(error));
    expect(caught.length).toBe(3);
    for (const error of caught) expect(error).toBe(thrown);
    expect(balances(db)).toEqual(before);
    expect(db.get(Account, 77)).toBeUndefined();
  });

  it("an error born of an impossible state is not believed: the body runs again", async () => {
    const db = await bank();
    const second = await other(db);
    let runs = 0;
    const result = db.transactSync((tx) => {
      runs++;
      const a = tx.get(Account, 1)!.balance;
      if (runs === 1) {
        second.transactSync((its) => {
          its.update(Account, 1, { balance: 0n });
          its.update(Account, 2, { balance: 200n });
        });
      }
      const b = tx.get(Account, 2)!.balance;
      if (a + b !== 200n) throw new Error("the sum is wrong");
      return a + b;
    });
    expect([runs, result]).toEqual([2, 200n]);
  });

  it("a body that swallows the signal of a conflict is run again all the same", async () => {
    const db = await bank();
    const second = await other(db);
    for (const kind of ["sync", "async"]) {
      let runs = 0;
      const meddle = (): void => {
        second.transactSync((its) =>
          its.update(Account, 1, { balance: its.get(Account, 1)!.balance + 1n }),
        );
      };
      if (kind === "sync") {
        db.transactSync((tx) => {
          runs++;
          const before = tx.get(Account, 1)!.balance;
          if (runs === 1) meddle();
          try {
            tx.get(Account, 1);
            tx.update(Account, 1, { balance: before + 10n });
          } catch {
            // This is what a body must not do; it must not do harm either.
          }
          try {
            tx.put(Account, { id: 3, balance: before });
          } catch {
            // Neither.
          }
        });
      } else {
        await db.transact(async (tx) => {
          runs++;
          const before = (await tx.get(Account, 1))!.balance;
          if (runs === 1) meddle();
          await tx.get(Account, 1).catch(() => {});
          await tx.update(Account, 1, { balance: before + 10n }).catch(() => {});
        });
      }
      expect(runs).toBe(2);
    }
    expect(db.get(Account, 1)?.balance).toBe(122n);
    expect(db.get(Account, 3)?.balance).toBe(101n);
  });
});

describe("what is left of an earlier attempt", () => {
  it("cannot write into the next one", async () => {
    const db = await bank();
    const second = await other(db);
    let runs = 0;
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const stragglers: Promise<unknown>[] = [];
    await db.transact(async (tx) => {
      const attempt = ++runs;
      const { balance } = (await tx.get(Account, 1))!;
      if (attempt === 1) {
        stragglers.push(
          gate.then(() => failure("SITU_CLOSED", () => tx.put(Account, { id: 50, balance }))),
        );
        stragglers.push(gate.then(() => failure("SITU_CLOSED", () => tx.get(Account, 1))));
        second.transactSync((its) => its.update(Account, 1, { balance: 1n }));
      } else {
        open();
        await sleep(10);
      }
      await tx.update(Account, 2, { balance });
    });
    await Promise.all(stragglers);
    expect(runs).toBe(2);
    expect(db.get(Account, 2)?.balance).toBe(1n);
    expect(db.get(Account, 50)).toBeUndefined();
  });
});

describe("time", () => {
  it("a body that never ends is given up at its deadline", async () => {
    const db = await bank();
    const before = balances(db);
    let late: Promise<unknown> | undefined;
    let release: () => void = () => {};
    const forever = new Promise<void>((resolve) => {
      release = resolve;
    });
    const error = await failure("SITU_TIMEOUT", () =>
      db.transact(
        (tx) => {
          void tx.put(Account, { id: 1, balance: 0n });
          late = forever.then(() => tx.put(Account, { id: 2, balance: 0n }));
          late.catch(() => {});
          return late;
        },
        { timeoutMs: 30 },
      ),
    );
    expect(error).toBeInstanceOf(TimeoutError);
    expect(error.message).toMatch(/30 ms.*nothing was committed/);
    expect(error.retryable).toBe(true);
    release();
    await failure("SITU_TIMEOUT", () => late);
    expect(balances(db)).toEqual(before);
    await db.transact((tx) => tx.put(Account, { id: 3, balance: 3n }));
    expect(db.get(Account, 3)?.balance).toBe(3n);
  });

  it("a synchronous body that never ends, too, if it uses its tx", async () => {
    const db = await bank();
    const error = failureSync("SITU_TIMEOUT", () =>
      db.transactSync(
        (tx) => {
          tx.put(Account, { id: 1, balance: 0n });
          for (;;) tx.get(Account, 2);
        },
        { timeoutMs: 30 },
      ),
    );
    expect(error.message).toMatch(/30 ms.*nothing was committed/);
    expect(db.get(Account, 1)?.balance).toBe(100n);
  });

  it("also if it swallows the error: nothing is committed, and the caller hears of it", async () => {
    const db = await bank();
    failureSync("SITU_TIMEOUT", () =>
      db.transactSync(
        (tx) => {
          tx.put(Account, { id: 1, balance: 0n });
          for (;;) {
            try {
              tx.get(Account, 2);
            } catch {
              break;
            }
          }
        },
        { timeoutMs: 30 },
      ),
    );
    expect(db.get(Account, 1)?.balance).toBe(100n);
  });

  it("a transaction that always meets another gives up, with the keys it was about", async () => {
    const db = await bank();
    const second = await other(db);
    const meddle = (): void => {
      second.transactSync((its) =>
        its.update(Account, 1, { balance: its.get(Account, 1)!.balance + 1n }),
      );
    };
    const sync = failureSync("SITU_CONFLICT", () =>
      db.transactSync(
        (tx) => {
          tx.get(Account, 1);
          meddle();
          tx.put(Note, { id: 1, text: "never" });
        },
        // Enough for a first attempt on any machine.
        { timeoutMs: 500 },
      ),
    );
    const later = await failure("SITU_CONFLICT", () =>
      db.transact(
        async (tx) => {
          await tx.get(Account, 1);
          meddle();
          await tx.put(Note, { id: 1, text: "never" });
        },
        { timeoutMs: 500 },
      ),
    );
    for (const error of [sync, later]) {
      expect(error).toBeInstanceOf(ConflictError);
      expect((error as ConflictError).keys).toContainEqual({ table: "account", key: 1 });
      expect(error.message).toMatch(/account 1.*Try again/);
      expect(error.retryable).toBe(true);
    }
    expect(db.get(Note, 1)).toBeUndefined();
  });

  it("timeoutMs must make sense, in open and in a transaction", async () => {
    const db = await bank();
    for (const timeoutMs of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
      failureSync("SITU_CONFIG", () => db.transactSync(() => 1, { timeoutMs }));
      await failure("SITU_CONFIG", () => db.transact(() => 1, { timeoutMs }));
      await failure("SITU_CONFIG", () => stores.open({ timeoutMs }));
    }
  });

  it("a database's own timeoutMs counts where the transaction names none", async () => {
    const db = await stores.open({ tables: [Account], timeoutMs: 20 });
    await failure("SITU_TIMEOUT", () => db.transact(() => sleep(60_000).then(() => undefined)));
  });
});

describe("signals", () => {
  it("one that is aborted already: the body does not even start", async () => {
    const db = await bank();
    let ran = false;
    const error = await failure("SITU_ABORTED", () =>
      db.transact(
        () => {
          ran = true;
        },
        { signal: AbortSignal.abort("why") },
      ),
    );
    expect(ran).toBe(false);
    expect(error.cause).toBe("why");
    expect(error.retryable).toBe(false);
  });

  it("abort while the body waits: nothing is committed, its tx is dead", async () => {
    const db = await bank();
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    const [written, aborted] = [new Gate(), new Gate()];
    let late: Promise<unknown> | undefined;
    const running = db.transact(
      async (tx) => {
        await tx.put(Account, { id: 1, balance: 0n });
        written.open();
        await aborted.opened;
        late = failure("SITU_ABORTED", () => tx.get(Account, 1));
      },
      { signal: controller.signal },
    );
    await written.opened;
    controller.abort(reason);
    const error = await failure("SITU_ABORTED", () => running);
    expect(error.cause).toBe(reason);
    expect(late).toBeUndefined();
    aborted.open();
    await aborted.opened;
    await late;
    expect(late).toBeDefined();
    expect(db.get(Account, 1)?.balance).toBe(100n);
  });

  it("abort between attempts", async () => {
    const db = await bank();
    const second = await other(db);
    const controller = new AbortController();
    let runs = 0;
    await failure("SITU_ABORTED", () =>
      db.transact(
        async (tx) => {
          // Counted first: whether `put` already meets the change depends on where the two rows are.
          if (++runs === 3) setImmediate(() => controller.abort());
          await tx.get(Account, 1);
          second.transactSync((its) =>
            its.update(Account, 1, { balance: its.get(Account, 1)!.balance + 1n }),
          );
          await tx.put(Account, { id: 2, balance: 0n });
        },
        { signal: controller.signal },
      ),
    );
    expect(db.get(Account, 2)?.balance).toBe(100n);
  });

  it("abort after the end does nothing, and no listener is left", async () => {
    const db = await bank();
    const controller = new AbortController();
    let listeners = 0;
    const { signal } = controller;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = ((...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    }) as typeof signal.addEventListener;
    signal.removeEventListener = ((...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    }) as typeof signal.removeEventListener;
    await db.transact((tx) => tx.put(Account, { id: 1, balance: 1n }), { signal });
    controller.abort();
    expect(listeners).toBe(0);
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });
});

describe("tx after the end", () => {
  it("of transactSync", async () => {
    const db = await bank();
    const kept = db.transactSync((tx) => tx);
    for (const use of [
      () => kept.get(Account, 1),
      () => kept.put(Account, { id: 1, balance: 0n }),
      () => kept.delete(Account, 1),
      () => kept.alloc(8),
    ]) {
      expect(failureSync("SITU_CLOSED", use).message).toMatch(/has ended/);
    }
    expect(db.get(Account, 1)?.balance).toBe(100n);
  });

  it("of transact, also when another one is running", async () => {
    const db = await bank();
    let kept: AsyncTransaction | undefined;
    await db.transact((tx) => {
      kept = tx;
    });
    await failure("SITU_CLOSED", () => kept!.get(Account, 1));
    await db.transact(async (tx) => {
      await tx.get(Account, 2);
      await failure("SITU_CLOSED", () => kept!.put(Account, { id: 1, balance: 0n }));
      await tx.get(Account, 3);
    });
    expect(db.get(Account, 1)?.balance).toBe(100n);
  });

  it("of a transaction that failed", async () => {
    const db = await bank();
    let kept: AsyncTransaction | undefined;
    await expect(
      db.transact((tx) => {
        kept = tx;
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    await failure("SITU_CLOSED", () => kept!.get(Account, 1));
  });
});

/** Not a promise, but what an await would take for one. */
function thenable(): unknown {
  // biome-ignore lint/suspicious/noThenProperty: that is what is tested
  return { then: () => {} };
}

describe("a promise from transactSync", () => {
  it("is refused, whatever kind of promise it is, and nothing is committed", async () => {
    const db = await bank();
    for (const make of [() => Promise.resolve(1), thenable]) {
      const error = failureSync("SITU_ASYNC_BODY", () =>
        db.transactSync((tx) => {
          tx.put(Account, { id: 1, balance: 0n });
          return make();
        }),
      );
      expect(error.message).toMatch(/Use transact/);
    }
    expect(db.get(Account, 1)?.balance).toBe(100n);
    db.transactSync((tx) => tx.put(Account, { id: 1, balance: 1n }));
    expect(db.get(Account, 1)?.balance).toBe(1n);
  });
});
