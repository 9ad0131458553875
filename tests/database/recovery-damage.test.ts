/**
 * docs/FAULTS.md, "Disk", on real files: torn tails are cut; any other damage is told with file and byte, and
 * never passed over or read as data; a damaged checkpoint is no loss as long as there is another.
 */

import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import type { Damage } from "../../src/folder/files.ts";
import type { LogBatch } from "../../src/log/segments/segment-reader.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import {
  batchesOf,
  copyOfDisk,
  filesIn,
  flipBit,
  identityOf,
  loseMemory,
} from "../helpers/logged-stores.ts";
import { failure, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32(), text: str() }, { key: "id" });
const put = (db: Database, id: number, value = id): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value, text: `text ${id}` }));

const made = (path: string): Promise<Database> =>
  open({ path, tables: [Cell], memoryBytes: 8 * MIB, durability: "sync" });
const again = (path: string): Promise<Database> => stores.open({ path, tables: [Cell] });

/** A store with rows 1 to `rows`, each in a batch of its own, closed, its memory gone. */
async function lostStore(rows: number): Promise<string> {
  const path = stores.folder();
  const db = await made(path);
  for (let id = 1; id <= rows; id++) put(db, id);
  await db.close();
  loseMemory(path);
  return path;
}

const ids = (db: Database): number[] =>
  db
    .scan(Cell)
    .toArray()
    .map(({ id }) => id)
    .sort((a, b) => a - b);

const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

/** Opening fails with SITU_CORRUPT about this file; nothing is changed, neither there nor elsewhere. */
async function expectCorrupt(path: string, file: string): Promise<Damage> {
  const before = ["log", "checkpoints"].map((folder) =>
    filesIn(path, folder as "log").map((name) => readFileSync(join(path, folder, name))),
  );
  const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
  const [damage] = error.cause as Damage[];
  expect(error.message).toContain(`${path}/${file}, byte ${damage.offset}: ${damage.what}`);
  expect(damage.file).toBe(file);
  const after = ["log", "checkpoints"].map((folder) =>
    filesIn(path, folder as "log").map((name) => readFileSync(join(path, folder, name))),
  );
  expect(after, "nothing was changed").toEqual(before);
  return damage;
}

describe("the tail of the log", () => {
  /** The log as a power loss leaves it: its last segment has its room, and no end. */
  async function lostInFlight(rows: number): Promise<{ path: string; file: string }> {
    const path = stores.folder();
    const db = await made(path);
    for (let id = 1; id <= rows; id++) put(db, id);
    const copy = copyOfDisk(stores, path);
    await db.close();
    const last = batchesOf(copy).at(-1)!;
    return { path: copy, file: last.file };
  }

  it("room that was not used is no damage", async () => {
    const { path, file } = await lostInFlight(5);
    expect(statSync(join(path, file)).size).toBeGreaterThan(MIB);
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(5));
    expect(db.recovered?.cut).toBeUndefined();
  });

  it.each<[string, (content: Buffer, batch: LogBatch) => void]>([
    ["the header of the last batch alone", (bytes, { payloadAt }) => bytes.fill(0, payloadAt)],
    [
      "half of its payload",
      (bytes, { payloadAt, payloadBytes }) => bytes.fill(0, payloadAt + payloadBytes / 2),
    ],
    ["its payload without its header", (bytes, { offset }) => bytes.fill(0, offset, offset + 48)],
    ["garbage in its place", (bytes, { offset }) => bytes.fill(0xa5, offset, offset + 200)],
    [
      "a flipped bit in it",
      (bytes, { payloadAt }) => bytes.writeUInt8(bytes[payloadAt] ^ 4, payloadAt),
    ],
  ])("a torn write is cut: %s", async (_, tear) => {
    const { path, file } = await lostInFlight(5);
    const batches = batchesOf(path);
    const last = batches.at(-1)!;
    const content = readFileSync(join(path, file));
    tear(content, last);
    writeFileSync(join(path, file), content);
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(4));
    const { cut, damage, epoch } = db.recovered!;
    expect(cut).toMatchObject({ file, offset: last.offset });
    expect(cut?.what).not.toBe("");
    expect(damage).toEqual([]);
    expect(epoch).toBe(batches.at(-2)!.last);
    // It goes on behind what was cut, and neither comes back.
    put(db, 50);
    await db.close();
    loseMemory(path);
    const third = await again(path);
    expect(ids(third)).toEqual([...upTo(4), 50]);
    expect(third.recovered?.cut).toBeUndefined();
  });

  it("a segment that had just been made is no end and no damage", async () => {
    const path = await lostStore(4);
    const names = filesIn(path, "log");
    const next = `${String(Number.parseInt(names.at(-1)!, 10) + 1).padStart(10, "0")}.log`;
    writeFileSync(join(path, "log", next), new Uint8Array(MIB));
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(4));
    put(db, 5);
    await db.close();
    loseMemory(path);
    expect(ids(await again(path))).toEqual(upTo(5));
  });

  it("a file of another kind in the log's folder is nobody's business", async () => {
    const path = await lostStore(2);
    writeFileSync(join(path, "log", "README"), "hands off");
    writeFileSync(join(path, "log", "1.log"), "hands off");
    expect(ids(await again(path))).toEqual(upTo(2));
  });
});

describe("damage in the log", () => {
  it("a flipped bit in the middle: with file and byte", async () => {
    const path = await lostStore(12);
    const [, , , fourth] = batchesOf(path);
    for (const offset of [fourth.offset + 8, fourth.offset + 20, fourth.payloadAt + 6]) {
      const file = join(path, fourth.file);
      flipBit(file, offset);
      const damage = await expectCorrupt(path, fourth.file);
      expect(damage.offset).toBe(fourth.offset);
      flipBit(file, offset);
    }
    expect(ids(await again(path))).toEqual(upTo(12));
  });

  it("at the end of a segment that was closed in good order", async () => {
    const path = await lostStore(5);
    const last = batchesOf(path).at(-1)!;
    flipBit(join(path, last.file), last.payloadAt);
    expect((await expectCorrupt(path, last.file)).offset).toBe(last.offset);
    flipBit(join(path, last.file), last.payloadAt);
    const fd = openSync(join(path, last.file), "r+");
    ftruncateSync(fd, last.offset + 60);
    closeSync(fd);
    expect((await expectCorrupt(path, last.file)).offset).toBe(last.offset);
  });

  it("a head of a segment that cannot be read", async () => {
    const path = await lostStore(5);
    const { file } = batchesOf(path)[0];
    for (const offset of [0, 12, 40, HEAD_BYTES / 4]) {
      flipBit(join(path, file), offset);
      expect((await expectCorrupt(path, file)).offset).toBeLessThan(HEAD_BYTES);
      flipBit(join(path, file), offset);
    }
    expect(ids(await again(path))).toEqual(upTo(5));
  });

  it("what follows a damaged batch is never read, however sound it is", async () => {
    const path = await lostStore(12);
    const batches = batchesOf(path);
    const file = join(path, batches[5].file);
    const content = readFileSync(file);
    content.copy(content, batches[5].offset, batches[6].offset);
    content.fill(0, content.length - (batches[6].offset - batches[5].offset));
    writeFileSync(file, content);
    const { offset } = await expectCorrupt(path, batches[5].file);
    expect(offset).toBe(batches[5].offset);
  });
});

describe("parts that are missing", () => {
  /** Rows 1 to 6 in segments of their own. */
  async function manySegments(): Promise<string> {
    const path = stores.folder();
    for (let id = 1; id <= 6; id++) {
      const db = await made(path);
      put(db, id);
      await db.close();
    }
    return path;
  }

  it("a segment in the middle: named, with nothing read behind it", async () => {
    const path = await manySegments();
    loseMemory(path);
    const names = [...new Set(batchesOf(path).map(({ file }) => file))];
    expect(names.length).toBeGreaterThanOrEqual(6);
    for (const name of [names[1], names[3]]) {
      renameSync(join(path, name), join(path, "aside"));
      const damage = await expectCorrupt(path, name);
      expect(damage).toMatchObject({ offset: 0, what: "the segment is missing" });
      renameSync(join(path, "aside"), join(path, name));
    }
    expect(ids(await again(path))).toEqual(upTo(6));
  });

  it("the first segments, with no checkpoint in their place", async () => {
    const path = await manySegments();
    loseMemory(path);
    const names = filesIn(path, "log");
    rmSync(join(path, "log", names[0]));
    rmSync(join(path, "log", names[1]));
    const damage = await expectCorrupt(path, `log/${names[1]}`);
    expect(damage.offset).toBe(0);
  });

  it("one of another store's", async () => {
    const [path, other] = [await manySegments(), await manySegments()];
    loseMemory(path);
    const name = filesIn(path, "log")[3];
    copyFileSync(join(other, "log", name), join(path, "log", name));
    const damage = await expectCorrupt(path, `log/${name}`);
    expect(damage.what).toMatch(/another/);
  });

  it("the whole log, where there was one", async () => {
    const path = await lostStore(3);
    renameSync(join(path, "log"), join(path, "log.aside"));
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    expect(error.message).toMatch(/log\/0000000001.log, byte 0: the log is missing/);
    renameSync(join(path, "log.aside"), join(path, "log"));
    expect(ids(await again(path))).toEqual(upTo(3));
  });

  it("the whole log, with a checkpoint that needs it", async () => {
    const path = stores.folder();
    const db = await made(path);
    put(db, 1);
    await db.checkpoint();
    put(db, 2);
    await db.close();
    loseMemory(path);
    renameSync(join(path, "log"), join(path, "log.aside"));
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    expect(error.message).toMatch(/log\/0000000001.log, byte 0: the log is missing/);
    renameSync(join(path, "log.aside"), join(path, "log"));
    expect(ids(await again(path))).toEqual([1, 2]);
  });

  it("store.json: a log that nobody knows is not mixed with a new one", async () => {
    const path = stores.folder();
    const db = await made(path);
    put(db, 1);
    await db.close();
    const memory = memoryOf(path);
    const file = join(path, "store.json");
    renameSync(file, join(path, "aside"));
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/no store\.json/);
    await failure("SITU_CORRUPT", () => open({ path, durability: "none" }));
    renameSync(join(path, "aside"), file);
    expect(memoryOf(path)).toBe(memory);
    const back = await again(path);
    expect(ids(back)).toEqual([1]);
  });

  it("the log while the memory is there: the store goes on, and says at a reboot what is missing", async () => {
    const path = stores.folder();
    const first = await made(path);
    put(first, 1);
    await first.close();
    rmSync(join(path, "log"), { recursive: true });
    const second = await made(path);
    expect(ids(second)).toEqual([1]);
    put(second, 2);
    await second.close();
    const copy = copyOfDisk(stores, path);
    await failure("SITU_CORRUPT", () => open({ path: copy, tables: [Cell] }));
    // Memory is whole, and a checkpoint of it makes the disk whole again.
    const third = await made(path);
    await third.checkpoint();
    await third.checkpoint();
    await third.close();
    loseMemory(path);
    expect(ids(await again(path))).toEqual([1, 2]);
  });

  it("a log of another id", async () => {
    const path = await lostStore(2);
    const identity = identityOf(path);
    const logId = [...identity.logId!].reverse().join("");
    writeFileSync(join(path, "store.json"), JSON.stringify({ ...identity, logId }));
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    expect(error.message).toMatch(/log\/0000000001.log.*another store/);
  });
});

describe("in a process of its own", () => {
  it("says on the command line what is wrong, and exits with the error", async () => {
    const path = await lostStore(6);
    const [, second] = batchesOf(path);
    flipBit(join(path, second.file), second.payloadAt + 2);
    const { error } = await runChild(stores, "await situ.open({ path: data.path });", { path });
    expect(error?.code).toBe("SITU_CORRUPT");
    expect(error?.message).toContain(`${path}/${second.file}, byte ${second.offset}`);
  });
});
