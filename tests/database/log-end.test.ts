/**
 * The end of the log on real files: a newest segment that is missing, empty or cut behind a batch is
 * damage, told by `open`, `verify`, `backup` and `restore`; so is a log that two memories have written.
 */

import { readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import { restore, verify } from "../../src/database/store-tools.ts";
import type { Damage } from "../../src/folder/files.ts";
import { endOf } from "../../src/log/segments/segment-reader.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import {
  batchesOf,
  copyOfDisk,
  filesIn,
  identityOf,
  loseMemory,
} from "../helpers/logged-stores.ts";
import { failure, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const ROWS = 200;

const made = (path: string): Promise<Database> =>
  open({ path, tables: [Cell], memoryBytes: 8 * MIB, durability: "sync", timeoutMs: 60_000 });

function fill(db: Database, from = 1, to = ROWS): void {
  for (let id = from; id <= to; id++) db.transactSync((tx) => tx.put(Cell, { id, value: id }));
}

const segments = (path: string): string[] =>
  filesIn(path, "log").filter((name) => name.endsWith(".log"));
const newest = (path: string): string => `log/${segments(path).at(-1)!}`;

/** Closed in good order, then the machine stopped. */
async function closedStore(opens: number): Promise<string> {
  const path = stores.folder();
  for (let i = 0; i < opens; i++) {
    const db = await made(path);
    fill(db, 1 + (i * ROWS) / opens, ((i + 1) * ROWS) / opens);
    await db.close();
  }
  loseMemory(path);
  return path;
}

/** Everybody tells the damage, with the file; nobody calls the store sound. */
async function expectRefused(path: string, file: string, offset: number): Promise<void> {
  const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
  const [damage] = error.cause as Damage[];
  expect(damage).toMatchObject({ file, offset });
  expect(error.message).toContain(`${path}/${file}, byte ${offset}`);
  const verified = await verify(path);
  expect(verified.isSound).toBe(false);
  expect(verified.problems.join("\n")).toContain(`${file}, byte ${offset}`);
  const copy = await failure("SITU_CORRUPT", () => restore(path, stores.folder()));
  expect(copy.message).toContain(file);
}

const harms: [string, (file: string) => void, number][] = [
  ["missing", (file) => rmSync(file), 0],
  ["empty", (file) => truncateSync(file, 0), 0],
  ["cut within its head", (file) => truncateSync(file, HEAD_BYTES / 2), 0],
  ["cut to its head", (file) => truncateSync(file, HEAD_BYTES), HEAD_BYTES],
];

describe("the newest segment, after a clean close", () => {
  for (const opens of [1, 4]) {
    for (const [what, harm, offset] of harms) {
      it(`${what}, of a store that was open ${opens} times`, async () => {
        const path = await closedStore(opens);
        const file = newest(path);
        harm(join(path, file));
        await expectRefused(path, file, offset);
      });
    }
  }

  it("cut behind a batch", async () => {
    const path = await closedStore(1);
    const batch = batchesOf(path).at(-2)!;
    truncateSync(join(path, batch.file), endOf(batch));
    await expectRefused(path, batch.file, endOf(batch));
  });

  it("of a backup", async () => {
    const path = stores.folder();
    const folder = join(stores.folder(), "backup");
    const db = await made(path);
    fill(db);
    await db.backup(folder);
    await db.close();
    expect((await restore(folder, stores.folder())).segments.length).toBeGreaterThan(0);
    truncateSync(join(folder, newest(folder)), HEAD_BYTES);
    await failure("SITU_CORRUPT", () => restore(folder, stores.folder()));
    rmSync(join(folder, newest(folder)));
    await failure("SITU_CORRUPT", () => restore(folder, stores.folder()));
  });

  it("of a restored store, before it is opened and after", async () => {
    const from = await closedStore(2);
    const path = stores.folder();
    await restore(from, path);
    const file = newest(path);
    const content = readFileSync(join(path, file));
    truncateSync(join(path, file), HEAD_BYTES);
    await expectRefused(path, file, HEAD_BYTES);
    writeFileSync(join(path, file), content);
    const db = await made(path);
    fill(db, ROWS + 1, ROWS + 10);
    await db.close();
    loseMemory(path);
    rmSync(join(path, newest(path)));
    await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
  });
});

describe("the newest segment, after the machine stopped", () => {
  async function stopped(): Promise<string> {
    const path = stores.folder();
    const db = await made(path);
    fill(db);
    const copy = copyOfDisk(stores, path);
    await db.close();
    return copy;
  }

  it("is read to its last batch", async () => {
    const path = await stopped();
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.scan(Cell).toArray().length).toBe(ROWS);
  });

  for (const [what, harm, offset] of harms) {
    it(`${what}`, async () => {
      const path = await stopped();
      const file = newest(path);
      harm(join(path, file));
      await expectRefused(path, file, offset);
    });
  }
});

describe("the record of the log's end", () => {
  it("is damaged or missing: the log is not called sound", async () => {
    const path = await closedStore(1);
    const file = join(path, "log/end");
    const content = readFileSync(file);
    writeFileSync(
      file,
      content.map((byte) => byte ^ 1),
    );
    await expectRefused(path, "log/end", 0);
    rmSync(file);
    await expectRefused(path, "log/end", 0);
    writeFileSync(file, content);
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.scan(Cell).toArray().length).toBe(ROWS);
  });
});

describe("two memories of one store", () => {
  /** A second identity on the same log: a memory of its own, as in a container with another /dev/shm. */
  function secondMemory(path: string): string {
    const other = stores.folder();
    const id = Buffer.from(other).toString("hex").slice(-24).padStart(24, "0");
    const { logId, logStarted, memoryDir } = identityOf(path);
    const createdAt = new Date(0).toISOString();
    const identity = { id, memoryDir, createdAt, logId, logStarted };
    writeFileSync(join(other, "store.json"), JSON.stringify(identity));
    for (const folder of ["log", "checkpoints"])
      symlinkSync(join(path, folder), join(other, folder));
    // The log belongs to the first folder.
    stores.later(() => {
      for (const folder of ["log", "checkpoints"]) rmSync(join(other, folder), { force: true });
    });
    return other;
  }

  it("that write one log at once: nobody calls it sound, nobody recovers from it", async () => {
    const path = stores.folder();
    const first = await made(path);
    fill(first, 1, 20);
    const other = secondMemory(path);
    const second = await open({
      path: other,
      tables: [Cell],
      durability: "sync",
      timeoutMs: 60_000,
    });
    fill(second, 21, 40);
    // The first one does not know: it goes on in its segment.
    fill(first, 41, 60);
    await second.close();
    // Now it finds the other's traces, and says so.
    await first.close();
    loseMemory(path);
    loseMemory(other);
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    const [a, b] = segments(path).slice(-2);
    expect(error.message).toContain("two memories of the store");
    expect(error.message).toContain(a);
    expect(error.message).toContain(b);
    const { isSound, problems } = await verify(path);
    expect(isSound).toBe(false);
    expect(problems.join("\n")).toContain("two memories of the store");
    await failure("SITU_CORRUPT", () => restore(path, stores.folder()));
  });

  it("one after the other is a recovery, and sound", async () => {
    const path = stores.folder();
    const first = await made(path);
    fill(first, 1, 20);
    await first.close();
    for (let i = 1; i < 4; i++) {
      loseMemory(path);
      const db = await made(path);
      fill(db, 1 + 20 * i, 20 + 20 * i);
      await db.close();
    }
    expect((await verify(path)).problems).toEqual([]);
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.scan(Cell).toArray().length).toBe(80);
  });

  it("the first one fails when it begins its next segment, and its memory is not made the base", async () => {
    const path = stores.folder();
    const first = await made(path);
    fill(first, 1, 20);
    const other = secondMemory(path);
    const second = await open({
      path: other,
      tables: [Cell],
      durability: "sync",
      timeoutMs: 60_000,
    });
    fill(second, 21, 40);
    await first.close();
    const error = await failure("SITU_CORRUPT", async () => {
      const db = await made(path);
      try {
        fill(db, 41, 42);
      } finally {
        await db.close().catch(() => {});
      }
      await made(path);
    });
    expect(error.message).toContain("two memories of the store");
    // Nor does the other go on, when it notices.
    await second.close();
    const { isSound } = await verify(other);
    expect(isSound).toBe(false);
  });
});
