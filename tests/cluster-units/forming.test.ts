/** How nodes form a cluster in etcd, and find their place in it again. */

import { beforeEach, describe, expect, test } from "vitest";
import type { Configuration, NodeAddress } from "../../src/cluster/configuration.ts";
import { EtcdConfigurations } from "../../src/cluster/etcd/etcd-configurations.ts";
import {
  type Applicant,
  type Joined,
  joinCluster,
  type Membership,
} from "../../src/cluster/etcd/forming.ts";
import { EtcdRecord } from "../../src/cluster/etcd/record.ts";
import { afterFailures, type PlacedConfiguration } from "../../src/cluster/planning/planning.ts";
import { failure } from "../helpers/failure.ts";
import { MemoryGateway } from "../helpers/memory-etcd.ts";

const KEY = "/situ/shop/configuration";
let etcd: MemoryGateway;
let record: EtcdRecord;
/** Nodes that answer, by their port. */
let running: Map<number, { node: number; instance: string }>;
let lives = 0;

beforeEach(() => {
  etcd = new MemoryGateway();
  record = new EtcdRecord(etcd, "shop");
  running = new Map();
});

/** A store that remembers which node it is. */
class Folder {
  membership: Membership | undefined;
  load(): Membership | undefined {
    return this.membership;
  }
  save(membership: Membership): void {
    this.membership = membership;
  }
}

function applicant(port: number, more: Partial<Applicant> & { folder?: Folder } = {}): Applicant {
  return {
    settings: { cluster: "shop", backups: 2, partitions: undefined, leaseMs: undefined },
    id: undefined,
    host: "h",
    port,
    domain: undefined,
    instance: `life-${lives++}`,
    memory: more.folder ?? new Folder(),
    probe: async (address: NodeAddress) => running.get(address.port),
    waiting: () => {},
    ...more,
  };
}

async function start(given: Applicant): Promise<Joined> {
  const joined = await joinCluster(record, given);
  running.set(given.port, { node: joined.id, instance: given.instance });
  return joined;
}

function configurationIn({ read }: Joined): Configuration {
  return read.record!.configuration!;
}

async function formed(folders = [new Folder(), new Folder(), new Folder()]): Promise<Joined[]> {
  return Promise.all(folders.map((folder, i) => start(applicant(7_000 + i, { folder }))));
}

describe("forming a cluster", () => {
  test("the first backups + 1 nodes make it, whoever is first, and all know the same", async () => {
    const missing: number[] = [];
    const joined = await Promise.all([
      start(applicant(1, { waiting: (count) => missing.push(count) })),
      start(applicant(2, { domain: "rack-1" })),
      start(applicant(3)),
    ]);
    expect(joined.map(({ id }) => id).sort()).toEqual([0, 1, 2]);
    expect(missing[0]).toBeGreaterThan(0);
    const [first, ...others] = joined.map(configurationIn);
    for (const other of others) expect(other).toEqual(first);
    expect(first).toMatchObject({
      cluster: "shop",
      configurationId: 1,
      backups: 2,
      partitions: 256,
      leaseMs: 250,
    });
    expect(first.placement).toHaveLength(256);
    expect(first.nodes.map(({ id }) => id)).toContain(first.manager);
    expect(first.nodes.find(({ port }) => port === 2)?.domain).toBe("rack-1");
  });

  test("ids may be given; a node alone needs no others", async () => {
    const settings = { cluster: "shop", backups: 0, partitions: 16, leaseMs: 100 };
    const { id, read } = await start(applicant(1, { id: 7, settings }));
    expect(id).toBe(7);
    expect(read.record?.configuration).toMatchObject({ partitions: 16, leaseMs: 100, manager: 7 });
  });

  test("an id that another store has is refused, and so is a node that runs already", async () => {
    const first = new Folder();
    const waiting = new AbortController();
    const one = start(applicant(1, { id: 1, folder: first, signal: waiting.signal }));
    while (first.membership === undefined || etcd.swaps === 0) await Promise.resolve();
    expect(await failure(start(applicant(2, { id: 1 })), "SITU_CONFIG")).toContain(
      "node 1 of cluster shop is one at h:1 with another store; choose another id",
    );
    running.set(1, { node: 1, instance: first.membership.instance });
    await failure(start(applicant(2, { id: 1 })), "SITU_IN_USE");
    // A second process on the same store, if the lock of the folder did not keep it out.
    await failure(start(applicant(2, { folder: first })), "SITU_IN_USE");
    waiting.abort();
    await expect(one).rejects.toThrow();
  });

  test("other settings than those of the first are refused", async () => {
    await formed();
    const said = async (settings: Partial<Applicant["settings"]>): Promise<string> => {
      const all = { cluster: "shop", backups: 2, partitions: undefined, leaseMs: undefined };
      return failure(start(applicant(9, { settings: { ...all, ...settings } })), "SITU_CONFIG");
    };
    expect(await said({ partitions: 64 })).toContain(
      "has partitions 256, and this node's file says 64",
    );
    expect(await said({ backups: 1 })).toContain("has backups 2");
    expect(await said({ leaseMs: 20 })).toContain("has leaseMs 250");
  });

  test("later nodes find the smallest free id, or take one that is free, and wait to be taken in", async () => {
    const [before] = await formed();
    const folder = new Folder();
    const joined = await start(applicant(9, { folder }));
    expect(joined).toMatchObject({ id: 3, hasItsData: false });
    expect(configurationIn(joined)).toEqual(configurationIn(before));
    expect(folder.membership).toMatchObject({ id: 3, isMember: false });
    expect(await start(applicant(10, { id: 17 }))).toMatchObject({ id: 17, hasItsData: false });
    await failure(start(applicant(9, { id: 1 })), "SITU_IN_USE");
    running.clear();
    await failure(start(applicant(9, { id: 1 })), "SITU_CONFIG");
  });
});

describe("a node that starts again", () => {
  test("takes up its id with its store; its new life has to be taken in", async () => {
    const folders = [new Folder(), new Folder(), new Folder()];
    const before = await formed(folders);
    const { id } = before[1];
    await failure(start(applicant(7_001, { folder: folders[1] })), "SITU_IN_USE");
    running.delete(7_001);
    const joined = await start(applicant(7_001, { folder: folders[1] }));
    expect(joined).toMatchObject({ id, hasItsData: true });
    expect(configurationIn(joined)).toEqual(configurationIn(before[0]));
  });

  test("is itself after the cluster has gone on without it", async () => {
    const folders = [new Folder(), new Folder(), new Folder()];
    const [{ id }] = await formed(folders);
    running.clear();
    const { record: stored, revision } = await record.read();
    const { identity, configuration } = stored!;
    const without = afterFailures(
      configuration as PlacedConfiguration,
      new Set([0, 1, 2].filter((each) => each !== id)),
      (id + 1) % 3,
    );
    await record.replace({ record: stored, revision }, { identity, configuration: without });
    const again = applicant(8_000, { folder: folders[0] });
    expect(await start(again)).toMatchObject({ id, hasItsData: true });
  });

  test("is refused with another id, in another cluster, or when etcd has forgotten its cluster", async () => {
    const folders = [new Folder(), new Folder(), new Folder()];
    const [{ id }] = await formed(folders);
    running.clear();
    const [folder] = folders;
    expect(await failure(start(applicant(1, { folder, id: id + 5 })), "SITU_CONFIG")).toContain(
      `this store is that of node ${id}, not of node ${id + 5}`,
    );
    const settings = { cluster: "bank", backups: 2, partitions: undefined, leaseMs: undefined };
    expect(await failure(start(applicant(1, { folder, settings })), "SITU_CONFIG")).toContain(
      "in another cluster (shop)",
    );
    etcd.values.clear();
    expect(await failure(start(applicant(1, { folder })), "SITU_CONFIG")).toContain(
      "whose configuration etcd has not",
    );
  });

  test.each(["before", "after"])(
    "and died %s its claim counted, forms the cluster all the same",
    async (when) => {
      const folders = [new Folder(), new Folder(), new Folder()];
      const dead = applicant(7_000, { folder: folders[0] });
      etcd[when as "before"] = () => {
        throw new Error("died");
      };
      await expect(start(dead)).rejects.toThrow("died");
      expect(folders[0].membership).toMatchObject({ id: 0, isMember: false });
      etcd.before = () => {};
      etcd.after = () => {};
      const joined = await formed(folders);
      expect(joined.map(({ id }) => id).sort()).toEqual([0, 1, 2]);
      expect(configurationIn(joined[0]).nodes).toHaveLength(3);
      if (when === "after") expect(joined[0].id).toBe(0);
    },
  );
});

describe("configurations in etcd", () => {
  const next = (from: Configuration): Configuration => ({
    ...from,
    configurationId: from.configurationId + 1,
  });

  async function opened(): Promise<EtcdConfigurations> {
    const [{ read }] = await formed();
    return new EtcdConfigurations(record, read);
  }

  test("are swapped by one only, and never go back", async () => {
    const [one, other] = [await opened(), new EtcdConfigurations(record, await record.read())];
    const first = one.current;
    expect(await one.swap(first, next(first))).toBe(true);
    expect(one.current.configurationId).toBe(2);
    expect(other.current.configurationId).toBe(1);
    expect(await other.swap(first, next(first))).toBe(false);
    expect(other.current.configurationId).toBe(2);
    await failure(one.swap(first, { ...first, configurationId: 4 }), "SITU_CONFIG");
    expect(await other.swap(other.current, next(other.current))).toBe(true);
    expect((await one.read()).configurationId).toBe(3);
  });

  test("an etcd that has lost what it had is not believed", async () => {
    const one = await opened();
    const old = etcd.values.get(KEY)!.value;
    await one.swap(one.current, next(one.current));
    etcd.set(KEY, old);
    expect((await one.read()).configurationId).toBe(2);
    expect(await failure(one.swap(one.current, next(one.current)), "SITU_CONFIG")).toContain(
      "has configuration 1, but 2 was seen before",
    );
    etcd.values.clear();
    expect(await failure(one.read(), "SITU_CONFIG")).toContain("is gone");
    expect(one.current.configurationId).toBe(2);
  });

  test.each<[string, string]>([
    ["no JSON", "{"],
    ["nothing", "null"],
    ["a number", "7"],
    ["no cluster", '{"nonce":"x"}'],
    ["no configuration", '{"identity":"a","nonce":"b"}'],
    ["two", '{"identity":"a","nonce":"b","forming":{},"configuration":{}}'],
    ["a configuration without nodes", '{"identity":"a","nonce":"b","configuration":{}}'],
    ["nodes without backups", '{"identity":"a","nonce":"b","forming":{"nodes":[]}}'],
  ])("a key that somebody damaged, so that it has %s, is told by its name", async (_, value) => {
    etcd.set(KEY, value);
    const said = await failure(record.read(), "SITU_CONFIG");
    expect(said).toContain(`the key ${KEY} in etcd is damaged: `);
    expect(said).toContain("restore etcd from a backup");
    await failure(start(applicant(1)), "SITU_CONFIG");
  });
});
