/** Mistakes of the caller: each has its code and says what to do, and nothing is lost by it. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import { bytes, f64, json, pointer, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const User = table("user", { id: u32(), name: str(10), score: f64() }, { key: "id" });
const File = table(
  "file",
  { id: u32(), data: bytes(), more: bytes(), last: bytes() },
  { key: "id" },
);

describe("rows", () => {
  it("missing, unknown and misplaced fields", async () => {
    const db = await stores.open({ tables: [User] });
    const good = { id: 1, name: "ada", score: 1 };
    db.transactSync((tx) => tx.put(User, good));
    const cases: [unknown, RegExp][] = [
      [{ id: 1, name: "ada" }, /user\.score: expected a number, got nothing/],
      [{ name: "ada", score: 1 }, /user\.id: expected a whole number.*got nothing/],
      [{ ...good, extra: 1 }, /no field "extra"/],
      [{ ...good, Name: "x" }, /no field "Name"/],
      [undefined, /expected a row, got nothing/],
      [null, /expected a row, got null/],
      [7, /expected a row, got the number 7/],
      ["row", /expected a row/],
      [[1, "ada", 1], /no field "0"/],
    ];
    for (const [row, message] of cases) {
      for (const kind of ["put", "insert"] as const) {
        const error = failureSync("SITU_TYPE", () =>
          db.transactSync((tx) => tx[kind](User, row as never)),
        );
        expect(error.message).toMatch(message);
      }
    }
    for (const changes of [{ nothing: 1 }, { name: "x", nothing: 1 }]) {
      const error = failureSync("SITU_TYPE", () =>
        db.transactSync((tx) => tx.update(User, 1, changes as never)),
      );
      expect(error.message).toMatch(/no field "nothing"/);
    }
    expect(db.get(User, 1)).toEqual(good);
  });

  it("wrong keys", async () => {
    const db = await stores.open({ tables: [User] });
    for (const key of [undefined, null, "1", 1n, -1, 1.5, 2 ** 32, [1], {}, Number.NaN]) {
      const uses = [
        () => db.get(User, key as never),
        () => db.transactSync((tx) => tx.get(User, key as never)),
        () => db.transactSync((tx) => tx.getMany(User, [1, key as never])),
        () => db.transactSync((tx) => tx.has(User, key as never)),
        () => db.transactSync((tx) => tx.update(User, key as never, { score: 1 })),
        () => db.transactSync((tx) => tx.delete(User, key as never)),
        () => db.transact((tx) => tx.get(User, key as never)),
      ];
      for (const use of uses) {
        expect((await failure("SITU_TYPE", use)).message).toMatch(/user\.id: expected a whole/);
      }
    }
  });

  it("values, rows and transactions that are too large", async () => {
    // Among the threads of one process a transaction must fit a journal.
    const sharing = "threads" as const;
    const db = await stores.open({ tables: [File, User], memoryBytes: 64 * MIB, sharing });
    const small = {
      id: 1,
      data: new Uint8Array(3),
      more: new Uint8Array(),
      last: new Uint8Array(),
    };
    db.transactSync((tx) => tx.put(File, small));
    const mib = new Uint8Array(MIB);
    const value = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => tx.put(File, { ...small, data: new Uint8Array(MIB + 1) })),
    );
    expect(value.message).toMatch(/file\.data: 1048577 bytes, at most 1048576/);
    const row = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => tx.put(File, { id: 1, data: mib, more: mib, last: mib })),
    );
    expect(row.message).toMatch(/the row has more than 3145728 bytes/);
    const journal = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => {
        for (let id = 2; id < 8; id++) tx.put(File, { ...small, id, data: mib });
      }),
    );
    expect(journal.message).toMatch(/write less|split it/);
    const arena = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => {
        for (let id = 2; id < 40; id++) tx.put(File, { ...small, id, data: mib });
      }),
    );
    expect(arena.message).toMatch(/write less|split it/);
    const objects = failureSync("SITU_TOO_LARGE", () =>
      db.transactSync((tx) => {
        for (let n = 0; n < 150_000; n++) tx.alloc(8);
      }),
    );
    expect(objects.message).toMatch(/split it|write less/);
    expect(db.get(File, 1)).toEqual(small);
    for (let id = 2; id < 40; id++) expect(db.get(File, id)).toBeUndefined();
    db.transactSync((tx) => tx.put(File, { ...small, id: 2, data: mib, more: mib }));
    expect(db.get(File, 2)?.more.length).toBe(MIB);
    // Reading much is bounded as well, and says so.
    for (let id = 0; id < 3_000; id++)
      db.transactSync((tx) => tx.put(User, { id, name: "", score: id }));
    expect(
      db.transactSync(
        (tx) =>
          tx.getMany(
            User,
            Array.from({ length: 3_000 }, (_, id) => id),
          ).length,
      ),
    ).toBe(3_000);
  });

  it("large rows that replace each other in one transaction are committed as a whole", async () => {
    const path = stores.folder();
    // In a process of its own: failures of this were a lookup, and a search for memory, that never ended.
    const { result, error, signal } = await runChild(
      stores,
      `
      const { open, table, u32, bytes } = situ;
      const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
      const db = await open({ path: data.path, tables: [Blob], memoryBytes: 64 << 20 });
      db.transactSync((tx) => tx.put(Blob, { id: 1, data: new Uint8Array(10) }));
      const codes = [];
      for (const ids of [[1], [1, 2, 3]]) {
        try {
          db.transactSync((tx) => {
            try {
              for (let n = 0; n < 60; n++) {
                tx.put(Blob, { id: ids[n % ids.length], data: new Uint8Array(n % 2 ? 900_000 : 700_000) });
              }
            } catch (error) {
              codes.push(error.code);
            }
          });
          codes.push("committed");
        } catch (error) {
          codes.push(error.code);
        }
      }
      const lengths = [1, 2, 3].map((id) => db.get(Blob, id)?.data.length ?? null);
      db.transactSync((tx) => { for (const id of [1, 2, 3]) tx.put(Blob, { id, data: new Uint8Array(5) }); });
      const after = [1, 2, 3].map((id) => db.get(Blob, id)?.data.length ?? null);
      await db.close();
      return { codes, lengths, after };`,
      { path },
    );
    expect({ error, signal }).toEqual({ error: undefined, signal: null });
    expect(result).toEqual({
      codes: ["committed", "committed"],
      lengths: [900_000, 700_000, 900_000],
      after: [5, 5, 5],
    });
  });
});

describe("tables", () => {
  it("that were not opened", async () => {
    const db = await stores.open({ tables: [User] });
    const twin = table("user", { id: u32(), name: str(10), score: f64() }, { key: "id" });
    for (const unknown of [File, twin, undefined, null, {}, "user"]) {
      const uses = [
        () => db.get(unknown as never, 1 as never),
        () => db.transactSync((tx) => tx.put(unknown as never, {} as never)),
        () => db.transact((tx) => tx.delete(unknown as never, 1 as never)),
      ];
      const said = unknown === twin ? /another declaration.*passed to open/ : /pass it to open/;
      for (const use of uses) {
        expect((await failure("SITU_UNKNOWN_TABLE", use)).message).toMatch(said);
      }
    }
  });

  it("with a schema that makes no sense", () => {
    const cases: [() => unknown, RegExp][] = [
      [() => table("", { id: u32() }, { key: "id" }), /1 to 200 bytes/],
      [() => table("é".repeat(101), { id: u32() }, { key: "id" }), /1 to 200 bytes/],
      [() => table(7 as never, { id: u32() }, { key: "id" }), /the name must be a string/],
      [() => table("t", {}, { key: "id" as never }), /1 to 256 fields/],
      [
        () =>
          table("t", Object.fromEntries(Array.from({ length: 257 }, (_, n) => [`f${n}`, u32()])), {
            key: "f0",
          }),
        /1 to 256 fields/,
      ],
      [() => table("t", { id: "u32" as never }, { key: "id" as never }), /field id has no type/],
      [
        () => table("t", { id: u32 as never }, { key: "id" as never }),
        /field id has no type, as in u32\(\)/,
      ],
      [() => table("t", { id: u32() }, {} as never), /which field is the key/],
      [() => table("t", { id: u32() }, undefined as never), /which field is the key/],
      [() => table("t", { id: u32() }, { key: [] }), /which field is the key/],
      [() => table("t", { id: u32() }, { key: "no" as never }), /"no" does not exist/],
      [() => table("t", { id: u32() }, { key: ["id", "id"] }), /names a field twice/],
      [
        () => table("t", { id: f64() }, { key: "id" as never }),
        /f64 field id cannot be part of a key/,
      ],
      [() => table("t", { id: json() }, { key: "id" as never }), /json field id cannot/],
      [() => table("t", { id: pointer() }, { key: "id" as never }), /pointer field id cannot/],
      [
        () =>
          table(
            "t",
            Object.fromEntries([
              ["__proto__", u32()],
              ["id", u32()],
            ]),
            { key: "id" },
          ),
        /__proto__/,
      ],
      [() => str(0), /from 1 to 1048576/],
      [() => str(1.5), /whole number of bytes/],
      [() => bytes(MIB + 1), /from 1 to 1048576/],
      [() => str("9" as never), /whole number/],
    ];
    for (const [make, message] of cases) {
      expect(failureSync("SITU_SCHEMA", make).message).toMatch(message);
    }
  });

  it("256 of them are the most, and the largest schema has 64 KiB", async () => {
    const path = stores.folder();
    const many = Array.from({ length: 256 }, (_, n) =>
      table(`t${n}`, { id: u32(), n: u32() }, { key: "id" }),
    );
    const db = await stores.open({ path, tables: many, memoryBytes: 32 * MIB });
    for (const [n, each] of many.entries()) db.transactSync((tx) => tx.put(each, { id: 1, n }));
    for (const [n, each] of many.entries()) expect(db.get(each, 1)?.n).toBe(n);
    const one = table("one too many", { id: u32() }, { key: "id" });
    const full = await failure("SITU_FULL", () => stores.open({ path, tables: [one] }));
    expect(full.message).toMatch(/256 tables/);
    const wordy = table(
      "wordy",
      Object.fromEntries(
        Array.from({ length: 256 }, (_, n) => [`${"field".repeat(60)}${n}`, u32()]),
      ),
      { key: `${"field".repeat(60)}0` },
    );
    await failure("SITU_TOO_LARGE", () => stores.open({ tables: [wordy] }));
    expect(db.get(many[255], 1)?.n).toBe(255);
    expect(db.stats().executors.length).toBe(1);
  });
});

describe("open", () => {
  it("options that it does not know or understand", async () => {
    const path = stores.folder();
    const cases: [unknown, RegExp][] = [
      [undefined, /pass \{ path/],
      [null, /pass \{ path/],
      ["./folder", /pass \{ path/],
      [{}, /path must be the path of a folder/],
      [{ path: "" }, /path must be the path of a folder/],
      [{ path: 7 }, /path must be the path of a folder/],
      [{ path, memory: 1 }, /open has no option memory; did you mean memory(Bytes|Dir)\?/],
      [{ path, tables: User }, /tables must be a list/],
      [{ path, tables: ["user"] }, /what table\(\) returns/],
      [{ path, tables: [undefined] }, /what table\(\) returns/],
      [
        { path, tables: [User, table("user", { id: u32() }, { key: "id" })] },
        /two tables are named user/,
      ],
      [{ path, memoryBytes: 1 }, /from 8388608 to/],
      [{ path, memoryBytes: 1.5e7 + 0.5 }, /whole number/],
      [{ path, memoryBytes: 2 ** 60 }, /whole number from/],
      [{ path, memoryBytes: "16" }, /whole number/],
      [{ path, sharing: "everyone" }, /"processes" or "threads"/],
      [{ path, timeoutMs: -1 }, /timeoutMs/],
    ];
    for (const [options, message] of cases) {
      const error = await failure("SITU_CONFIG", () => open(options as OpenOptions));
      expect(error.message).toMatch(message);
    }
    const db: Database = await stores.open({ path, tables: [User] });
    expect(db.get(User, 1)).toBeUndefined();
  });

  it("destroy of what is no store does nothing", async () => {
    const path = stores.folder();
    await destroy(path);
    await destroy(`${path}/not/there`);
  });
});

describe("calls that make no sense", () => {
  it("bodies, options and keys of the wrong type, in both kinds of transaction", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [User] });
    const body = (): number => 1;
    for (const wrong of [5, undefined, "body", {}]) {
      failureSync("SITU_TYPE", () => db.transactSync(wrong as never));
      await failure("SITU_TYPE", () => db.transact(wrong as never));
    }
    const wrongOptions = [5, null, { timeout: 5 }, { timeoutMs: "5" }, { timeoutMs: Number.NaN }];
    for (const wrong of wrongOptions) {
      failureSync("SITU_CONFIG", () => db.transactSync(body, wrong as never));
      await failure("SITU_CONFIG", () => db.transact(body, wrong as never));
    }
    const { signal } = new AbortController();
    failureSync("SITU_CONFIG", () => db.transactSync(body, { signal } as never));
    const error = await failure("SITU_CONFIG", () =>
      db.transact(body, { signal: new AbortController() as never }),
    );
    expect(error.message).toMatch(/controller\.signal/);
    for (const wrong of [5, undefined, "ab"]) {
      failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.getMany(User, wrong as never)));
    }
    // Nothing of this has left anything behind.
    expect(db.transactSync(body)).toBe(1);
    await db.close();
    await destroy(path);
  });

  it("one path for threads and for processes", async () => {
    const first = stores.folder();
    await stores.open({ path: first, tables: [User] });
    const among = await failure("SITU_CONFIG", () => open({ path: first, sharing: "threads" }));
    expect(among.message).toMatch(/processes share/);
    const second = stores.folder();
    await stores.open({ path: second, tables: [User], sharing: "threads" });
    const between = await failure("SITU_CONFIG", () => open({ path: second }));
    expect(between.message).toMatch(/threads of this process only/);
  });
});
