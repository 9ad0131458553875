/**
 * A node has its store to itself: whoever has it open keeps a node out, and a node keeps everybody else
 * out. Which of them is there is decided by one lock, so there is no moment in between.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { isOpenSomewhere } from "../../src/attach/openers.ts";
import { openStore } from "../../src/database/open.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { destroy, open, SituError } from "../../src/index.ts";
import { SituNode } from "../../src/node/node.ts";
import { nodeConfigurationOf } from "../../src/node/node-configuration.ts";
import { rethrow } from "../../src/protocols/driver.ts";

const SMALL = { durability: "none", memoryBytes: 32 * 2 ** 20 } as const;

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-lock-test-"));
  path = join(folder, "store");
});

afterEach(async () => {
  await destroy(path);
  rmSync(folder, { recursive: true, force: true });
});

async function node(): Promise<SituNode> {
  const [port] = await freePorts(1);
  const cluster = { nodes: [{ id: 0, host: "127.0.0.1", port }] };
  return SituNode.start(nodeConfigurationOf({ id: 0, path, cluster, ...SMALL }, folder, "test"), {
    died: rethrow,
  });
}

async function why(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SituError);
  expect((error as SituError).code).toBe("SITU_IN_USE");
  return (error as SituError).message;
}

test("a node does not start on a store that others have open", async () => {
  const db = await open({ path, ...SMALL });
  try {
    expect(await why(node())).toContain(`process ${process.pid}`);
    // The attempt has cost the others nothing.
    expect((await db.verify()).problems).toEqual([]);
    await (await open({ path })).close();
  } finally {
    await db.close();
  }
  await (await node()).close();
});

test("others do not open the store of a node that runs, nor remove it", async () => {
  const running = await node();
  try {
    expect(await why(open({ path }))).toContain("open({ connect:");
    expect(await why(destroy(path))).toContain("a node of a cluster");
    expect(await why(node())).toContain("a node of a cluster");
    expect(await isOpenSomewhere(path)).toBe(true);
  } finally {
    await running.close();
  }
  expect(await isOpenSomewhere(path)).toBe(false);
  await (await open({ path })).close();
});

test("of those who come at once, either a node gets the store or others do", async () => {
  await (await open({ path, ...SMALL })).close();
  const settings = settingsOf({ path, ...SMALL });
  for (let round = 0; round < 5; round++) {
    const results = await Promise.allSettled([
      ...[0, 1].map(() => openStore({ ...settings, isAlone: true })),
      ...[0, 1].map(() => openStore(settings)),
      ...(round % 2 === 0 ? [openStore({ ...settings, isAlone: true })] : []),
    ]);
    const isIn = results.map(({ status }) => status === "fulfilled");
    const nodes = isIn.filter((opened, i) => opened && (i < 2 || i === 4)).length;
    const others = isIn.filter((opened, i) => opened && i >= 2 && i < 4).length;
    expect([nodes, others].sort(), isIn.join()).toEqual(nodes > 0 ? [0, 1] : [0, 2]);
    for (const result of results) {
      if (result.status === "fulfilled") await result.value.close();
      else expect(result.reason).toMatchObject({ code: "SITU_IN_USE" });
    }
  }
});
