/** Configurations of a cluster and of a node: what is filled in, and every field that is wrong. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  configurationOf,
  packConfiguration,
  StaticConfiguration,
} from "../../src/cluster/configuration.ts";
import { addressOf, connectSettingsOf } from "../../src/database/remote/connect-options.ts";
import {
  nodeConfigurationOf,
  nodeFileOf,
  readNodeConfiguration,
} from "../../src/node/node-configuration.ts";
import { MAX_NODES, MAX_PARTITIONS } from "../../src/runtime/limits.ts";
import { failureSync } from "../helpers/store.ts";

const NODES = [
  { id: 1, host: "b", port: 7001 },
  { id: 0, host: "a", port: 7000 },
];
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-test-configuration-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, content: unknown): string {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("the configuration of a cluster", () => {
  test("has defaults, and its nodes in their order", () => {
    expect(configurationOf({ nodes: NODES }, "x")).toEqual({
      cluster: "situ",
      configurationId: 1,
      nodes: [NODES[1], NODES[0]],
      backups: 1,
      rings: 100,
      partitions: 256,
      leaseMs: 250,
    });
    const three = [0, 1, 2].map((id) => ({ id, host: "h", port: 1 }));
    expect(configurationOf({ nodes: three }, "x").backups).toBe(2);
    expect(configurationOf({ nodes: [three[0]] }, "x").backups).toBe(0);
  });

  const node = { id: 0, host: "a", port: 1 };
  test.each<[string, unknown]>([
    ["no object", 7],
    ["null", null],
    ["a list", []],
    ["an unknown field", { nodes: NODES, replicas: 3 }],
    ["no nodes", {}],
    ["nodes that are no list", { nodes: { 0: node } }],
    ["an empty list of nodes", { nodes: [] }],
    ["too many nodes", { nodes: Array.from({ length: MAX_NODES + 1 }, () => node) }],
    ["a node that is null", { nodes: [null] }],
    ["a node that is a text", { nodes: ["a:1"] }],
    ["a node without a host", { nodes: [{ id: 0, port: 1 }] }],
    ["a node with an empty host", { nodes: [{ ...node, host: "" }] }],
    ["an id that is no number", { nodes: [{ ...node, id: "0" }] }],
    ["an id below 0", { nodes: [{ ...node, id: -1 }] }],
    ["an id that is too large", { nodes: [{ ...node, id: MAX_NODES }] }],
    ["a broken id", { nodes: [{ ...node, id: 0.5 }] }],
    ["a port that is too large", { nodes: [{ ...node, port: 65_536 }] }],
    ["a port that is a text", { nodes: [{ ...node, port: "1" }] }],
    ["two nodes of one id", { nodes: [node, node] }],
    ["a name with a blank", { nodes: NODES, cluster: "a b" }],
    ["an empty name", { nodes: NODES, cluster: "" }],
    ["a name that is too long", { nodes: NODES, cluster: "x".repeat(65) }],
    ["configurationId 0", { nodes: NODES, configurationId: 0 }],
    ["a configurationId that does not fit a word", { nodes: NODES, configurationId: 2 ** 31 }],
    ["more backups than other nodes", { nodes: NODES, backups: 2 }],
    ["backups below 0", { nodes: NODES, backups: -1 }],
    ["no rings", { nodes: NODES, rings: 0 }],
    ["no partitions", { nodes: NODES, partitions: 0 }],
    ["too many partitions", { nodes: NODES, partitions: MAX_PARTITIONS + 1 }],
    ["partitions that are NaN", { nodes: NODES, partitions: Number.NaN }],
    ["a lease that is too short", { nodes: NODES, leaseMs: 1 }],
    ["a lease without end", { nodes: NODES, leaseMs: Number.POSITIVE_INFINITY }],
    ["a manager that is no node", { nodes: NODES, manager: 2 }],
    ["a manager that is a text", { nodes: NODES, manager: "0" }],
    ["earlier nodes that are no lists", { nodes: NODES, unsettled: [1] }],
    ["too many of them", { nodes: NODES, unsettled: Array(33).fill(NODES) }],
    ["an earlier node without an address", { nodes: NODES, unsettled: [[{ id: 1 }]] }],
    ["an instance that is a number", { nodes: [{ ...node, instance: 7 }] }],
    ["a node since configuration 0", { nodes: [{ ...node, since: 0 }] }],
    ["a domain with a blank", { nodes: [{ ...node, domain: "rack 1" }] }],
    ["an empty domain", { nodes: [{ ...node, domain: "" }] }],
  ])("%s is refused, and the message says whose it is", (_, given) => {
    const error = failureSync("SITU_CONFIG", () => configurationOf(given, "my.json"));
    expect(error.message).toContain("my.json: ");
  });

  const placed = { primary: 0, backups: [1], filling: [], primarySince: 1, replicasSince: 2 };
  const stateful = { nodes: NODES, partitions: 1, backups: 2, configurationId: 3 };

  test("names the nodes of earlier ones that may still serve", () => {
    const checked = configurationOf({ nodes: NODES, unsettled: [NODES] }, "a test");
    expect(checked.unsettled).toEqual([NODES]);
    const json = JSON.stringify(packConfiguration(checked));
    expect(configurationOf(JSON.parse(json), "a test")).toEqual(checked);
    expect(configurationOf({ nodes: NODES, unsettled: [] }, "a test")).not.toHaveProperty(
      "unsettled",
    );
  });

  test("may have a manager, domains and its placement, and goes through JSON", () => {
    const given = {
      ...stateful,
      nodes: NODES.map((each) => ({
        ...each,
        domain: `rack-${each.id}`,
        instance: "a:b-1_2.3",
        since: 2,
      })),
      manager: 1,
      leaseMs: 100,
      placement: [placed],
    };
    const checked = configurationOf(given, "x");
    expect(checked).toMatchObject({ manager: 1, leaseMs: 100, placement: [placed] });
    expect(checked.nodes[0]).toEqual({ ...given.nodes[1] });
    const text = JSON.stringify(packConfiguration(checked));
    expect(text).toContain('"placement":[[0,[1],[],1,2]]');
    expect(configurationOf(JSON.parse(text), "x")).toEqual(checked);
    const plain = configurationOf({ nodes: NODES }, "x");
    expect(configurationOf(JSON.parse(JSON.stringify(packConfiguration(plain))), "x")).toEqual(
      plain,
    );
  });

  test("may have lost a partition: then its last copies are no members", () => {
    const lost = { ...placed, primary: 7, backups: [8] };
    expect(configurationOf({ ...stateful, placement: [lost] }, "x").placement).toEqual([lost]);
  });

  test.each<[string, unknown]>([
    ["is no list", {}],
    ["has too few entries", []],
    ["has too many entries", [placed, placed]],
    ["has an entry that is null", [null]],
    ["has a primary that is no number", [{ ...placed, primary: "0" }]],
    ["has a primary that no cluster has", [{ ...placed, primary: MAX_NODES }]],
    ["has a primary that is no member, but a backup that is", [{ ...placed, primary: 7 }]],
    ["has a backup that is no member", [{ ...placed, backups: [7] }]],
    ["has backups that are no list", [{ ...placed, backups: 1 }]],
    ["has more backups than there are", [{ ...placed, backups: [1, 2, 3, 4] }]],
    ["has a node that is primary and backup", [{ ...placed, backups: [0] }]],
    ["has a node that is backup and filling", [{ ...placed, filling: [1] }]],
    ["has a filling node that is no member", [{ ...placed, filling: [7] }]],
    ["fills what is lost", [{ ...placed, primary: 7, backups: [], filling: [8] }]],
    ["has no primarySince", [{ ...placed, primarySince: undefined }]],
    ["has a primarySince of 0", [{ ...placed, primarySince: 0 }]],
    ["has a primary that is newer than its replicas", [{ ...placed, primarySince: 3 }]],
    ["has replicas of a later configuration", [{ ...placed, replicasSince: 4 }]],
  ])("is refused if its placement %s", (_, placement) => {
    const error = failureSync("SITU_CONFIG", () =>
      configurationOf({ ...stateful, placement }, "my.json"),
    );
    expect(error.message).toContain("my.json: placement");
  });

  test("of a file cannot be changed", async () => {
    const fixed = new StaticConfiguration(configurationOf({ nodes: NODES }, "x"));
    expect(await fixed.read()).toBe(fixed.current);
    await expect(fixed.swap()).rejects.toMatchObject({ code: "SITU_UNSUPPORTED" });
  });

  test("is read from a file; one that is missing or no JSON is refused", () => {
    const { current, watch } = StaticConfiguration.read(
      file("c.json", { nodes: NODES, configurationId: 4 }),
    );
    expect(current.configurationId).toBe(4);
    // Its name in older files.
    expect(configurationOf({ nodes: NODES, epoch: 4 }, "old.json").configurationId).toBe(4);
    watch()();
    failureSync("SITU_CONFIG", () => StaticConfiguration.read(join(folder, "none.json")));
    failureSync("SITU_CONFIG", () => StaticConfiguration.read(file("d.json", "{")));
  });
});

describe("the configuration of a node", () => {
  const good = { id: 1, path: "data", cluster: { nodes: NODES } };

  test("has defaults, and paths relative to its file", () => {
    file("cluster.json", { nodes: NODES, cluster: "shop" });
    file("secret", " open sesame\n");
    const path = file("node.json", {
      ...good,
      cluster: "cluster.json",
      secretFile: "secret",
      nodeSecret: "of nodes",
      procedures: ["p.mjs"],
    });
    const read = readNodeConfiguration(path);
    expect(read).toMatchObject({
      id: 1,
      path: join(folder, "data"),
      secret: "open sesame",
      nodeSecret: "of nodes",
      tls: undefined,
      protocol: "rpc",
      place: "nic",
      procedures: [join(folder, "p.mjs")],
    });
    expect(read.cluster.cluster).toBe("shop");
  });

  test.each<[string, unknown]>([
    ["no object", "x"],
    ["null", null],
    ["an unknown field", { ...good, port: 1 }],
    ["no path", { ...good, path: undefined }],
    ["an empty path", { ...good, path: "" }],
    ["no cluster", { ...good, cluster: undefined }],
    ["a cluster that is wrong", { ...good, cluster: { nodes: [] } }],
    ["a cluster's file that is missing", { ...good, cluster: "none.json" }],
    ["an id that the cluster has not", { ...good, id: 2 }],
    ["an id that is a text", { ...good, id: "1" }],
    ["an unknown protocol", { ...good, protocol: "two-sided" }],
    ["a protocol's name of every object", { ...good, protocol: "toString" }],
    ["an unknown place", { ...good, place: "verb" }],
    ["places that are no object", { ...good, places: ["nic"] }],
    ["an unknown phase", { ...good, places: { reading: "nic" } }],
    ["a phase where it cannot be", { ...good, places: { commit: "verb" } }],
    ["phases that are torn apart", { ...good, places: { log: "host" } }],
    ["an unknown durability", { ...good, durability: "always" }],
    ["procedures that are no list", { ...good, procedures: "p.mjs" }],
    ["procedures that are no texts", { ...good, procedures: [1] }],
    ["a secret that is no text", { ...good, secret: 1 }],
    ["an empty secret", { ...good, secret: "" }],
    ["a secret's file that is missing", { ...good, secretFile: "none" }],
    ["a secret's file that is no path", { ...good, secretFile: 1 }],
    ["a secret's file that is empty", { ...good, secretFile: "empty" }],
    ["an empty secret of nodes", { ...good, nodeSecret: "" }],
    ["a secret of nodes that is no text", { ...good, nodeSecret: 1 }],
    ["a secret's file of nodes that is missing", { ...good, nodeSecretFile: "none" }],
    ["a secret for clients, and none for nodes", { ...good, secret: "a" }],
    ["one secret for clients and nodes", { ...good, secret: "a", nodeSecret: "a" }],
    ["tls that is null", { ...good, tls: null }],
    ["tls without a key", { ...good, tls: { cert: "c" } }],
    ["tls with a key that is missing", { ...good, tls: { key: "none", cert: "none" } }],
    ["no connections", { ...good, maxConnections: 0 }],
    ["half a connection", { ...good, maxConnections: 0.5 }],
  ])("%s is refused", (_, given) => {
    file("empty", "\n");
    failureSync("SITU_CONFIG", () => nodeConfigurationOf(given, folder, "node.json"));
  });
});

describe("the configuration of a node whose cluster is in etcd", () => {
  const listen = { host: "10.0.0.1", port: 7000 };
  const cluster = { cluster: "shop", etcd: ["127.0.0.1:2379"] };
  const good = { path: "data", listen, cluster };

  test("has defaults: no id, two backups", () => {
    expect(nodeFileOf(good, folder, "node.json")).toMatchObject({
      id: undefined,
      path: join(folder, "data"),
      listen,
      etcd: {
        settings: { cluster: "shop", backups: 2, partitions: undefined, leaseMs: undefined },
        etcd: { endpoints: ["http://127.0.0.1:2379"] },
        listen,
        advertised: "10.0.0.1",
      },
    });
    expect(failureSync("SITU_CONFIG", () => nodeConfigurationOf(good, folder, "x")).message).toBe(
      "x: the nodes of this cluster are in etcd",
    );
  });

  test("may have TLS, a user, a domain, and an address for others", () => {
    file("ca.pem", "authority");
    file("password", "sesame\n");
    const given = {
      ...good,
      id: 3,
      listen: { host: "0.0.0.0", port: 7000, advertise: "db-1" },
      cluster: {
        ...cluster,
        etcdCa: "ca.pem",
        etcdUser: "situ",
        etcdPasswordFile: "password",
        domain: "rack-1",
        partitions: 64,
      },
    };
    expect(nodeFileOf(given, folder, "node.json")).toMatchObject({
      id: 3,
      etcd: {
        etcd: {
          endpoints: ["https://127.0.0.1:2379"],
          ca: "authority",
          user: "situ",
          password: "sesame",
        },
        domain: "rack-1",
        advertised: "db-1",
      },
    });
  });

  test.each<[string, object]>([
    ["no listen", { listen: undefined }],
    ["listen without a host", { listen: { port: 1 } }],
    ["listen without a port", { listen: { host: "h" } }],
    ["a port that is free to choose", { listen: { host: "h", port: 0 } }],
    ["an address that nobody can reach", { listen: { host: "0.0.0.0", port: 1 } }],
    ["an id that is a text", { id: "0" }],
    ["an id that is too large", { id: MAX_NODES }],
    ["no members of etcd", { cluster: { ...cluster, etcd: [] } }],
    ["nodes", { cluster: { ...cluster, nodes: NODES } }],
    ["a name with a blank", { cluster: { ...cluster, cluster: "a b" } }],
    ["too many backups", { cluster: { ...cluster, backups: MAX_NODES } }],
    ["no partitions", { cluster: { ...cluster, partitions: 0 } }],
    ["a short lease", { cluster: { ...cluster, leaseMs: 1 } }],
    ["a domain with a blank", { cluster: { ...cluster, domain: "a b" } }],
    ["a user without a password", { cluster: { ...cluster, etcdUser: "situ" } }],
    ["a certificate that is missing", { cluster: { ...cluster, etcdCa: "none.pem" } }],
    ["a certificate that is no path", { cluster: { ...cluster, etcdCa: 7 } }],
    ["a secret for clients only", { secret: "sesame" }],
  ])("%s is refused", (_, more) => {
    failureSync("SITU_CONFIG", () => nodeFileOf({ ...good, ...more }, folder, "node.json"));
  });

  test("an address beside fixed nodes is refused", () => {
    const fixed = { id: 1, path: "data", cluster: { nodes: NODES }, listen };
    failureSync("SITU_CONFIG", () => nodeFileOf(fixed, folder, "node.json"));
  });
});

describe("where a client connects to", () => {
  test("is written as host:port", () => {
    expect(addressOf("db.example.org:7000")).toEqual({ host: "db.example.org", port: 7000 });
    expect(addressOf("[::1]:1")).toEqual({ host: "::1", port: 1 });
    const settings = connectSettingsOf({ connect: "a:1" });
    expect(settings.seeds).toEqual([{ host: "a", port: 1 }]);
  });

  test.each(["a", "a:", ":1", "a:0", "a:65536", "a b:1", "::1:1", "[::1]", "a:1x", "", 7, null])(
    "%s is refused",
    (text) => {
      failureSync("SITU_CONFIG", () => addressOf(text));
      failureSync("SITU_CONFIG", () => connectSettingsOf({ connect: [text as string] }));
    },
  );

  test.each<[string, Record<string, unknown>]>([
    ["an unknown option", { connect: "a:1", path: "x" }],
    ["no nodes", { connect: [] }],
    ["something else for nodes", { connect: 7 }],
    ["no time", { connect: "a:1", timeoutMs: 0 }],
    ["time that never ends", { connect: "a:1", timeoutMs: Number.POSITIVE_INFINITY }],
    ["an empty secret", { connect: "a:1", secret: "" }],
  ])("%s is refused", (_, options) => {
    failureSync("SITU_CONFIG", () => connectSettingsOf(options as never));
  });
});
