/** sharing: "threads": the same store over SharedArrayBuffers, for the threads of one process. */

import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import { i64, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, MIB, temporaryStores } from "../helpers/store.ts";
import { runChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), owner: str(), balance: i64() }, { key: "id" });

const threads = (path: string): Promise<Database> =>
  stores.open({ path, tables: [Account], sharing: "threads", memoryBytes: 16 * MIB });

describe("a store of threads", () => {
  it("works like any other, and touches no file", async () => {
    const path = `${stores.folder()}/nothing-is-made-here`;
    const db = await threads(path);
    for (let id = 0; id < 2_000; id++) {
      db.transactSync((tx) => tx.put(Account, { id, owner: "x".repeat(id), balance: BigInt(id) }));
    }
    for (let id = 0; id < 2_000; id += 7) expect(db.get(Account, id)?.owner.length).toBe(id);
    const second = await threads(path);
    expect(second.get(Account, 77)?.balance).toBe(77n);
    second.transactSync((tx) => tx.delete(Account, 77));
    expect(db.get(Account, 77)).toBeUndefined();
    expect(db.stats().executors.length).toBe(2);
    expect(existsSync(path)).toBe(false);
    await second.close();
    await db.close();
    await destroy(path);
    const empty = await threads(path);
    expect(empty.get(Account, 1)).toBeUndefined();
    await empty.close();
    await destroy(path);
  });

  it("worker threads find it through the environment data", async () => {
    const { result, error, stderr } = await runChild(
      stores,
      `
      const { Worker } = await import("node:worker_threads");
      const { open, table, u32, i64 } = situ;
      const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
      const options = { path: data.path, tables: [Account], sharing: "threads", memoryBytes: 16 << 20 };
      const db = await open(options);
      db.transactSync((tx) => { for (let id = 0; id < 4; id++) tx.put(Account, { id, balance: 100n }); });
      const code = \`
        const { parentPort } = require("node:worker_threads");
        (async () => {
          const { open, table, u32, i64 } = await import(\${JSON.stringify(data.situ)});
          const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
          const db = await open({ path: \${JSON.stringify(data.path)}, tables: [Account], sharing: "threads" });
          for (let n = 0; n < 3000; n++) {
            db.transactSync((tx) => {
              const from = tx.get(Account, n % 4), to = tx.get(Account, (n + 1) % 4);
              tx.update(Account, from.id, { balance: from.balance - 1n });
              tx.update(Account, to.id, { balance: to.balance + 1n });
            });
          }
          await db.close();
          parentPort.postMessage("done");
        })();\`;
      const workers = [0, 1, 2].map(() => new Worker(code, { eval: true, execArgv: [] }));
      const done = Promise.all(workers.map((worker) => new Promise((resolve, reject) => {
        worker.on("message", resolve);
        worker.on("error", reject);
      })));
      let sums = 0;
      let finished = false;
      done.finally(() => { finished = true; });
      while (!finished) {
        const rows = db.transactSync((tx) => tx.getMany(Account, [0, 1, 2, 3]));
        if (rows.reduce((sum, row) => sum + row.balance, 0n) !== 400n) throw new Error("the sum is wrong");
        sums++;
        await new Promise((resolve) => setImmediate(resolve));
      }
      const said = await done;
      const { commits } = db.stats().counters;
      await db.close();
      return { said, sums: sums > 0, commits: commits >= 9001 };`,
      {
        path: `${stores.folder()}/threads`,
        situ: new URL("../../dist/src/index.js", import.meta.url).href,
      },
    );
    expect({ result, error, stderr }).toEqual({
      result: { said: ["done", "done", "done"], sums: true, commits: true },
      error: undefined,
      stderr: "",
    });
  });

  it("a worker that finds none is told what to do", async () => {
    const path = `${stores.folder()}/none`;
    const worker = startWorker(
      stores,
      `const db = await situ.open({ path: data.path, sharing: "threads" }); await db.close();`,
      { path },
    );
    const error = await worker.result.catch(
      (reason: unknown) => reason as Error & { code: string },
    );
    expect(error).toMatchObject({ code: "SITU_UNSUPPORTED" });
    expect((error as Error).message).toMatch(/open the store in the main thread before/);
  });

  it("32 executors are the most; one that closes makes room; nothing is left open", async () => {
    const path = `${stores.folder()}/full`;
    // A folder of its own for files that come and go: other tests have theirs in the common one.
    const temporary = stores.folder();
    vi.stubEnv("TMPDIR", temporary);
    const handles: Database[] = [];
    stores.later(async () => {
      for (const db of handles) await db.close();
      await destroy(path);
      vi.unstubAllEnvs();
    });
    const options = { path, tables: [Account], sharing: "threads", memoryBytes: 16 * MIB } as const;
    for (let n = 0; n < 32; n++) handles.push(await open(options));
    const before = readdirSync("/proc/self/fd").length;
    for (let round = 0; round < 5; round++) {
      const error = await failure("SITU_FULL", () => open(options));
      expect(error.message).toMatch(/all 32 slots/);
    }
    expect(readdirSync("/proc/self/fd").length).toBe(before);
    await handles.pop()!.close();
    handles.push(await open(options));
    handles[31].transactSync((tx) => tx.put(Account, { id: 1, owner: "", balance: 1n }));
    expect(handles[0].get(Account, 1)?.balance).toBe(1n);
    expect(tmpdir()).toBe(temporary);
    expect(readdirSync(temporary)).toEqual([]);
  });

  it("destroy while it is open is refused", async () => {
    const path = `${stores.folder()}/busy`;
    const db = await threads(path);
    db.transactSync((tx) => tx.put(Account, { id: 1, owner: "", balance: 1n }));
    await failure("SITU_IN_USE", () => destroy(path));
    const second = await threads(path);
    expect(second.get(Account, 1)?.balance).toBe(1n);
  });

  it("another schema is refused as in any store", async () => {
    const path = `${stores.folder()}/schema`;
    await threads(path);
    const Other = table("account", { id: u32() }, { key: "id" });
    await failure("SITU_SCHEMA", () => open({ path, tables: [Other], sharing: "threads" }));
  });
});
