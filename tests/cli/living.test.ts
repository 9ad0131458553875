/** The commands for the life of a store: resize, ps, destroy, clean, and what the doctor says of it. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryFolder, readIdentity } from "../../src/folder/store-files.ts";
import { open } from "../../src/index.ts";
import { jsonLines, Place } from "./run.ts";
import { makeBank, openBank } from "./store.ts";

const MIB = 2 ** 20;
let place: Place;

beforeEach(() => {
  place = new Place();
});

afterEach(async () => {
  await place.end();
});

async function resultOf(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { code, stdout, stderr } = await place.situ([...args, "--json"], env);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return jsonLines(stdout)[0] as Record<string, unknown>;
}

describe("resize", () => {
  test("larger and smaller, while it is open; wrong sizes are refused", async () => {
    const path = place.store();
    const db = await open({ path, memoryBytes: 8 * MIB, durability: "none" });
    try {
      const { code, stdout } = await place.situ(["resize", "--path", path, "--memory", "24MiB"]);
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: `${path} has 24 MiB for rows and indexes (it had 8 MiB)\n`,
      });
      expect(db.stats().memory.limitBytes).toBe(24 * MIB);
      const args = ["resize", "--path", path, "--memory"];
      expect(await resultOf([...args, "16m"])).toEqual({
        path,
        before: 24 * MIB,
        memoryBytes: 16 * MIB,
        grows: false,
      });
      expect(await resultOf([...args, "auto"])).toMatchObject({ grows: true });
      const wrong = await place.situ([...args, "much"]);
      expect(wrong.code).toBe(2);
      expect(wrong.stderr).toContain("a size such as 64MiB");
      expect((await place.situ([...args, "1MiB"])).code).toBe(2);
    } finally {
      await db.close();
    }
  });
});

describe("ps", () => {
  test("nobody, then this process with its log, and a stopped one", async () => {
    const path = place.store();
    await makeBank(path);
    expect((await place.situ(["ps", "--path", path])).stdout).toBe(`no process has ${path} open\n`);
    const db = await openBank(path);
    const shell = place.start(["shell", "--path", path]);
    try {
      let openers: { pid: number; role: string; state: string; command: string; since: string }[];
      const look = async (): Promise<typeof openers> =>
        (await resultOf(["ps", "--path", path])).openers as typeof openers;
      do openers = await look();
      while (!openers.some(({ pid }) => pid === shell.child.pid));
      const mine = openers.find(({ pid, role }) => pid === process.pid && role === "application")!;
      expect(mine.state).toBe("idle");
      expect(mine.command).toContain("node");
      expect(Date.parse(mine.since)).toBeGreaterThan(Date.now() - 3_600_000);
      shell.child.kill("SIGSTOP");
      const stopped = (await look()).find(({ pid }) => pid === shell.child.pid)!;
      expect(stopped.state).toBe("stopped");
      expect(stopped.command).toContain("shell");
      const table = (await place.situ(["ps", "--path", path])).stdout;
      expect(table).toMatch(/pid +thread +slot +since +role +state +command/);
      expect(table).toMatch(new RegExp(`^ *${process.pid} .* application +idle`, "m"));
      const doctor = (await place.situ(["doctor", "--path", path])).stdout;
      expect(doctor).toMatch(/warning +open in +2 processes, one of them stopped/);
    } finally {
      shell.child.kill("SIGKILL");
      await db.close();
    }
  });
});

describe("destroy", () => {
  test("asks, refuses while it is open and says where, and deletes", async () => {
    const path = place.store();
    await makeBank(path);
    const unasked = await place.situ(["destroy", "--path", path]);
    expect(unasked.code).toBe(2);
    expect(unasked.stderr).toContain("give --yes");
    const db = await openBank(path);
    try {
      const refused = await place.situ(["destroy", "--path", path, "--yes"]);
      expect(refused.code).toBe(1);
      expect(refused.stderr).toMatch(
        new RegExp(`is open in process ${process.pid} \\(.*node.*\\) \\(SITU_IN_USE\\)`),
      );
    } finally {
      await db.close();
    }
    const memory = memoryFolder(readIdentity(path)!);
    expect(await resultOf(["destroy", "--path", path, "--yes"])).toEqual({ path, destroyed: true });
    expect(existsSync(memory)).toBe(false);
    expect((await place.situ(["destroy", "--path", path, "--yes"])).code).toBe(2);
  });
});

describe("clean", () => {
  interface Cleaned {
    memories: { folder: string; status: string; path: string; hasLog: boolean }[];
    removed: string[];
  }

  test("finds memory whose folder is gone, and removes nothing else", async () => {
    const memoryDir = place.file("memory");
    mkdirSync(memoryDir);
    const env = { SITU_MEMORY_DIR: memoryDir };
    const made = async (name: string, durability: "lazy" | "none"): Promise<string> => {
      const path = place.store(name);
      await (await open({ path, memoryDir, memoryBytes: 8 * MIB, durability })).close();
      return path;
    };
    const [kept, gone, moved] = [
      await made("kept", "lazy"),
      await made("gone", "lazy"),
      await made("moved", "none"),
    ];
    const inUse = await open({
      path: place.store("used"),
      memoryDir,
      memoryBytes: 8 * MIB,
    });
    const clean = async (...args: string[]): Promise<Cleaned> =>
      (await resultOf(["clean", ...args], env)) as unknown as Cleaned;
    try {
      expect((await clean()).memories.map(({ status }) => status).sort()).toEqual([
        "closed",
        "closed",
        "closed",
        "in use",
      ]);
      const goneMemory = memoryFolder(readIdentity(gone)!);
      rmSync(gone, { recursive: true });
      renameSync(moved, `${moved}-elsewhere`);
      renameSync(place.store("used"), place.store("used-elsewhere"));
      const found = await clean();
      expect(found.removed).toEqual([]);
      const orphans = found.memories.filter(({ status }) => status === "orphaned");
      expect(orphans.map(({ path, hasLog }) => [path, hasLog]).sort()).toEqual([
        [gone, true],
        [moved, false],
      ]);
      const shown = await place.situ(["clean"], env);
      expect(shown.stdout).toMatch(/orphaned .* of .*gone\n/);
      expect(shown.stdout).toMatch(/without a log \(--unlogged\)/);
      expect(shown.stdout).toMatch(/found 1 orphaned memory .*Nothing was removed/);
      const doctor = (await place.situ(["doctor"], env)).stdout;
      expect(doctor).toMatch(/warning +orphaned memory +.* of 2 stores whose folder is gone/);
      expect((await clean("--yes")).removed).toEqual([goneMemory]);
      expect(readdirSync(memoryDir)).toHaveLength(3);
      // One that was moved is found again as soon as it is opened where it is.
      await (await open({ path: `${moved}-elsewhere` })).close();
      place.store("moved-elsewhere");
      expect((await clean("--yes", "--unlogged")).removed).toEqual([]);
      rmSync(`${moved}-elsewhere`, { recursive: true });
      expect((await clean("--yes", "--unlogged")).removed).toHaveLength(1);
      expect(existsSync(memoryFolder(readIdentity(kept)!))).toBe(true);
      expect((await place.situ(["clean", "--yes", "--dry-run"], env)).code).toBe(2);
    } finally {
      await inUse.close();
    }
    await (await open({ path: place.store("used-elsewhere") })).close();
  });
});
