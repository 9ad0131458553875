/** Every field of a node's file, wrong: each is refused with its name, and what belongs there. */

import { describe, expect, test } from "vitest";
import { nodeConfigurationOf } from "../../src/node/node-configuration.ts";
import { SituError } from "../../src/runtime/errors.ts";

const NODES = [
  { id: 0, host: "a", port: 1 },
  { id: 1, host: "b", port: 2 },
];
const SOUND = { id: 1, path: "store", cluster: { nodes: NODES } };

function why(given: unknown): string {
  try {
    nodeConfigurationOf(given, "/folder", "node.json");
  } catch (error) {
    expect(error).toBeInstanceOf(SituError);
    expect((error as SituError).code).toBe("SITU_CONFIG");
    expect((error as SituError).message).toContain("node.json");
    return (error as SituError).message;
  }
  return "nothing is wrong";
}

test("what is left out is filled in; paths are relative to the file", () => {
  const made = nodeConfigurationOf(
    { ...SOUND, procedures: ["p.js", "/q.js"] },
    "/folder",
    "node.json",
  );
  expect(made).toMatchObject({
    id: 1,
    path: "/folder/store",
    protocol: "rpc",
    place: "nic",
    procedures: ["/folder/p.js", "/q.js"],
    cluster: { cluster: "situ", configurationId: 1, backups: 1, rings: 100, partitions: 256 },
  });
});

describe("a node's own fields", () => {
  test.each<[unknown, string]>([
    [undefined, "object"],
    [null, "object"],
    ["text", "object"],
    [[], "path"],
    [{ ...SOUND, adress: 1 }, "adress"],
    [{ ...SOUND, id: 7 }, "id"],
    [{ ...SOUND, id: "1" }, "id"],
    [{ ...SOUND, id: undefined }, "id"],
    [{ ...SOUND, path: "" }, "path"],
    [{ ...SOUND, path: 5 }, "path"],
    [{ ...SOUND, protocol: "two-sided" }, "one-sided"],
    [{ ...SOUND, protocol: 1 }, "protocol"],
    [{ ...SOUND, protocol: "toString" }, "protocol"],
    [{ ...SOUND, place: "device" }, "place"],
    [{ ...SOUND, places: "nic" }, "places"],
    [{ ...SOUND, places: { log: "host" } }, "both need"],
    [{ ...SOUND, durability: "often" }, "durability"],
    [{ ...SOUND, durability: 1 }, "durability"],
    [{ ...SOUND, procedures: "p.js" }, "procedures"],
    [{ ...SOUND, procedures: [1] }, "procedures"],
    [{ ...SOUND, maxConnections: 0 }, "maxConnections"],
    [{ ...SOUND, maxConnections: "9" }, "maxConnections"],
    [{ ...SOUND, memoryBytes: "much" }, "memoryBytes"],
    [{ ...SOUND, memoryBytes: -1 }, "memoryBytes"],
    [{ ...SOUND, secret: "" }, "secret"],
    [{ ...SOUND, secret: 5 }, "secret"],
    [{ ...SOUND, secretFile: 5 }, "secretFile"],
    [{ ...SOUND, secretFile: "not-there" }, "not-there"],
    [{ ...SOUND, tls: true }, "tls"],
    [{ ...SOUND, tls: null }, "tls"],
    [{ ...SOUND, tls: { key: 1, cert: 2 } }, "tls"],
    [{ ...SOUND, tls: { key: "no-key.pem", cert: "c.pem" } }, "no-key.pem"],
  ])("%j", (given, told) => {
    expect(why(given)).toContain(told);
  });
});

describe("the cluster's", () => {
  const withCluster = (cluster: unknown): unknown => ({ ...SOUND, cluster });
  test.each<[unknown, string]>([
    [undefined, "cluster"],
    [null, "cluster"],
    [7, "cluster"],
    [{ nodes: NODES, size: 2 }, "size"],
    [{}, "nodes"],
    [{ nodes: [] }, "nodes"],
    [{ nodes: {} }, "nodes"],
    [{ nodes: [null] }, "host"],
    [{ nodes: [{ id: 1, host: "", port: 1 }] }, "host"],
    [{ nodes: [{ id: 1, port: 1 }] }, "host"],
    [{ nodes: [{ id: -1, host: "a", port: 1 }] }, "id"],
    [{ nodes: [{ id: 1.5, host: "a", port: 1 }] }, "id"],
    [{ nodes: [{ id: 1, host: "a", port: 70_000 }] }, "port"],
    [{ nodes: [{ id: 1, host: "a", port: "1" }] }, "port"],
    [{ nodes: [NODES[1], NODES[1]] }, "same id"],
    [{ nodes: NODES, cluster: "" }, "cluster"],
    [{ nodes: NODES, cluster: "two words" }, "cluster"],
    [{ nodes: NODES, configurationId: 0 }, "configurationId"],
    [{ nodes: NODES, configurationId: 2 ** 31 }, "configurationId"],
    [{ nodes: NODES, backups: 2 }, "backups"],
    [{ nodes: NODES, backups: -1 }, "backups"],
    [{ nodes: NODES, rings: 0 }, "rings"],
    [{ nodes: NODES, partitions: 0 }, "partitions"],
    [{ nodes: NODES, partitions: 1e9 }, "partitions"],
  ])("%j", (cluster, told) => {
    expect(why(withCluster(cluster))).toContain(told);
  });

  test("a file that is not there", () => {
    expect(() => nodeConfigurationOf(withCluster("nowhere.json"), "/folder", "node.json")).toThrow(
      /nowhere\.json cannot be read/,
    );
  });
});
