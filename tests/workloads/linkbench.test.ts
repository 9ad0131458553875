/** LinkBench: its shapes, its mixes, and an invariant that notices what is wrong. */

import type { Table } from "situ";
import { describe, expect, test } from "vitest";
import { checkLinks } from "../../workloads/linkbench/check.ts";
import { linkbench } from "../../workloads/linkbench/linkbench.ts";
import { KINDS, mixes } from "../../workloads/linkbench/parameters.ts";
import { drawDegrees, linksOfType } from "../../workloads/linkbench/shape.ts";
import { Link, LinkCount, LinkNode } from "../../workloads/linkbench/store.ts";
import type { ReadRows } from "../../workloads/workload.ts";

type Row = Readonly<Record<string, unknown>>;

const NODES = 3_000;

function rowsOf(): Map<Table, Row[]> {
  const rows = new Map<Table, Row[]>(
    [LinkNode, Link, LinkCount].map((each) => [each as Table, []]),
  );
  for (const { table, row } of linkbench("tao", NODES, { draws: 16 }).rows()) {
    rows.get(table)!.push(row as Row);
  }
  return rows;
}

const reading = (rows: Map<Table, Row[]>): ReadRows =>
  async function* (table) {
    yield* rows.get(table)!;
  };

test.each(["linkbench", "tao"] as const)("the mix of %s is a hundred percent", (name) => {
  const sum = KINDS.reduce((total, kind) => total + mixes[name][kind], 0);
  expect(sum).toBeCloseTo(100, 4);
});

test("TAO writes one time in five hundred, LinkBench three in ten", () => {
  const writes = (name: "linkbench" | "tao"): number =>
    KINDS.filter((kind) => !kind.startsWith("get") && !kind.startsWith("count")).reduce(
      (total, kind) => total + mixes[name][kind],
      0,
    );
  expect(writes("tao")).toBeCloseTo(0.2, 6);
  expect(writes("linkbench")).toBeCloseTo(30.94, 1);
});

test("degrees are LinkBench's: most nodes have a link or none, some have thousands", () => {
  const degrees = drawDegrees(100_000).subarray(1);
  const part = (most: number): number => degrees.filter((each) => each <= most).length / 1_000;
  expect(part(0)).toBeCloseTo(46.4, 0);
  expect(part(5)).toBeGreaterThan(95);
  const mean = degrees.reduce((sum, each) => sum + each, 0) / degrees.length;
  expect(mean).toBeGreaterThan(3.5);
  expect(mean).toBeLessThan(6);
});

test("the links of a node are of two types, in equal parts", () => {
  for (const degree of [0, 1, 2, 7, 100]) {
    const parts = [linksOfType(degree, 0), linksOfType(degree, 1)];
    expect(parts[0] + parts[1]).toBe(degree);
    expect(parts[0] - parts[1]).toBe(degree % 2);
  }
});

describe("the invariant", () => {
  const sizes = (rows: Map<Table, Row[]>): [number, number] => [
    rows.get(LinkNode as Table)!.length,
    rows.get(Link as Table)!.length,
  ];

  test("holds at the beginning", async () => {
    const rows = rowsOf();
    const [nodes, links] = sizes(rows);
    expect(nodes).toBe(NODES);
    expect(await checkLinks(nodes, links, reading(rows), {})).toEqual([]);
  });

  test.each<[string, (rows: Map<Table, Row[]>) => void, object?]>([
    ["a node is lost", (rows) => rows.get(LinkNode as Table)!.pop()],
    ["a link is lost", (rows) => rows.get(Link as Table)!.pop()],
    ["a link is there twice", (rows) => rows.get(Link as Table)!.push(rows.get(Link as Table)![0])],
    ["a count is lost", (rows) => rows.get(LinkCount as Table)!.pop()],
    ["a link was added and is not there", () => {}, { linksAdded: 1 }],
    ["a list was out of order", () => {}, { disorders: 1 }],
  ])("notices that %s", async (_, spoil, tally = {}) => {
    const rows = rowsOf();
    const [nodes, links] = sizes(rows);
    spoil(rows);
    const problems = await checkLinks(nodes, links, reading(rows), tally as Record<string, number>);
    expect(problems).not.toEqual([]);
  });
});
