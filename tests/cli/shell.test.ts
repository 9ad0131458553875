/** `situ shell` as a process: scripts, pipes, JSON, and at a terminal. */

import { execFileSync, spawn } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Screen } from "../../src/cli/screen.ts";
import { runLine } from "../../src/cli/work/shell/run.ts";
import { ShellSession } from "../../src/cli/work/shell/session.ts";
import { CLI, jsonLines, Place, Started } from "./run.ts";
import { ACCOUNTS, makeBank, openBank, Word } from "./store.ts";

let place: Place;

beforeEach(async () => {
  place = new Place();
  await makeBank(place.store());
});

afterEach(async () => {
  await place.end();
});

const shell = (lines: string, more: readonly string[] = []) =>
  place.situ(["shell", "--path", "store", "--execute", lines, ...more]);

describe("--execute", () => {
  test("rows as tables", async () => {
    const { code, stdout, stderr } = await shell("scan account from 9 to 11; get seat 12 3");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe(
      [
        "id  balance  note  owner",
        "──  ───────  ────  ───────",
        " 9      90n  null  owner 4",
        "10     100n  null  owner 0",
        "11     110n  null  owner 1",
        "(3 rows)",
        "flight  12",
        "row     3",
        "who     ada",
        "",
      ].join("\n"),
    );
  });

  test("rows as lines of JSON, and one line for everything else", async () => {
    const { stdout } = await shell(
      `scan account after 9 before 12; count account; get word nothing; get blob plain;
       put word {text: "new", n: 4}; delete word new; delete word new; begin; rollback`,
      ["--json"],
    );
    expect(jsonLines(stdout)).toEqual([
      { id: 10, balance: "100", note: null, owner: "owner 0" },
      { id: 11, balance: "110", note: null, owner: "owner 1" },
      { count: ACCOUNTS },
      null,
      { key: "0x706c61696e", value: "0x00ff1b", n: "9223372036854775808", f: 1.5, b: true },
      { did: "put" },
      { did: "delete" },
      { did: "nothing" },
      { did: "begin" },
      { did: "rollback" },
    ]);
  });

  test("ranges, indexes, orders and limits", async () => {
    const scans = [
      "scan account reverse limit 2",
      'scan account index byOwner "owner 3" limit 3',
      'scan account index byOwner from "owner 4" limit 1',
      "scan account index byOwner prefix owner limit 1",
      "scan account limit 0",
    ];
    const rows = jsonLines((await shell(scans.join(";"), ["--json"])).stdout);
    expect(rows.map((row) => (row as { id: number }).id)).toEqual([149, 148, 3, 8, 13, 4, 0]);
    const all = await shell("scan account", ["--json"]);
    expect(jsonLines(all.stdout)).toHaveLength(ACCOUNTS);
    expect((await shell("scan account", ["--limit", "7"])).stdout).toContain(
      "(the first 7 rows; use limit N for more)",
    );
    const { stdout } = await shell(
      'scan word prefix hel; get seat index byWho grace; count account index byOwner "owner 1"',
      ["--json"],
    );
    expect(jsonLines(stdout)).toEqual([
      { text: "hello", n: 1 },
      { text: "help me", n: 2 },
      { flight: 12, row: 4, who: "grace" },
      { count: 30 },
    ]);
  });

  test("values of all kinds go in and come out", async () => {
    const { code, stdout, stderr } = await shell(
      `put blob {key: 0x00ff, value: "a\\x00b", n: 18446744073709551615, f: -1e300, b: false}
       get blob 0x00ff
       put account {id: 1, owner: 'it\\'s "me"', balance: -9223372036854775808n,
                    note: {deep: [1, {a: null}]}}
       get account 1`,
      ["--json"],
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(jsonLines(stdout)).toEqual([
      { did: "put" },
      { key: "0x00ff", value: "0x610062", n: "18446744073709551615", f: -1e300, b: false },
      { did: "put" },
      {
        id: 1,
        owner: 'it\'s "me"',
        balance: "-9223372036854775808",
        note: { deep: [1, { a: null }] },
      },
    ]);
  });

  test("what is shown as JSON can be put again", async () => {
    const first = (await shell("get blob plain", ["--json"])).stdout.trim();
    const { stdout } = await shell(`delete blob plain; put blob ${first}; get blob plain`, [
      "--json",
    ]);
    expect(stdout.trim().split("\n").at(-1)).toBe(first);
  });

  const WRONG: readonly [line: string, code: string, why: string][] = [
    ["gett account 1", "SITU_TYPE", "unknown statement gett; did you mean get?"],
    ["get acount 1", "SITU_UNKNOWN_TABLE", "no table acount; did you mean account?"],
    ["get", "SITU_TYPE", "a table name is missing"],
    ["get account", "SITU_TYPE", "the key of account must be id, not nothing"],
    ["get account 1 2", "SITU_TYPE", "the key of account must be id"],
    ["get account x", "SITU_TYPE", "put x in quotes"],
    ["get account 'x'", "SITU_TYPE", "expected"],
    ["scan account fron 1", "SITU_TYPE", "did you mean from?"],
    ["scan account limit x", "SITU_TYPE", "limit must be an integer"],
    ["scan account index byOwnr", "SITU_UNKNOWN_INDEX", "did you mean byOwner?"],
    ["scan seat from 1", "SITU_TYPE", "hashed"],
    ["put account {id: 1}", "SITU_TYPE", "account.note"],
    ["put account {id: 1, ownr: 2}", "SITU_TYPE", "did you mean owner?"],
    ["put account", "SITU_TYPE", "write the row as"],
    ["insert word {text: 'hello', n: 1}", "SITU_EXISTS", "hello"],
    ["update word nobody {n: 1}", "SITU_MISSING", "nobody"],
    ["update word hello {text: 'x'}", "SITU_TYPE", "part of the key"],
    ["commit", "SITU_CLOSED", "no transaction to commit"],
    ["repeat", "SITU_CLOSED", "no transaction to repeat"],
    ["tables please", "SITU_TYPE", "please is unexpected: tables"],
  ];

  test("a wrong statement says what would be right", async () => {
    const screen = new Screen(true);
    const options = { path: place.store(), screen, mostRows: 100, transactionMs: 10_000 };
    const session = await ShellSession.open(options);
    try {
      for (const [line, code, why] of WRONG) {
        const failure = await runLine(line, session, new AbortController().signal).then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(failure, line).toMatchObject({ code, message: expect.stringContaining(why) });
      }
      session.begin();
      expect(() => session.begin()).toThrow(expect.objectContaining({ code: "SITU_NESTED" }));
    } finally {
      await session.close();
    }
  });

  test("the first error ends a script with 1, and nothing behind it is run", async () => {
    const { code, stdout, stderr } = await shell(
      'count word; gett x; put word {text: "after", n: 9}',
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: "3\n" });
    expect(stderr).toBe("situ shell: unknown statement gett; did you mean get? (SITU_TYPE)\n");
    const asJson = await shell("gett x; count word", ["--json"]);
    expect({ code: asJson.code, stdout: asJson.stdout }).toEqual({ code: 1, stdout: "" });
    expect(jsonLines(asJson.stderr)).toMatchObject([{ error: { code: "SITU_TYPE" } }]);
    await using db = await openBank(place.store());
    expect(db.get(Word, "after")).toBeUndefined();
  });

  test.each([
    ["put word {text: 'x'", "a bracket or quote is not closed: put word {text: 'x' (SITU_TYPE)"],
    [
      "begin; put word {text: 'x', n: 1}",
      "ended inside a transaction: it was rolled back (SITU_ABORTED)",
    ],
  ])("%s at the end fails, too", async (lines, why) => {
    const { code, stderr } = await shell(lines);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^situ shell: [^\n]+\n$/);
    expect(stderr).toContain(why);
    await using db = await openBank(place.store());
    expect(db.get(Word, "x")).toBeUndefined();
  });

  test("tables, describe, stats, inspect, verify and help", async () => {
    const lines = "tables; describe account; stats; inspect account; verify; help; help scan";
    const { code, stdout, stderr } = await shell(lines);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/seat +flight, row +hashed +3 +byWho/);
    expect(stdout).toContain("index byOwner: ordered on owner");
    expect(stdout).toMatch(/commits +\d/);
    expect(stdout).toContain("sound");
    expect(stdout).toContain("begin");
    const asJson = jsonLines((await shell(lines, ["--json"])).stdout);
    expect(asJson).toHaveLength(7);
    expect(asJson[1]).toMatchObject({ name: "account", key: ["id"], fields: { owner: "str(24)" } });
  });
});

describe("from a pipe", () => {
  test("statements run as they come, over several lines, with comments", async () => {
    const started = place.start(["shell", "--path", "store", "--json"]);
    started.child.stdin!.write("# what is there\ncount word\nput word {\n  text: 'x',\n");
    await started.says(/"count":3/);
    started.child.stdin!.write("  n: 7\n}\nget word x\n");
    await started.says(/"n":7/);
    started.child.stdin!.end("begin\ndelete word x\ncommit\nexit\nnonsense\n");
    const { code, stderr } = await started.ended();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(jsonLines((await shell("get word x", ["--json"])).stdout)).toEqual([null]);
  });

  test("Ctrl-C ends it with 130, a reader that has seen enough with 0", async () => {
    const started = place.start(["shell", "--path", "store"]);
    started.child.stdin!.write("begin\ndelete word hello\n");
    await started.says(/deleted/);
    started.child.kill("SIGINT");
    expect((await started.ended()).code).toBe(130);
    expect((await shell("count word", ["--json"])).stdout).toContain("3");
    const lines = "scan account;".repeat(50);
    const command =
      `"${process.execPath}" "${CLI}" shell --path store --execute "${lines}" | head -1; ` +
      "echo $" +
      "{PIPESTATUS[0]}";
    const out = execFileSync("bash", ["-c", command], { cwd: place.folder, encoding: "utf8" });
    expect(out).toMatch(/^ *id .*\n0\n$/);
  });
});

/** util-linux has `script`, which gives a process a terminal. */
function hasScript(): boolean {
  try {
    return execFileSync("script", ["--version"], { encoding: "utf8" }).includes("util-linux");
  } catch {
    return false;
  }
}

/** The last of the line: `script` starts a shell, which starts what we mean. */
function youngest(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  return children === "" ? pid : youngest(Number(children.split(" ")[0]));
}

describe.skipIf(!hasScript())("at a terminal", () => {
  function terminal(history: string): Started {
    const command = `stty cols 60; "${process.execPath}" "${CLI}" shell --path store`;
    const child = spawn("script", ["-qec", command, "/dev/null"], {
      cwd: place.folder,
      env: {
        ...process.env,
        SITU_HISTORY: history,
        NO_COLOR: "1",
        TERM: "xterm",
        SHELL: "/bin/bash",
      },
    });
    return new Started(child);
  }

  test("completes, remembers, survives errors and Ctrl-C, leaves with Ctrl-D", async () => {
    const history = place.file("history");
    writeFileSync(history, "count word\n", { mode: 0o600 });
    const started = terminal(history);
    const type = (text: string): void => void started.child.stdin!.write(text);
    await started.says(/Type help or exit/);
    await started.says(/store> /);
    // The history of the last time.
    type("\x1b[A\r");
    await started.says(/^3\r$/m);
    // Tab.
    type("get acc\t");
    await started.says(/get account /);
    type("12\r");
    await started.says(/balance +120n/);
    // An error is told, and the shell goes on.
    type("nonsense\r");
    await started.says(/unknown statement nonsense/);
    // Ctrl-C takes back what was typed, and says how to leave.
    type("delete word hello\x03");
    type("\x03");
    await started.says(/type exit or Ctrl-D/);
    // A statement over two lines, in a transaction.
    type("begin\r");
    await started.says(/store\*> /);
    type("put word {text: 'typed',\r");
    await started.says(/\.\.\. /);
    type("n: 5}\r");
    await started.says(/put\r/);
    type("commit\r");
    await started.says(/committed \(1 statement\)/);
    // Others are first: it is told, and repeated.
    type("begin\r");
    type("get word hello\rput word {text: 'second', n: 6}\r");
    await started.says(/put\r[\s\S]*put\r/);
    {
      await using db = await openBank(place.store());
      db.transactSync((tx) => tx.update(Word, "hello", { n: 100 }));
    }
    type("commit\r");
    await started.says(/Statements with a different result now:\r\n {2}get word hello\r/);
    type("repeat\r");
    await started.says(/n +100\r[\s\S]*transaction open again/);
    type("commit\r");
    await started.says(/committed \(2 statements\)/);
    // As many rows as a person reads.
    type("scan account\r");
    await started.says(/\(the first 100 rows; use limit N for more\)/);
    type("\x04");
    expect((await started.ended()).code).toBe(0);
    const { stdout } = await shell("get word typed; get word hello; get word second", ["--json"]);
    expect(jsonLines(stdout)).toMatchObject([{ n: 5 }, { n: 100 }, { n: 6 }]);
    const remembered = readFileSync(history, "utf8").split("\n");
    expect(remembered).toContain("get account 12");
    expect(remembered).not.toContain("delete word hello");
    expect(statSync(history).mode & 0o077).toBe(0);
    // Nothing was wider than the terminal.
    for (const line of started.stdout.split("\r\n")) {
      if (/^[\w ]+$/.test(line)) expect(line.length).toBeLessThanOrEqual(60);
    }
  });

  test("SIGTERM ends it, and an open transaction is gone", async () => {
    const started = terminal("");
    await started.says(/store> /);
    started.child.stdin!.write("begin\rdelete word hello\r");
    await started.says(/deleted/);
    process.kill(youngest(started.child.pid!), "SIGTERM");
    // As `script` passes it on.
    expect((await started.ended()).code).toBe(143);
    expect(jsonLines((await shell("get word hello", ["--json"])).stdout)).toMatchObject([{ n: 1 }]);
  });
});
