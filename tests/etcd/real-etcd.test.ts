/** Configurations in a real etcd; and real nodes that form a cluster in it. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type EtcdServer, startEtcd } from "../../benchmarks/harness/etcd-server.ts";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { EtcdConfigurations } from "../../src/cluster/etcd/etcd-configurations.ts";
import { EtcdGateway, NO_REVISION } from "../../src/cluster/etcd/gateway.ts";
import { EtcdRecord } from "../../src/cluster/etcd/record.ts";
import { destroy, open, str, table, u32 } from "../../src/index.ts";
import { eventually, NodeProcess, situ } from "../helpers/cluster.ts";

let folder: string;
let etcd: EtcdServer;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "situ-etcd-test-"));
  const started = await startEtcd(1, folder);
  if (!started.available) throw new Error(started.missing);
  etcd = started.value;
});

afterAll(async () => {
  await etcd?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function post(path: string, body: object): Promise<Record<string, never>> {
  const answer = await fetch(`${etcd.urls[0]}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  return (await answer.json()) as Record<string, never>;
}

describe("the client", () => {
  const gateways: EtcdGateway[] = [];
  const gateway = (more: object = {}): EtcdGateway => {
    const made = new EtcdGateway({ endpoints: etcd.urls, ...more }, { patienceMs: 5_000 });
    gateways.push(made);
    return made;
  };
  afterAll(() => {
    for (const each of gateways) each.close();
  });

  test("swaps, watches, and goes on after a compaction", async () => {
    const record = new EtcdRecord(gateway(), "client");
    expect(await record.read()).toEqual({ record: undefined, revision: NO_REVISION });
    const first = configurationOf({ nodes: [{ id: 0, host: "h", port: 1 }] }, "a test");
    const empty = await record.read();
    expect(await record.replace(empty, { identity: "x", configuration: first })).toBe(true);
    expect(await record.replace(empty, { identity: "y", configuration: first })).toBe(false);

    const one = new EtcdConfigurations(record, await record.read(), 60_000);
    const other = new EtcdConfigurations(record, await record.read(), 60_000);
    const next = (from: Configuration): Configuration => ({
      ...from,
      configurationId: from.configurationId + 1,
    });
    const heard: number[] = [];
    const stop = one.watch(({ configurationId }) => heard.push(configurationId));
    expect(await other.swap(first, next(first))).toBe(true);
    await eventually("the watch tells of it", async () => heard.length === 1);
    expect(await one.swap(first, next(first))).toBe(false);
    expect(await one.swap(one.current, next(one.current))).toBe(true);
    expect((await other.read()).configurationId).toBe(3);
    stop();

    // One who begins to watch behind what etcd remembers reads what there is.
    const { revision } = await record.read();
    expect(await other.swap(other.current, next(other.current))).toBe(true);
    await post("/v3/kv/compaction", { revision: (await record.read()).revision, physical: true });
    let hints = 0;
    const ended = new AbortController();
    await gateway().watch(record.key, String(Number(revision) - 1), () => hints++, ended.signal);
    expect(hints).toBeGreaterThan(0);
  });

  test("authenticates, and again when its token is not known any more", async () => {
    for (const [path, body] of [
      ["user/add", { name: "root", password: "sesame" }],
      ["role/add", { name: "root" }],
      ["user/grant", { user: "root", role: "root" }],
      ["enable", {}],
    ] as const) {
      await post(`/v3/auth/${path}`, body);
    }
    const user = gateway({ user: "root", password: "sesame" });
    try {
      expect(await user.get("nothing")).toBeUndefined();
      const wrong = gateway({ user: "root", password: "abracadabra" });
      await expect(wrong.get("a")).rejects.toMatchObject({ code: "SITU_CONFIG" });
      // A change of users makes tokens old.
      const { token } = await post("/v3/auth/authenticate", { name: "root", password: "sesame" });
      const authorization = { authorization: token as string };
      const body = JSON.stringify({ name: "another", password: "x" });
      await fetch(`${etcd.urls[0]}/v3/auth/user/add`, {
        method: "POST",
        headers: authorization,
        body,
      });
      expect(await user.get("nothing")).toBeUndefined();
    } finally {
      const { token } = await post("/v3/auth/authenticate", { name: "root", password: "sesame" });
      const headers = { authorization: token as string };
      await fetch(`${etcd.urls[0]}/v3/auth/disable`, { method: "POST", headers, body: "{}" });
    }
    expect(await user.get("nothing")).toBeUndefined();
  });
});

describe("nodes", () => {
  const Row = table("row", { id: u32(), text: str(16) }, { key: "id" });
  const nodes: NodeProcess[] = [];
  let ports: number[];

  function node(index: number, cluster: object = {}): NodeProcess {
    const path = join(folder, `node-${index}`);
    const config = join(folder, `node-${index}.json`);
    mkdirSync(path, { recursive: true });
    const given = {
      path,
      listen: { host: "127.0.0.1", port: ports[index] },
      cluster: { cluster: "shop", etcd: etcd.urls, backups: 2, partitions: 32, ...cluster },
      memoryBytes: 32 * 2 ** 20,
      durability: "lazy",
    };
    writeFileSync(config, JSON.stringify(given));
    const made = new NodeProcess(index, path, config);
    nodes.push(made);
    return made;
  }

  beforeAll(async () => {
    ports = await freePorts(5);
  });
  afterAll(async () => {
    for (const each of nodes) await each.stop("SIGKILL");
    for (const path of new Set(nodes.map((each) => each.path))) await destroy(path);
  });

  const said = ({ heard }: NodeProcess): Record<string, unknown> =>
    JSON.parse(heard.stdout.split("\n")[0]) as Record<string, unknown>;

  test("form a cluster, come back under their ids, and go on without etcd", async () => {
    const three = [node(0), node(1), node(2)];
    await Promise.all(three.map((each) => each.start()));
    expect(three.map((each) => said(each).node).sort()).toEqual([0, 1, 2]);
    for (const each of three)
      expect(said(each)).toMatchObject({ cluster: "shop", configurationId: 1 });

    const connect = ports.slice(0, 3).map((port) => `127.0.0.1:${port}`);
    const shown = await situ(["cluster", "status", "--connect", connect[1], "--cluster", "shop"]);
    expect(shown.stdout).toMatch(
      /^healthy: any 1 of 3 nodes may fail; if 2 do at once, no row is lost/,
    );

    // Others have no place in it.
    const refused = node(3, { partitions: 64 });
    await expect(refused.start()).rejects.toThrow(
      /has partitions 32, and this node's file says 64/,
    );
    // Two at once see the same id free.
    const more = [node(3), node(4)];
    await Promise.all(more.map((each) => each.start()));
    expect(more.map((each) => said(each).node).sort()).toEqual([3, 4]);

    // One that stops and starts again is the same node.
    const { node: id } = said(three[1]);
    await three[1].stop();
    await three[1].start();
    expect(said(three[1])).toMatchObject({ node: id });

    const db = await open({ connect, cluster: "shop", tables: [Row] });
    try {
      for (let id = 0; id < 20; id++) await db.put(Row, { id, text: "with etcd" });
      await etcd.stop();
      for (let id = 0; id < 20; id++) await db.put(Row, { id, text: "without" });
      expect(await db.get(Row, 7)).toEqual({ id: 7, text: "without" });
    } finally {
      await db.close();
    }
  });
});
