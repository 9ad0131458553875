/** The small parts that everything else is shown and read with: names, units, tables, progress. */

import { describe, expect, test } from "vitest";
import { failureOf, Interrupted } from "../../src/cli/failures.ts";
import { progressText } from "../../src/cli/progress.ts";
import { toJson } from "../../src/cli/screen.ts";
import { columnWidths, renderTable, truncated, widthOf } from "../../src/cli/text-table.ts";
import { durationOf, sizeOf } from "../../src/cli/units.ts";
import { distance, nearest } from "../../src/runtime/nearest.ts";
import { shownSize } from "../../src/runtime/units.ts";
import { check, fc } from "../helpers/property.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
describe("the nearest name", () => {
  test.each([
    ["prot", "port"],
    ["potr", "port"],
    ["hosts", "host"],
    ["PORT", "port"],
    ["metrics", "metricsPort"],
    ["xyzzy", undefined],
    ["a", undefined],
  ])("%s → %s", (wrong, right) => {
    expect(nearest(wrong, ["port", "host", "path", "metricsPort"])).toBe(right);
  });

  test("a distance is one: none to itself, the same both ways, never more than the longer", () => {
    const words = fc.string({ maxLength: 12 });
    check(
      fc.property(words, words, (a, b) => {
        expect(distance(a, a)).toBe(0);
        expect(distance(a, b)).toBe(distance(b, a));
        expect(distance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
        if (a !== b) expect(distance(a, b)).toBeGreaterThan(0);
      }),
    );
  });
});

describe("sizes and times", () => {
  test.each([
    ["0", 0],
    ["512", 512],
    ["1k", 1024],
    ["64MiB", 64 * 2 ** 20],
    ["1.5 GiB", 1.5 * 2 ** 30],
    ["2MB", 2e6],
    ["", undefined],
    ["-1", undefined],
    ["1x", undefined],
    ["9e9", undefined],
    [undefined, undefined],
  ])("%s is %s bytes", (text, bytes) => {
    expect(sizeOf(text)).toBe(bytes);
  });

  test.each([
    ["500ms", 500],
    ["1.5s", 1500],
    ["2min", 120_000],
    ["5", undefined],
    ["1 year", undefined],
  ])("%s is %s ms", (text, ms) => {
    expect(durationOf(text)).toBe(ms);
  });

  test("a size that is shown is read again, nearly", () => {
    check(
      fc.property(fc.integer({ min: 1, max: 2 ** 48 }), (bytes) => {
        const again = sizeOf(shownSize(bytes))!;
        expect(Math.abs(again - bytes) / bytes).toBeLessThan(0.06);
      }),
    );
  });
});

describe("tables", () => {
  const columns = [{ head: "id", isRight: true }, { head: "owner" }];

  test("columns are as wide as what is in them, numbers to the right", () => {
    expect(
      renderTable(
        columns,
        [
          ["1", "ada"],
          ["20", "grace"],
        ],
        80,
      ),
    ).toEqual(["id  owner", "──  ─────", " 1  ada", "20  grace"]);
  });

  test("wide characters take two cells, combining ones none", () => {
    expect(widthOf("漢字")).toBe(4);
    expect(widthOf("é")).toBe(1);
    expect(widthOf("👍")).toBe(2);
    expect(truncated("漢字漢字", 5)).toBe("漢字…");
  });

  test("rows that do not fit at all are records", () => {
    const many = Array.from({ length: 8 }, (_, i) => ({ head: `field${i}` }));
    const lines = renderTable(many, [many.map((_, i) => `value ${i}`)], 30);
    expect(lines).toHaveLength(9);
    expect(lines[1]).toBe("field0  value 0");
  });

  test("nothing is wider than the room, whatever is in it", () => {
    const cell = fc.string({ maxLength: 60, unit: "grapheme" });
    const table = fc
      .integer({ min: 1, max: 5 })
      .chain((width) =>
        fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1 }),
      );
    check(
      fc.property(table, fc.integer({ min: 40, max: 120 }), (rows, room) => {
        const heads = rows[0].map((_, i) => ({ head: `c${i}` }));
        expect(columnWidths(heads, rows, room)).toBeDefined();
        for (const line of renderTable(heads, rows, room)) {
          expect(widthOf(line)).toBeLessThanOrEqual(room);
        }
      }),
    );
  });
});

test("progress says how much of what", () => {
  const text = progressText({ file: "log/1.log", doneBytes: 2 ** 20, totalBytes: 4 * 2 ** 20 });
  expect(text).toMatch(/^━{6}─{18} {2}25 % {2}1 MiB of 4 MiB {2}log\/1\.log$/);
  expect(progressText({ subject: "table account", rows: 12_000 })).toBe(
    "table account: 12,000 rows",
  );
});

test("JSON of what JSON has no word for", () => {
  expect(toJson({ n: 2n ** 63n, b: new Uint8Array([0, 255]), t: [Buffer.from("x")] })).toBe(
    '{"n":"9223372036854775808","b":"0x00ff","t":["0x78"]}',
  );
});

describe("failures", () => {
  test("have the exit code of what they are", () => {
    const aborted = AbortSignal.abort(new Interrupted("SIGINT"));
    const withCode = (code: string) => Object.assign(new Error("why"), { code });
    expect(failureOf(withCode("SITU_CONFIG")).exitCode).toBe(2);
    expect(failureOf(withCode("SITU_CORRUPT")).exitCode).toBe(1);
    expect(failureOf(withCode("EACCES"))).toMatchObject({ exitCode: 1, code: "EACCES" });
    expect(failureOf(new Error("x"))).toMatchObject({ exitCode: 1, code: "SITU_UNEXPECTED" });
    expect(failureOf("text")).toMatchObject({ exitCode: 1, message: "text" });
    expect(failureOf(aborted.reason, aborted).exitCode).toBe(130);
    expect(failureOf(withCode("SITU_ABORTED"), aborted).exitCode).toBe(130);
    expect(failureOf(withCode("SITU_CORRUPT"), aborted).exitCode).toBe(1);
    const terminated = AbortSignal.abort(new Interrupted("SIGTERM"));
    expect(failureOf(terminated.reason, terminated).exitCode).toBe(143);
  });
});
