/** The client of etcd's JSON gateway, against members that fail in every way they can. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import type { EtcdOptions } from "../../src/cluster/etcd/endpoints.ts";
import { endpointsOf } from "../../src/cluster/etcd/endpoints.ts";
import { EtcdConfigurations } from "../../src/cluster/etcd/etcd-configurations.ts";
import { EtcdGateway, NO_REVISION } from "../../src/cluster/etcd/gateway.ts";
import { EtcdRecord } from "../../src/cluster/etcd/record.ts";
import { eventually } from "../helpers/cluster.ts";
import { OTHER_TLS, TLS } from "../helpers/fabric-certificates.ts";
import { failure } from "../helpers/failure.ts";
import { FakeEtcd, type Fault } from "../helpers/fake-etcd.ts";
import { failureSync } from "../helpers/store.ts";

let member: FakeEtcd;
let other: FakeEtcd;
const gateways: EtcdGateway[] = [];

beforeEach(async () => {
  member = await FakeEtcd.start();
  other = await FakeEtcd.start();
});

afterEach(async () => {
  for (const gateway of gateways.splice(0)) gateway.close();
  await member.close();
  await other.close();
});

/** Short times, for members that are silent. */
function gatewayTo(endpoints: string[], more: Partial<EtcdOptions> = {}): EtcdGateway {
  const gateway = new EtcdGateway({ endpoints, ...more }, { callMs: 200, patienceMs: 600 });
  gateways.push(gateway);
  return gateway;
}

/** The fault for the first so many requests of a path. */
function atFirst(fault: Fault, path = "/v3/kv/range", times = 1): FakeEtcd["fault"] {
  let left = times;
  return (asked) => (asked === path && left-- > 0 ? fault : undefined);
}

describe("a key of etcd", () => {
  test("is read, and replaced if nobody else has; all requests want a leader", async () => {
    const gateway = gatewayTo([member.url]);
    expect(await gateway.get("a")).toBeUndefined();
    expect(await gateway.replace("a", "one", NO_REVISION)).toEqual({
      isDone: true,
      isCertain: true,
    });
    expect(await gateway.replace("a", "two", NO_REVISION)).toEqual({
      isDone: false,
      isCertain: true,
    });
    expect(await gateway.get("a")).toEqual({ value: "one", revision: "2" });
    for (const { headers } of member.asked) expect(headers["grpc-metadata-hasleader"]).toBe("true");
    // Never answered from a member's own copy.
    expect(member.asked[0].body).toEqual({ key: "YQ==" });
  });

  test.each<[string, Fault]>([
    ["is silent", "silent"],
    ["breaks the connection", "reset"],
    [
      "has no leader (3.4)",
      { status: 503, body: { error: "no leader", code: 14, message: "no leader" } },
    ],
    [
      "has no leader (3.6)",
      { status: 503, body: { code: 14, message: "etcdserver: no leader", details: [] } },
    ],
    ["is too slow itself", { status: 504, body: { code: 4, message: "request timed out" } }],
    [
      "has too much to do",
      { status: 429, body: { code: 8, message: "etcdserver: too many requests" } },
    ],
    ["is a proxy without a member", { status: 502, body: "Bad Gateway" }],
  ])("is asked of another member if one %s", async (_, fault) => {
    other.put("there");
    member.fault = () => fault;
    const gateway = gatewayTo([member.url, other.url]);
    expect((await gateway.get("a"))?.value).toBe("there");
    // And that one is asked from then on.
    const before = member.asked.length;
    await gateway.get("a");
    expect(member.asked.length).toBe(before);
  });

  test("of members that all fail is unreachable after a while, and says where", async () => {
    const [port] = await freePorts(1);
    member.fault = () => "silent";
    const gateway = gatewayTo([member.url, `http://127.0.0.1:${port}`]);
    const said = await failure(gateway.get("a"), "SITU_UNREACHABLE");
    expect(said).toContain(`etcd does not answer at ${member.url}, http://127.0.0.1:${port}`);
    member.fault = atFirst("silent");
    member.put("back");
    expect((await gateway.get("a"))?.value).toBe("back");
  });

  test.each<[string, Fault, string]>([
    [
      "no gateway",
      { status: 404, body: "404 page not found" },
      "the JSON gateway of etcd 3.4 or newer",
    ],
    [
      "no permission",
      { status: 403, body: { code: 7, message: "etcdserver: permission denied" } },
      "permission denied",
    ],
    [
      "no user",
      { status: 400, body: { code: 3, message: "etcdserver: user name is empty" } },
      "user name is empty",
    ],
    [
      "no space",
      { status: 429, body: { code: 8, message: "etcdserver: mvcc: database space exceeded" } },
      "space exceeded",
    ],
  ])("of an etcd with %s is refused at once", async (_, fault, why) => {
    member.fault = () => fault;
    expect(await failure(gatewayTo([member.url]).get("a"), "SITU_CONFIG")).toContain(why);
    expect(member.asked).toHaveLength(1);
  });

  test("that is no etcd at all is not believed", async () => {
    member.fault = () => "garbage";
    await failure(gatewayTo([member.url]).get("a"), "SITU_UNREACHABLE");
  });
});

describe("a user of etcd", () => {
  const user = { user: "situ", password: "sesame" };

  test("gets a token, and another one when it has run out, however that is told", async () => {
    member.user = { name: "situ", password: "sesame" };
    member.put("secret");
    const gateway = gatewayTo([member.url], user);
    expect((await gateway.get("a"))?.value).toBe("secret");
    member.token = "token-2";
    expect((await gateway.get("a"))?.value).toBe("secret");
    member.token = "token-3";
    // As 3.4.23 does it.
    member.fault = atFirst("reset");
    expect((await gateway.get("a"))?.value).toBe("secret");
    expect(member.paths().filter((path) => path === "/v3/auth/authenticate")).toHaveLength(3);
  });

  test("with a wrong password, or without one, is refused", async () => {
    member.user = { name: "situ", password: "abracadabra" };
    const said = await failure(gatewayTo([member.url], user).get("a"), "SITU_CONFIG");
    expect(said).toContain("invalid user ID or password");
    expect(await failure(gatewayTo([member.url]).get("a"), "SITU_CONFIG")).toContain(
      "give a user and a password of etcd",
    );
  });

  test("is not needed by an etcd without authentication", async () => {
    member.put("open");
    expect((await gatewayTo([member.url], user).get("a"))?.value).toBe("open");
  });
});

test("with TLS, both ends have certificates, and those of others are refused", async () => {
  const secure = await FakeEtcd.start(TLS);
  try {
    secure.put("secret");
    const { ca, cert, key } = TLS as { ca: string; cert: string; key: string };
    expect((await gatewayTo([secure.url], { ca, cert, key }).get("a"))?.value).toBe("secret");
    for (const wrong of [{ ca }, { cert, key }, { ...OTHER_TLS, ca } as Partial<EtcdOptions>]) {
      await failure(gatewayTo([secure.url], wrong).get("a"), "SITU_UNREACHABLE");
    }
  } finally {
    await secure.close();
  }
});

test("a wait for etcd ends when its client is closed", async () => {
  member.fault = () => "silent";
  const gateway = gatewayTo([member.url]);
  const waiting = failure(gateway.get("a"), "SITU_CLOSED");
  await eventually("it has asked", async () => member.asked.length > 0);
  gateway.close();
  await waiting;
  await failure(gateway.get("a"), "SITU_CLOSED");
});

describe("configurations", () => {
  const first = configurationOf(
    { nodes: [{ id: 0, host: "h", port: 1 }], cluster: "shop" },
    "a test",
  );
  const successor = (from: Configuration): Configuration => ({
    ...from,
    configurationId: from.configurationId + 1,
  });

  async function opened(endpoints: string[], pollMs = 60_000): Promise<EtcdConfigurations> {
    const record = new EtcdRecord(gatewayTo(endpoints), "shop");
    await record.replace(await record.read(), { identity: "x", configuration: first });
    return new EtcdConfigurations(record, await record.read(), pollMs);
  }

  test("a swap whose answer is lost is found to have been done", async () => {
    const configurations = await opened([member.url]);
    member.fault = atFirst("lost", "/v3/kv/txn");
    expect(await configurations.swap(first, successor(first))).toBe(true);
    expect(configurations.current.configurationId).toBe(2);
  });

  test("a swap whose answer is lost, and that another was quicker than, is found to have failed", async () => {
    const configurations = await opened([member.url]);
    const rival = new EtcdRecord(gatewayTo([member.url]), "shop");
    const there = await rival.read();
    let isFirst = true;
    member.fault = (path) => {
      if (path !== "/v3/kv/txn" || !isFirst) return undefined;
      isFirst = false;
      void rival.replace(there, {
        identity: "x",
        configuration: { ...successor(first), leaseMs: 99 },
      });
      return "silent";
    };
    expect(await configurations.swap(first, successor(first))).toBe(false);
    expect(configurations.current.leaseMs).toBe(99);
  });

  test("a swap that nobody answers fails, and nobody knows; reading tells later", async () => {
    const configurations = await opened([member.url]);
    member.fault = (path) => (path === "/v3/kv/txn" ? "lost" : undefined);
    await failure(configurations.swap(first, successor(first)), "SITU_UNREACHABLE");
    expect(configurations.current.configurationId).toBe(1);
    expect((await configurations.read()).configurationId).toBe(2);
  });

  test("changes are heard of by a watch, at once and in order", async () => {
    const configurations = await opened([member.url]);
    const heard: number[] = [];
    const stop = configurations.watch(({ configurationId }) => heard.push(configurationId));
    await eventually("somebody watches", async () => member.watchers === 1);
    const { body } = member.asked.find(({ path }) => path === "/v3/watch")!;
    expect(body).toMatchObject({ create_request: { start_revision: "3" } });
    const rival = new EtcdConfigurations(...(await rivalOf([member.url])));
    await rival.swap(first, successor(first));
    await eventually("it is heard", async () => heard.length === 1);
    // A watch that etcd has given up, with its connection left open; and one whose connection breaks.
    member.tell({ result: { canceled: true, compact_revision: "7" } });
    await eventually("the watch is left", async () => member.watchers === 0);
    await eventually("another begins", async () => member.watchers === 1);
    await rival.swap(rival.current, successor(rival.current));
    await eventually("it is heard", async () => heard.length === 2);
    expect(heard).toEqual([2, 3]);
    stop();
    await eventually("nobody watches", async () => member.watchers === 0);
    await rival.swap(rival.current, successor(rival.current));
    expect(heard).toEqual([2, 3]);
  });

  test("changes are found by looking, too, if no watch says anything", async () => {
    const configurations = await opened([member.url], 20);
    member.fault = (path) => (path === "/v3/watch" ? "silent" : undefined);
    const heard: number[] = [];
    const stop = configurations.watch(({ configurationId }) => heard.push(configurationId));
    const rival = new EtcdConfigurations(...(await rivalOf([member.url])));
    await rival.swap(first, successor(first));
    await eventually("it is heard", async () => heard.length === 1);
    // A damaged key, and an etcd that is gone, change nothing.
    const asked = (): number => member.paths().filter((path) => path === "/v3/kv/range").length;
    member.put("damaged");
    const before = asked();
    await eventually("it was looked at", async () => asked() > before + 2);
    expect(configurations.current.configurationId).toBe(2);
    stop();
  });

  async function rivalOf(
    endpoints: string[],
  ): Promise<ConstructorParameters<typeof EtcdConfigurations>> {
    const record = new EtcdRecord(gatewayTo(endpoints), "shop");
    return [record, await record.read()];
  }
});

describe("addresses of etcd", () => {
  test("are hosts with ports, or URLs", () => {
    expect(endpointsOf(["a:1", "https://b:2", "http://c:80", "[::1]:3"], false, "x")).toEqual([
      "http://a:1",
      "https://b:2",
      "http://c",
      "http://[::1]:3",
    ]);
    expect(endpointsOf("a:1", true, "x")).toEqual(["https://a:1"]);
  });

  test.each([[[]], [undefined], [7], ["a"], [["http://a:1/v3"]], [["http://u:p@a:1"]], [[null]]])(
    "%j is refused",
    (given) => {
      failureSync("SITU_CONFIG", () => endpointsOf(given, false, "x"));
    },
  );
});
