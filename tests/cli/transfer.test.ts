/** dump and load as processes: what they print, and a load that is killed again and again. */

import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { open, str, table, u32 } from "../../src/index.ts";
import { jsonLines, Place } from "./run.ts";
import { ACCOUNTS, makeBank, TABLES } from "./store.ts";

let place: Place;

beforeEach(() => {
  place = new Place();
});

afterEach(async () => {
  await place.end();
});

test("a bank goes out and comes back, to people and as JSON", async () => {
  const [path, copy] = [place.store(), place.store("copy")];
  await makeBank(path);
  const dumped = await place.situ(["dump", "--path", path, "--to", "text"]);
  expect(dumped).toMatchObject({ code: 0, stderr: "" });
  expect(dumped.stdout).toContain(`account: ${ACCOUNTS} rows`);
  const loaded = await place.situ(["load", "--from", "text", "--path", copy, "--json"]);
  expect(jsonLines(loaded.stdout)).toMatchObject([
    { path: copy, tables: TABLES.map(({ name }) => ({ name, skipped: 0 })) },
  ]);
  const printed = await place.situ(["dump", "--path", copy, "--table", "word", "--format", "csv"]);
  expect(printed).toMatchObject({ code: 0, stdout: "text,n\nhello,1\nhelp me,2\nworld,3\n" });
  const words = readFileSync(join(place.folder, "text", "word.jsonl"), "utf8");
  expect((await place.situ(["dump", "--path", path, "--table", "word"])).stdout).toBe(words);
});

test("mistakes are told with file and line, and what to do", async () => {
  const path = place.store();
  await makeBank(path);
  writeFileSync(place.file("more.csv"), "text,n\nnew,1\nhello,2\n");
  const load = ["load", "--from", "more.csv", "--path", path, "--table", "word"];
  const taken = await place.situ(load);
  expect(taken.code).not.toBe(0);
  expect(taken.stderr).toMatch(/more\.csv, line 3: .*hello/);
  expect((await place.situ([...load, "--on-conflict", "skip"])).stdout).toContain("1 row skipped");
  expect((await place.situ(["dump", "--path", path])).stderr).toContain("--to DIR");
  const nowhere = ["dump", "--path", path, "--to", "x", "--table", "nothing"];
  expect((await place.situ(nowhere)).stderr).toContain('no table "nothing"');
});

test("a load that is killed goes on with the first row that is missing", async () => {
  const path = place.store();
  const Visit = table("visit", { id: u32(), page: str(60) }, { key: "id" });
  const empty = await open({
    path,
    tables: [Visit],
    durability: "none",
    memoryBytes: 32 * 2 ** 20,
  });
  await empty.close();
  const rows = 40_000;
  const file = place.file("visits.jsonl");
  const lines = Array.from({ length: rows }, (_, id) => `{"id":${id},"page":"/pages/${id}"}\n`);
  writeFileSync(file, lines.join(""));
  await using db = await open({ path, tables: [Visit] });
  const load = ["load", "--from", file, "--path", path, "--table", "visit"];
  let kills = 0;
  for (let before = 0; kills < 3; ) {
    const started = place.start(load);
    const isOver = once(started.child, "close");
    // Killed as soon as it has loaded something: rows that were there would fail with SITU_EXISTS.
    while (db.count(Visit) === before && started.child.exitCode === null) await setTimeout(1);
    started.child.kill("SIGKILL");
    await isOver;
    if (started.child.exitCode !== null) break;
    kills++;
    before = db.count(Visit);
  }
  const { code, stderr } = await place.situ(load);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(kills).toBeGreaterThan(0);
  expect(db.count(Visit)).toBe(rows);
  expect((await db.verify()).problems).toEqual([]);
});
