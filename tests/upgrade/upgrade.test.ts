/**
 * Stores that earlier versions wrote, opened with this one. stores/ has them as archives; write-store.mjs says
 * what is in them.
 */

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync } from "node:zlib";
import { afterEach, describe, expect, it, vi } from "vitest";
import { open } from "../../src/database/open.ts";
import { restore, verify } from "../../src/database/store-tools.ts";
import { bootId } from "../../src/memory/boot.ts";
import { Control } from "../../src/memory/control.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { bytes, i64, json, str, u8, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { KILLED_AT_CALL } from "../helpers/killed-at-call.ts";
import { SOAK } from "../helpers/seed.ts";
import { failure, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
afterEach(() => void vi.restoreAllMocks());

const Account = table("account", { id: u32(), owner: str(24), balance: i64() }, { key: "id" });
const Seat = table(
  "seat",
  { flight: u32(), row: u8(), who: str(40) },
  { key: ["flight", "row"], layout: "buckets" },
);
const Order = table(
  "order",
  { id: u32(), customer: u32(), day: u32(), code: str(12), total: i64() },
  {
    key: "id",
    ordered: true,
    indexes: {
      byCustomer: { on: ["customer", "day"] },
      byCode: { on: ["code"], unique: true, kind: "hash" },
      byDay: { on: ["day"], kind: "hash" },
    },
  },
);
const Page = table(
  "page",
  { url: str(), body: bytes(), meta: json(), visits: u32() },
  { key: "url", ordered: true, indexes: { byVisits: { on: ["visits"] } } },
);
const tables = [Account, Seat, Order, Page];

const WORD_BOOT = 12;

/** Calls that change something on disk or in memory. */
const CHANGES = ["renameSync", "writeFileSync", "ftruncateSync", "rmSync"];

/** Opens the store, and kills itself at one of these calls. */
const CHILD = `${KILLED_AT_CALL}
  const db = await situ.open({ path: data.path });
  await db.close();`;

interface Unpacked {
  readonly path: string;
  readonly memoryDir: string;
  readonly control: string;
}

/** Makes the files of an archive look as if they had been written here, since this machine has started. */
function unpack(name: string): Unpacked {
  const folder = stores.folder();
  const archive = fileURLToPath(new URL(`stores/${name}.tar.br`, import.meta.url));
  const input = brotliDecompressSync(readFileSync(archive));
  execFileSync("tar", ["xS", "--strip-components=1", "-C", folder], { input });
  const [path, memoryDir] = [join(folder, "store"), join(folder, "memory")];
  stores.adopt(path);
  const { folder: _, ...identity } = JSON.parse(readFileSync(join(path, "store.json"), "utf8"));
  writeFileSync(join(path, "store.json"), JSON.stringify({ ...identity, memoryDir }));
  const memory = join(memoryDir, readdirSync(memoryDir)[0]);
  const control = join(memory, "control");
  const words = new Int32Array(Uint8Array.from(readFileSync(control)).buffer);
  words.set(bootId(), WORD_BOOT);
  writeFileSync(control, new Uint8Array(words.buffer));
  rmSync(join(memory, "seal"), { force: true });
  return { path, memoryDir, control };
}

/** All that write-store.mjs has written. */
async function expectWhole(path: string): Promise<void> {
  await using db = await open({ path, tables });
  const expected = { accounts: 300, seats: 300, orders: 240, pages: 300 };
  const [accounts, seats] = [db.count(Account), db.count(Seat)];
  const [orders, pages] = [db.count(Order), db.count(Page)];
  expect({ accounts, seats, orders, pages }).toEqual(expected);
  for (let i = 0; i < 300; i++) {
    const balance = i % 3 === 1 ? 5n : BigInt(i) * 1_000_000_007n;
    expect(db.get(Account, i)).toEqual({ id: i, owner: `owner ${i}`, balance });
    const seat = { flight: i % 7, row: i % 250, who: `passenger ${i}` };
    expect(db.get(Seat, [seat.flight, seat.row])).toEqual(seat);
    const order = {
      id: i,
      customer: i % 10,
      day: 20260101 + (i % 28),
      code: `C${i}`,
      total: BigInt(-i),
    };
    expect(db.get(Order, `C${i}`, { index: "byCode" })).toEqual(i % 5 === 2 ? undefined : order);
    const url = `https://example.org/${"x".repeat(i % 60)}/${i}`;
    expect(db.get(Page, url)).toMatchObject({ meta: { number: i }, visits: (i * 7919) % 1000 });
  }
  expect(db.scan(Order, { index: "byCustomer", eq: [3] }).toArray()).toHaveLength(30);
  expect((await db.verify()).problems).toEqual([]);
  // And it goes on.
  db.transactSync((tx) => tx.insert(Account, { id: 1_000, owner: "new", balance: 1n }));
  db.transactSync((tx) => tx.delete(Account, 1_000));
}

describe("a store of 0.1", () => {
  it("without a log, closed: its memory is brought forward", async () => {
    const { path, control } = unpack("0.1.0-none-close");
    await expectWhole(path);
    // It is the same memory, with regions as they were, and has room to grow now.
    expect(existsSync(control)).toBe(true);
    await using db = await open({ path, tables, memoryBytes: 48 * 2 ** 20 });
    db.transactSync((tx) => {
      for (let id = 1_000; id < 3_000; id++) tx.insert(Account, { id, owner: "x", balance: 0n });
    });
  });

  it("with a log, closed: restored from its files, as from a backup that was made then", async () => {
    const { path } = unpack("0.1.0-lazy-close");
    const folder = stores.folder();
    await restore(path, folder);
    await expectWhole(folder);
    expect((await verify(folder)).problems).toEqual([]);
  });

  it("with a log, closed: rebuilt from it", async () => {
    const { path } = unpack("0.1.0-lazy-close");
    await expectWhole(path);
    expect((await verify(path)).problems).toEqual([]);
  });

  it.each(["0.1.0-lazy-close", "0.1.0-lazy-kill"])("%s after a reboot", async (name) => {
    const { path, memoryDir } = unpack(name);
    for (const each of readdirSync(memoryDir)) rmSync(join(memoryDir, each), { recursive: true });
    await expectWhole(path);
    expect((await verify(path)).problems).toEqual([]);
  });

  it("left behind by a killed process: refused with the way out, and nothing is changed", async () => {
    const { path, control } = unpack("0.1.0-lazy-kill");
    const before = readFileSync(control);
    const error = await failure("SITU_LAYOUT", () => open({ path, tables }));
    expect(error.message).toContain("Open and close it once with that version");
    expect(readFileSync(control).equals(before)).toBe(true);
    // The other way that it names.
    rmSync(join(control, ".."), { recursive: true });
    await expectWhole(path);
  });

  it("of a later version: refused", async () => {
    const { path, control } = unpack("0.1.0-none-close");
    const words = new Int32Array(Uint8Array.from(readFileSync(control)).buffer);
    words[1] = 99;
    writeFileSync(control, new Uint8Array(words.buffer));
    const size = statSync(control).size;
    expect((await failure("SITU_LAYOUT", () => open({ path, tables }))).message).toContain("99");
    expect(statSync(control).size).toBe(size);
  });

  it("whoever dies while bringing it forward leaves the old memory or the new one", async () => {
    let kills = 0;
    // Every second change; with SITU_SOAK each.
    for (let at = 0; ; at += SOAK > 1 ? 1 : 2) {
      const { path } = unpack("0.1.0-none-close");
      const data = { path, at, changes: CHANGES, script: import.meta.url };
      const { signal, error } = await runChild(stores, CHILD, data, 60_000);
      if (signal !== "SIGKILL") {
        expect(error).toBeUndefined();
        break;
      }
      kills++;
      await using db = await open({ path, tables });
      expect(db.count(Account)).toBe(300);
      expect((await db.verify()).problems).toEqual([]);
    }
    expect(kills).toBeGreaterThan(5);
  });

  it("is caught by these checks if the old memory goes before the new one is complete", async () => {
    const { path } = unpack("0.1.0-none-close");
    const countOrError = (): Promise<number | string> =>
      open({ path, tables }).then(
        async (db) => {
          await using _ = db;
          return db.count(Account);
        },
        (error: SituError) => error.code,
      );
    vi.spyOn(Control.prototype, "publish").mockImplementation(() => {});
    expect(await countOrError()).not.toBe(300);
    vi.restoreAllMocks();
    // What the next opener finds, as after each kill above.
    expect(await countOrError()).not.toBe(300);
  });
});
