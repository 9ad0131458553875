/** The commands as processes: what they say, to people and as JSON, and how they end. */

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { memoryRoot } from "../../benchmarks/harness/guard/guard.ts";
import { COMMANDS, SHOWN_NAMES } from "../../src/cli/commands.ts";
import { commandHelp, generalHelp } from "../../src/cli/help.ts";
import { jsonLines, Place } from "./run.ts";
import { ACCOUNTS, Account, makeBank, openBank } from "./store.ts";

let place: Place;

beforeEach(() => {
  place = new Place();
});

afterEach(async () => {
  await place.end();
});

describe("help and version", () => {
  test.each([[[]], [["--help"]]])("%j", async (args) => {
    const { code, stdout, stderr } = await place.situ(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(`${generalHelp()}\n`);
    for (const name of SHOWN_NAMES) expect(stdout).toContain(`situ ${name} `);
    expect(stdout).toContain("130  stopped by SIGINT");
    expect(stdout).not.toContain("demo-teller");
  });

  test("of a command, in both ways to ask for it", async () => {
    const { code, stdout } = await place.situ(["serve", "--port", "1", "--help"]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: `${commandHelp("serve")}\n` });
    expect((await place.situ(["help", "shell"])).stdout).toBe(`${commandHelp("shell")}\n`);
  });

  test.each(SHOWN_NAMES)("%s has help with all options and examples", (name) => {
    const text = commandHelp(name);
    const { options, examples } = COMMANDS[name];
    for (const key of Object.keys(options)) {
      const flag = key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      expect(text).toContain(key === "password" ? "SITU_PASSWORD" : `--${flag}`);
    }
    expect(examples.length).toBeGreaterThan(0);
    for (const [line] of examples) expect(text).toContain(line);
    // Fits a terminal.
    for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(120);
  });

  test("as JSON", async () => {
    const [all] = jsonLines((await place.situ(["help", "--json"])).stdout) as {
      commands: { name: string; options: { flag: string | null; environment: string }[] }[];
    }[];
    expect(all.commands.map(({ name }) => name)).toEqual(SHOWN_NAMES);
    const serve = all.commands.find(({ name }) => name === "serve")!;
    expect(serve.options).toContainEqual(
      expect.objectContaining({ flag: null, environment: "SITU_PASSWORD" }),
    );
    const { version } = JSON.parse(
      readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
    ) as { version: string };
    expect((await place.situ(["--version"])).stdout).toBe(`${version}\n`);
    expect(jsonLines((await place.situ(["--version", "--json"])).stdout)).toEqual([
      { situ: version, node: process.version },
    ]);
  });
});

describe("mistakes end with 2, and one line that says what is right", () => {
  test.each([
    [["srve"], "situ: unknown command srve; did you mean serve? (SITU_CONFIG)"],
    [["--verson"], "did you mean --version?"],
    [["help", "srve"], "did you mean serve?"],
    [["serve", "--pot", "1"], "situ serve: unknown flag --pot; did you mean --port?"],
    [["serve"], "missing --path DIR"],
    [["verify", "--path", "nowhere"], "there is no store at"],
    [["backup", "--path", "nowhere", "--to", "x"], "there is no store at"],
    [["shell", "--path", "nowhere"], "there is no store at"],
    [["inspect", "--path", "nowhere"], "there is no store at"],
    [["inspect", "--path", ".", "--records"], "there is no store at"],
    [["restore", "--path", "x", "--from", "nowhere"], "nowhere"],
    [
      ["restore", "--path", "x", "--from", "y", "--at", "noon"],
      "a time such as 2026-11-15T18:30:00Z",
    ],
    [["bench", "--rows", "1"], "from 1000"],
    [["node"], "missing --config node.json"],
  ])("%j", async (args, why) => {
    const { code, stdout, stderr } = await place.situ(args);
    expect(stderr).toContain(why);
    expect({ code, stdout, lines: stderr.split("\n").length }).toEqual({
      code: 2,
      stdout: "",
      lines: 2,
    });
    expect(stderr).not.toContain("    at ");
    // None of them has made a store.
    expect(
      readdirSync(place.folder).filter((name) =>
        existsSync(join(place.folder, name, "store.json")),
      ),
    ).toEqual([]);
  });

  test.each([[["srve"]], [["serve", "--pot", "1"]], [["verify", "--path", "nowhere"]]])(
    "%j as JSON",
    async (args) => {
      const { code, stdout, stderr } = await place.situ([...args, "--json"]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(jsonLines(stderr)).toEqual([
        { error: { code: "SITU_CONFIG", message: expect.any(String) } },
      ]);
    },
  );

  test("a stack only for those who ask for it", async () => {
    const { stderr } = await place.situ(["serve"], { SITU_DEBUG: "1" });
    expect(stderr).toContain("    at ");
  });

  test("a wrong key in situ.config.json stops every command", async () => {
    writeFileSync(place.file("situ.config.json"), '{"serve": {"prot": 1}}');
    const { code, stderr } = await place.situ(["doctor"]);
    expect(code).toBe(2);
    expect(stderr).toContain("did you mean port?");
    // But not help.
    expect((await place.situ(["help"])).code).toBe(0);
  });
});

describe("on a store", () => {
  test("options from the configuration and the environment reach the command", async () => {
    await makeBank(place.store());
    writeFileSync(place.file("situ.config.json"), '{"path": "store", "verify": {"json": true}}');
    const { code, stdout } = await place.situ(["verify"]);
    expect(code).toBe(0);
    expect(jsonLines(stdout)).toMatchObject([{ isSound: true }]);
    const elsewhere = await place.situ(["verify"], { SITU_PATH: "nowhere" });
    expect(elsewhere.stderr).toContain("nowhere");
  });

  test("verify: sound, then not", async () => {
    const path = place.store();
    await makeBank(path, "lazy");
    const sound = await place.situ(["verify", "--path", path]);
    expect({ code: sound.code, stderr: sound.stderr }).toEqual({ code: 0, stderr: "" });
    expect(sound.stdout).toContain(
      `table   account: ${ACCOUNTS} rows; byOwner ${ACCOUNTS} entries`,
    );
    expect(sound.stdout).toContain("sound");
    const [checkpoint] = readdirSync(join(path, "checkpoints"));
    truncateSync(join(path, "checkpoints", checkpoint), 100);
    const damaged = await place.situ(["verify", "--path", path]);
    expect(damaged.code).toBe(3);
    expect(damaged.stdout).toContain(`fault   checkpoints/${checkpoint}`);
    const asJson = await place.situ(["verify", "--path", path, "--json"]);
    expect(asJson.code).toBe(3);
    expect(jsonLines(asJson.stdout)).toMatchObject([
      {
        path,
        isSound: false,
        problems: expect.arrayContaining([expect.stringContaining(checkpoint)]),
      },
    ]);
  });

  test("inspect: the store, a table, files", async () => {
    const path = place.store();
    await makeBank(path, "lazy");
    const { code, stdout, stderr } = await place.situ(["inspect", "--path", path]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/account +150 .*id +ordered +byOwner/);
    expect(stdout).toMatch(/commits +\d/);
    const [store] = jsonLines((await place.situ(["inspect", "--path", path, "--json"])).stdout);
    expect(store).toMatchObject({ path, memory: { limitBytes: 32 * 2 ** 20 } });
    expect((store as { tables: { rows: number }[] }).tables.map(({ rows }) => rows)).toEqual([
      150, 2, 1, 3,
    ]);

    const table = await place.situ(["inspect", "--path", path, "--table", "account"]);
    expect(table.stdout).toMatch(/structure +kind btree/);
    const none = await place.situ(["inspect", "--path", path, "--table", "acount"]);
    expect(none.code).toBe(1);
    expect(none.stderr).toContain("(SITU_UNKNOWN_TABLE)");
    const both = await place.situ(["inspect", "--path", path, "--table", "a", "--file", "b"]);
    expect(both.code).toBe(2);

    for (const folder of ["log", "checkpoints"]) {
      for (const name of readdirSync(join(path, folder))
        .filter((name) => name !== "end")
        .slice(-1)) {
        const file = `${folder}/${name}`;
        const records = folder === "log" ? ["--records"] : [];
        const shown = await place.situ(["inspect", "--path", path, "--file", file, ...records]);
        expect({ code: shown.code, stderr: shown.stderr }, file).toEqual({ code: 0, stderr: "" });
        expect(shown.stdout).toContain(file);
        const asJson = await place.situ(["inspect", "--path", path, "--file", file, "--json"]);
        expect(jsonLines(asJson.stdout)).toMatchObject([{ name: file, damage: [] }]);
      }
    }
    const missing = await place.situ(["inspect", "--path", path, "--file", "log/none"]);
    expect(missing.code).toBe(2);
  });

  test("backup and restore, while others have it open", async () => {
    const path = place.store();
    await makeBank(path, "lazy");
    const db = await openBank(path, "lazy");
    try {
      db.transactSync((tx) => tx.update(Account, 1, { balance: 77n }));
      const copied = await place.situ(["backup", "--path", path, "--to", "copy", "--json"]);
      expect(copied.code, copied.stderr).toBe(0);
      expect(jsonLines(copied.stdout)).toMatchObject([
        { path, to: place.file("copy"), damage: [], closedAt: expect.stringMatching(/Z$/) },
      ]);
      const again = await place.situ(["backup", "--path", path, "--to", "copy"]);
      expect(again.code).not.toBe(0);
      expect(again.stderr).toMatch(/^situ backup: .*\(SITU_[A-Z_]+\)\n$/);
    } finally {
      await db.close();
    }
    const restored = await place.situ([
      "restore",
      "--from",
      "copy",
      "--path",
      place.store("second"),
    ]);
    expect(restored.code, restored.stderr).toBe(0);
    expect(restored.stdout).toContain("restored ");
    const found = await place.situ([
      "shell",
      "--path",
      "second",
      "--execute",
      "get account 1",
      "--json",
    ]);
    expect(jsonLines(found.stdout)).toMatchObject([{ id: 1, balance: "77" }]);
    const taken = await place.situ(["restore", "--from", "copy", "--path", "second"]);
    expect(taken.code).toBe(2);
    expect(taken.stderr).toContain("there is already a store at");
    const early = ["--at", "2001-01-01T00:00:00Z"];
    const past = await place.situ(["restore", "--from", "copy", "--path", "third", ...early]);
    expect(past.code).not.toBe(0);
    expect(existsSync(place.file("third/store.json"))).toBe(false);
  });

  test("watch: what another process does, from a position on, until it is told to stop", async () => {
    const path = place.store();
    await makeBank(path, "lazy");
    const watching = place.start([
      "watch",
      "--path",
      path,
      "--table",
      Account.name,
      "--limit",
      "2",
    ]);
    const db = await openBank(path, "lazy");
    try {
      // Until it watches, nothing is recorded: the same change again.
      let told = false;
      const ended = watching.ended().finally(() => {
        told = true;
      });
      while (!told) {
        db.transactSync((tx) => tx.update(Account, 7, { note: { told } }));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const { code, stdout, stderr } = await ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      const [first, second] = jsonLines(stdout) as { position: string }[];
      expect(first).toMatchObject({ type: "update", table: Account.name, key: 7 });
      const since = ["--since", first.position, "--limit", "1"];
      const again = await place.situ(["watch", "--path", path, "--table", Account.name, ...since]);
      expect(jsonLines(again.stdout)).toEqual([second]);
      const stop = await place.situ(["watch", "--path", path, "--table", Account.name, "--stop"]);
      expect(stop.stdout).toContain("no longer recorded");
      const late = await place.situ(["watch", "--path", path, "--table", Account.name, ...since]);
      expect(late.code).toBe(1);
      expect(late.stderr).toContain("SITU_GAP");
    } finally {
      await db.close();
    }
  });

  test("a store without a log has no backup", async () => {
    await makeBank(place.store());
    const { code, stderr } = await place.situ(["backup", "--path", "store", "--to", "copy"]);
    expect(code).toBe(2);
    expect(stderr).toContain("the store has no log");
  });
});

describe("on this machine", () => {
  const leftovers = (): string[] =>
    readdirSync(memoryRoot()).filter((name) => name.startsWith("situ-doctor-"));

  test("bench measures, and leaves nothing", async () => {
    const memory = place.file("memory");
    mkdirSync(memory);
    const args = ["bench", "--rows", "1000", "--path", "."];
    const { code, stdout, stderr } = await place.situ([...args, "--json"], {
      SITU_MEMORY_DIR: memory,
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [result] = jsonLines(stdout) as { results: { name: string; perSecond: number }[] }[];
    expect(result.results.map(({ name }) => name)).toEqual(["get", "put", "transfer", "scan"]);
    for (const { perSecond } of result.results) expect(perSecond).toBeGreaterThan(0);
    expect(readdirSync(memory)).toEqual([]);
    expect(readdirSync(place.folder)).toEqual(["memory"]);
  });

  test("demo: the sum holds though a process is killed", async () => {
    const memory = place.file("memory");
    mkdirSync(memory);
    const env = { SITU_MEMORY_DIR: memory, TMPDIR: place.folder };
    const args = ["demo", "--seconds", "1", "--tellers", "3", "--json"];
    const { code, stdout, stderr } = await place.situ(args, env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const [result] = jsonLines(stdout) as {
      ok: boolean;
      sum: { before: string; after: string };
      transfers: number;
      marks: number;
      tellers: { pid: number; transfers: number }[];
      killed: { pid: number };
    }[];
    expect(result).toMatchObject({ ok: true, sum: { before: "1000000", after: "1000000" } });
    expect(result.marks).toBe(2 * result.transfers);
    expect(result.tellers.map(({ pid }) => pid)).toContain(result.killed.pid);
    expect(result.tellers).toHaveLength(3);
    for (const { transfers } of result.tellers) expect(transfers).toBeGreaterThan(0);
    expect(readdirSync(memory)).toEqual([]);
    expect(readdirSync(place.folder)).toEqual(["memory"]);
    for (const { pid } of result.tellers) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });

  test("demo and bench are stopped by Ctrl-C, with nothing left", async () => {
    for (const args of [
      ["demo", "--seconds", "30"],
      ["bench", "--seconds", "30"],
    ]) {
      const memory = place.file(`memory-${args[0]}`);
      mkdirSync(memory);
      const started = place.start(args, { SITU_MEMORY_DIR: memory, TMPDIR: place.folder });
      // As soon as its store is there.
      while (readdirSync(memory).length === 0) await new Promise((go) => setImmediate(go));
      if (args[0] === "demo") await started.says(/the sum holds/);
      started.child.kill("SIGINT");
      const { code, stderr } = await started.ended();
      expect({ code, stderr }).toEqual({
        code: 130,
        stderr: `situ ${args[0]}: interrupted (SITU_ABORTED)\n`,
      });
      expect(readdirSync(memory)).toEqual([]);
      rmSync(memory, { recursive: true });
      expect(readdirSync(place.folder)).toEqual([]);
    }
  });

  test("doctor: what is well, and what to do about what is not", async () => {
    const well = await place.situ(["doctor", "--path", "store"]);
    expect(well.code, well.stdout).toBe(0);
    expect(well.stdout).toMatch(/^ok +FFI /m);
    expect(well.stdout).toMatch(/^ok +file locks /m);
    expect(well.stdout).toMatch(/^(ok|warning) +large pages /m);
    const asJson = await place.situ(["doctor", "--path", "store", "--json"]);
    const [{ ok, checks }] = jsonLines(asJson.stdout) as {
      ok: boolean;
      checks: { check: string; status: string; advice: string }[];
    }[];
    expect(ok).toBe(true);
    expect(checks.every(({ status }) => ["ok", "warning"].includes(status))).toBe(true);
    expect(leftovers()).toEqual([]);
    expect(readdirSync(place.folder)).toEqual([]);

    const sick = await place.situ(["doctor", "--json"], { SITU_MEMORY_DIR: "/nowhere" });
    expect(sick.code).toBe(1);
    expect(jsonLines(sick.stdout)).toMatchObject([
      {
        ok: false,
        checks: expect.arrayContaining([
          expect.objectContaining({
            status: "failed",
            advice: expect.stringContaining("SITU_MEMORY_DIR"),
          }),
        ]),
      },
    ]);
    writeFileSync(place.file("file"), "");
    const file = await place.situ(["doctor", "--path", "file/store"]);
    expect(file.code).toBe(1);
    expect(file.stdout).toMatch(/^failed .*is a file/m);
  });
});
