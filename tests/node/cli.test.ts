/** The command line as people meet it: help, mistakes, and nodes that cannot start. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { destroy, open } from "../../src/index.ts";
import { NodeProcess, situ } from "../helpers/cluster.ts";

let folder: string;
const nodes: NodeProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-cli-test-"));
});

afterEach(async () => {
  for (const node of nodes.splice(0)) {
    await node.stop("SIGKILL");
    await destroy(node.path);
  }
  await destroy(join(folder, "store"));
  rmSync(folder, { recursive: true, force: true });
});

function configured(given: object, name = "node.json"): string {
  const file = join(folder, name);
  writeFileSync(file, JSON.stringify(given));
  return file;
}

async function sound(more: object = {}): Promise<Record<string, unknown>> {
  const [port] = await freePorts(1);
  const cluster = { nodes: [{ id: 0, host: "127.0.0.1", port }] };
  return { id: 0, path: "store", cluster, memoryBytes: 32 * 2 ** 20, durability: "none", ...more };
}

async function running(config: string, path = join(folder, "store")): Promise<NodeProcess> {
  const node = new NodeProcess(0, path, config);
  nodes.push(node);
  await node.start();
  return node;
}

describe("the command line", () => {
  test.each([[[]], [["--help"]], [["help"]], [["node", "--help"]]])("%j helps", async (args) => {
    const { code, stdout, stderr } = await situ(args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("situ node --config node.json");
  });

  test.each([
    [["nod"], "unknown command nod"],
    [["node", "--confg", "x"], "--confg"],
    [["node", "--config"], "--config"],
    [["node", "extra", "--config", "x"], "extra"],
  ])("%j is refused with the way to do it", async (args, why) => {
    const { code, stderr } = await situ(args);
    expect(code).toBe(2);
    expect(stderr).toContain(why);
    expect(stderr).not.toContain("    at ");
  });

  test("no configuration, one that is not there, one that is no JSON", async () => {
    const none = await situ(["node"]);
    expect(none.code).not.toBe(0);
    expect(none.stderr).toContain("--config node.json");
    const missing = await situ(["node", "--config", join(folder, "nothing.json")]);
    expect(missing.code).toBe(2);
    expect(missing.stderr).toMatch(/nothing\.json.*SITU_CONFIG/);
    const file = join(folder, "bad.json");
    writeFileSync(file, "{ no");
    const bad = await situ(["node", "--config", file]);
    expect(bad.code).toBe(2);
    expect(bad.stderr).toContain("is not JSON");
    for (const { stderr } of [none, missing, bad]) expect(stderr).not.toContain("    at ");
  });

  test("says when it listens, stops at SIGTERM and SIGINT, and can be started again", async () => {
    const config = configured(await sound());
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const node = await running(config);
      expect(await node.stop(signal)).toBe(0);
      const events = node.heard.stdout.trim().split("\n");
      expect(events.map((line) => (JSON.parse(line) as { event: string }).event)).toEqual([
        "listening",
        "closed",
      ]);
      expect(node.heard.stderr).toBe("");
    }
    const db = await open({ path: join(folder, "store") });
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  });
});

describe("a node that cannot start", () => {
  async function refused(given: object): Promise<string> {
    const { code, stderr } = await situ(["node", "--config", configured(given, "refused.json")]);
    // A configuration that cannot be right ends with 2, whatever else went wrong with 1.
    expect(code, stderr).toBe(stderr.includes("(SITU_CONFIG)") ? 2 : 1);
    expect(stderr, stderr).toMatch(/^situ node: .*\(SITU_[A-Z_]+\)\n$/s);
    expect(stderr).not.toContain("    at ");
    return stderr;
  }

  test("its port is in use", async () => {
    const [port] = await freePorts(1);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    try {
      const cluster = { nodes: [{ id: 0, host: "127.0.0.1", port }] };
      expect(await refused(await sound({ cluster }))).toContain(String(port));
    } finally {
      server.close();
    }
  });

  test("its store is in use by another node", async () => {
    await running(configured(await sound()));
    expect(await refused(await sound())).toMatch(/SITU_IN_USE/);
    // The first one goes on.
    expect(nodes[0].isRunning).toBe(true);
  });

  test("its store is open in a process; one that was killed is not", async () => {
    const db = await open({ path: join(folder, "store"), memoryBytes: 32 * 2 ** 20 });
    const given = await sound({ durability: undefined });
    try {
      expect(await refused(given)).toMatch(new RegExp(`process ${process.pid} .*SITU_IN_USE`));
    } finally {
      await db.close();
    }
    const node = await running(configured(given));
    await expect(open({ path: node.path })).rejects.toMatchObject({ code: "SITU_IN_USE" });
    await node.stop("SIGKILL");
    await node.start();
    expect(node.isRunning).toBe(true);
  });

  test("its host is none of this machine's", async () => {
    const cluster = { nodes: [{ id: 0, host: "192.0.2.1", port: 7000 }] };
    expect(await refused(await sound({ cluster }))).toContain("192.0.2.1");
  });

  test("a module of procedures that cannot be loaded, or has two of one name", async () => {
    expect(await refused(await sound({ procedures: ["./nowhere.mjs"] }))).toContain("nowhere.mjs");
    writeFileSync(join(folder, "bad.mjs"), "export const a = ;");
    expect(await refused(await sound({ procedures: ["./bad.mjs"] }))).toContain("bad.mjs");
    writeFileSync(join(folder, "throws.mjs"), "throw new Error('on purpose')");
    expect(await refused(await sound({ procedures: ["./throws.mjs"] }))).toContain("on purpose");
    const mark = `{ kind: "situ procedure", name: "twice", body() {}, tables: [] }`;
    writeFileSync(join(folder, "twice.mjs"), `export const a = ${mark}; export const b = ${mark};`);
    expect(await refused(await sound({ procedures: ["./twice.mjs"] }))).toContain("twice");
  });

  test("its memory is not enough, its secret file is not there", async () => {
    expect(await refused(await sound({ memoryBytes: 5 }))).toContain("memoryBytes");
    expect(await refused(await sound({ memoryBytes: "much" }))).toContain("memoryBytes");
    expect(await refused(await sound({ secretFile: "nowhere" }))).toContain("nowhere");
    expect(await refused(await sound({ tls: { key: "no.pem", cert: "no.pem" } }))).toContain(
      "no.pem",
    );
  });
});
