/**
 * Paths, options and surroundings that cannot be: each gets a SituError with a code, and none changes
 * anything. What depends on the process, such as Node's permission model, is tried in a child.
 */

import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { destroy, open } from "../../src/database/open.ts";
import { backup, inspect, restore, verify } from "../../src/database/store-tools.ts";
import { serve } from "../../src/gateways/serve.ts";
import { AssertionError } from "../../src/runtime/assert.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { coded, systemError } from "../../src/runtime/system-errors.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Count = table("count", { id: u32(), n: u32() }, { key: "id" });
const ROOT = join(import.meta.dirname, "../..");

/** A folder with everything in it that a path should not be. */
function badPaths(): Record<string, unknown> {
  const folder = stores.folder();
  const at = (name: string): string => join(folder, name);
  writeFileSync(at("file"), "x");
  symlinkSync(at("nowhere/at/all"), at("dangling"));
  symlinkSync(at("loop"), at("loop"));
  mkdirSync(at("odd"));
  mkdirSync(at("odd/store.json"));
  mkdirSync(at("looped"));
  symlinkSync(at("looped/store.json"), at("looped/store.json"));
  return {
    "a NUL": "a\0b",
    empty: "",
    "no string": 7,
    "a Buffer": Buffer.from("x"),
    "a URL": pathToFileURL(folder),
    nothing: undefined,
    symbol: Symbol("path"),
    "a file": at("file"),
    "below a file": at("file/below"),
    "a link to nowhere": at("dangling/below"),
    "a link to itself": at("loop"),
    "below a link to itself": at("loop/below"),
    "a name that is too long": at("x".repeat(300)),
    "a path that is too long": at("x/".repeat(3_000)),
    "/proc/self": "/proc/self",
    "/proc": "/proc",
    "/dev/null": "/dev/null",
    "a folder where store.json is one": at("odd"),
    "a folder where store.json is a link to itself": at("looped"),
  };
}

describe("paths", () => {
  it("all calls", async () => {
    const good = await stores.open({ tables: [Count], durability: "lazy" });
    for (const [name, path] of Object.entries(badPaths())) {
      const calls: Record<string, () => Promise<unknown>> = {
        open: () => open({ path: path as string, durability: "none", memoryBytes: 2 ** 24 }),
        "open, with a log": () => open({ path: path as string, memoryBytes: 2 ** 24 }),
        verify: () => verify(path as string),
        inspect: () => inspect(path as string, { table: "count" }),
        "backup from": () => backup(path as string, stores.folder()),
        "backup to": () => good.backup(path as string),
        "restore from": () => restore(path as string, join(stores.folder(), "new")),
        "restore to": () => restore(good.path, path as string),
      };
      for (const [call, run] of Object.entries(calls)) {
        const error: unknown = await run().then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        expect(error, `${call}: ${name}`).toBeInstanceOf(SituError);
      }
      // There may be nothing to destroy; but nothing else may come out of it either.
      const error: unknown = await destroy(path as string).catch((thrown: unknown) => thrown);
      if (error !== undefined) expect(error, `destroy: ${name}`).toBeInstanceOf(SituError);
    }
    good.transactSync((tx) => tx.put(Count, { id: 1, n: 1 }));
    expect((await good.verify()).problems).toEqual([]);
  });

  it("of the memory", async () => {
    for (const memoryDir of ["a\0b", "", 7, "/proc/self", "/dev/null", "/proc/nothing/here"]) {
      const path = stores.folder();
      const error: unknown = await open({ path, memoryDir: memoryDir as string }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error, String(memoryDir)).toBeInstanceOf(SituError);
    }
  });

  it("store.json that nobody can understand", async () => {
    for (const text of ["", "{", "[]", "null", '{"id":7}', "\0".repeat(100)]) {
      const path = stores.folder();
      writeFileSync(join(path, "store.json"), text);
      await failure("SITU_CORRUPT", () => open({ path }));
      expect(readFileSync(join(path, "store.json"), "utf8")).toBe(text);
      // destroy() refuses it, too.
      rmSync(join(path, "store.json"));
    }
  });
});

describe("options that do not exist", () => {
  it("are named, with the one that was meant", async () => {
    const db = await stores.open({ tables: [Count], durability: "lazy" });
    const path = stores.folder();
    const wrong = (options: object): never => options as never;
    const cases: [() => Promise<unknown>, RegExp][] = [
      [() => restore(db.path, path, wrong({ too: new Date() })), /restore has no option too/],
      [() => restore(db.path, path, wrong({ memorydir: "x" })), /did you mean memoryDir\?/],
      [() => restore(db.path, path, wrong(7 as never)), /the options are an object/],
      [() => backup(db.path, path, wrong({ sginal: 1 })), /backup.*did you mean signal\?/],
      [() => verify(db.path, wrong({ onprogress: 1 })), /verify.*did you mean onProgress\?/],
      [() => inspect(db.path, wrong({ tabel: "count" })), /inspect.*did you mean table\?/],
      [() => inspect(db.path, undefined as never), /the options are an object/],
      [() => db.durable(wrong({ timeout: 1 })), /durable.*did you mean timeoutMs\?/],
      [() => db.backup(path, wrong({ signals: 1 })), /did you mean signal\?/],
      [() => db.verify(wrong({ most: 1 })), /verify has no option most/],
      [() => open(wrong({ path, memorybytes: 1 })), /did you mean memoryBytes\?/],
      [() => open(wrong({ connect: "x:1", secrets: 1 })), /did you mean secret\?/],
      [() => serve(wrong({ path, ports: 1 })), /serve.*did you mean port\?/],
      [() => db.transact(() => {}, wrong({ timeoutms: 1 })), /did you mean timeoutMs\?/],
      [
        () => db.transact((tx) => tx.alloc(8, wrong({ neer: 1 }))),
        /alloc has no option neer; did you mean near\?/,
      ],
    ];
    for (const [call, message] of cases) {
      // Some refuse before there is a promise.
      const error = await failure("SITU_CONFIG", async () => call());
      expect(error.message).toMatch(message);
    }
  });
});

describe("surroundings", () => {
  it("errors of the system have a code, and others stay as they are", async () => {
    for (const code of ["EMFILE", "EIO", "EBUSY", "ENOSYS", "ENODEV", "EINVAL", "EWHATEVER"]) {
      const cause = Object.assign(new Error(code), { code, syscall: "open" });
      expect(systemError(cause, "/x")).toBeInstanceOf(SituError);
      await expect(coded("/x", () => Promise.reject(cause))).rejects.toBeInstanceOf(SituError);
    }
    const mine = new TypeError("mine");
    await expect(coded("/x", () => Promise.reject(mine))).rejects.toBe(mine);
    const broken = new AssertionError("broken invariant: something");
    const error = await failure("SITU_CORRUPT", () => coded("/x", () => Promise.reject(broken)));
    expect(error.message).toMatch(/\/x is damaged.*something/);
  });

  /** What `open` fails with in a process of its own. */
  async function inChild(flags: string[], before = ""): Promise<string> {
    const path = stores.folder();
    const script = `
      ${before}
      const { open, SituError } = await import(${JSON.stringify(join(ROOT, "dist/situ.js"))});
      try {
        const db = await open({ path: ${JSON.stringify(path)}, memoryBytes: 2 ** 24 });
        await db.close();
        console.log("opened");
      } catch (error) {
        console.log(error instanceof SituError ? error.code + ": " + error.message : error.stack);
      }`;
    const run = promisify(execFile);
    const { stdout } = await run(process.execPath, [...flags, "--input-type=module", "-e", script]);
    return stdout;
  }

  it("Node's permission model", async () => {
    const [major] = process.versions.node.split(".").map(Number);
    const flag = major < 23 ? "--experimental-permission" : "--permission";
    expect(await inChild([flag, `--allow-fs-read=${ROOT}/*`])).toMatch(
      /^SITU_(PERMISSION|UNSUPPORTED): /,
    );
    expect(await inChild([flag, "--allow-fs-read=*"])).toMatch(/^SITU_PERMISSION: .*--allow-/);
  });

  it("no SharedArrayBuffer", async () => {
    expect(await inChild([], "delete globalThis.SharedArrayBuffer;")).toMatch(
      /^SITU_UNSUPPORTED: .*SharedArrayBuffer/,
    );
  });
});
