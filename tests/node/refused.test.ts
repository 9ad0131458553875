/**
 * Those whom a node does not talk to: each gets a code, and is counted. And calls that make no sense:
 * the node stays up, and others see nothing of it.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePorts } from "../../benchmarks/harness/free-ports.ts";
import { Call } from "../../src/cluster/call.ts";
import { CLIENT, type Request } from "../../src/fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { WRITE } from "../../src/fabric/verbs.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { destroy, open, SituError, type Table } from "../../src/index.ts";
import { SituNode } from "../../src/node/node.ts";
import { nodeConfigurationOf } from "../../src/node/node-configuration.ts";
import { rethrow } from "../../src/protocols/driver.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { Random } from "../../src/runtime/random.ts";
import { Account } from "../cluster/procedures.ts";
import { mutated, noise } from "../helpers/cluster-fuzz.ts";
import { fixedSeed } from "../helpers/seed.ts";

const SEED = fixedSeed(5);
const ROUNDS = 3_000;
/** An account that no mutation of a sound call creates. */
const NOBODY = 0x55555555;
const AT_ONCE = 50;
const PROCEDURES = fileURLToPath(
  new URL("../../dist/tests/cluster/procedures.js", import.meta.url),
);
const TABLES = [Account] as unknown as readonly Table[];
const SECRET = "known to all of us";
const NODE_SECRET = "known to nodes";
const CONFIGURATION = 7;

let folder: string;
let node: SituNode;
let address: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "situ-node-test-"));
  const [port] = await freePorts(1);
  const cluster = {
    nodes: [{ id: 0, host: "127.0.0.1", port }],
    configurationId: CONFIGURATION,
    cluster: "ours",
  };
  const given = {
    id: 0,
    path: "store",
    cluster,
    secret: SECRET,
    nodeSecret: NODE_SECRET,
    durability: "none",
    memoryBytes: 32 * 2 ** 20,
    procedures: [PROCEDURES],
  };
  node = await SituNode.start(nodeConfigurationOf(given, folder, "test"), { died: rethrow });
  address = `127.0.0.1:${port}`;
});

afterAll(async () => {
  await node?.close();
  await destroy(join(folder, "store"));
  rmSync(folder, { recursive: true, force: true });
});

const sound = { cluster: "ours", secret: SECRET };

async function code(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    expect(error).toBeInstanceOf(SituError);
    return (error as SituError).code;
  }
  return "no error";
}

async function refusedAs(wanted: string): Promise<number> {
  return (await node.stats()).counters.refused[wanted] ?? 0;
}

function send(
  endpoint: TcpEndpoint,
  kind: number,
  encode: Request["encode"],
): Promise<string | undefined> {
  return new Promise((resolve) => {
    endpoint.send(0, {
      kind,
      encode,
      replied: () => resolve(undefined),
      failed: ({ code: why }) => resolve(why),
    });
  });
}

function client(configurationId = CONFIGURATION): Promise<TcpEndpoint> {
  const nodes = new Map([[0, { host: node.host, port: node.port }]]);
  return openTcp({ self: CLIENT, nodes, configurationId, ...sound });
}

describe("refused, with a code, and counted", () => {
  test("a wrong secret, or none", async () => {
    const before = await refusedAs("SITU_SECRET");
    const wrong = open({ connect: address, cluster: "ours", secret: "wrong" });
    expect(await code(wrong)).toBe("SITU_SECRET");
    expect(await code(open({ connect: address, cluster: "ours" }))).toBe("SITU_SECRET");
    expect(await refusedAs("SITU_SECRET")).toBeGreaterThanOrEqual(before + 2);
  });

  test("the name of another cluster", async () => {
    const before = await refusedAs("SITU_CONFIG");
    const other = open({ connect: address, secret: SECRET, cluster: "theirs" });
    expect(await code(other)).toBe("SITU_CONFIG");
    expect(await refusedAs("SITU_CONFIG")).toBeGreaterThan(before);
  });

  test("another configuration number", async () => {
    for (const configurationId of [CONFIGURATION - 1, CONFIGURATION + 1]) {
      const { stale } = (await node.stats()).counters;
      const endpoint = await client(configurationId);
      try {
        const answer = await send(endpoint, kinds.READ, (out) => out.word(0));
        expect(answer).toBe("SITU_STALE_CONFIGURATION");
      } finally {
        await endpoint.close();
      }
      expect((await node.stats()).counters.stale).toBeGreaterThan(stale);
    }
  });

  test("messages that only coordinators send", async () => {
    const endpoint = await client();
    try {
      for (const kind of [kinds.LOCK, kinds.READ_LOCK, kinds.LOG, kinds.COMMIT, kinds.ABORT]) {
        const body = (out: Writer): void => out.words(new Int32Array(16), 0, 16);
        expect(await send(endpoint, kind, body)).toBe("SITU_PERMISSION");
      }
      expect(await send(endpoint, 200, () => {})).toBe("SITU_PROTOCOL");
    } finally {
      await endpoint.close();
    }
  });

  test("a client that claims to be a node: it may neither send them nor write to memory", async () => {
    const before = await refusedAs("SITU_SECRET");
    const nodes = new Map([[0, { host: node.host, port: node.port }]]);
    const as = { self: 1, nodes, configurationId: CONFIGURATION, ...sound };
    const body = (out: Writer): void => out.words(new Int32Array(16), 0, 16);
    const answers = async (nodeSecret: string | undefined): Promise<(string | undefined)[]> => {
      const endpoint = await openTcp({
        ...as,
        ...(nodeSecret === undefined ? {} : { nodeSecret }),
      });
      try {
        return [await send(endpoint, kinds.ABORT, body), await send(endpoint, WRITE, body)];
      } finally {
        await endpoint.close();
      }
    };
    expect(await answers(SECRET)).toEqual(["SITU_SECRET", "SITU_SECRET"]);
    expect(await answers(undefined)).toEqual(["SITU_SECRET", "SITU_SECRET"]);
    expect(await refusedAs("SITU_SECRET")).toBeGreaterThan(before);
    // A node is heard; what it sends here makes no sense.
    expect(await answers(NODE_SECRET)).not.toContain("SITU_SECRET");
  });
});

test(`calls that make no sense (seed ${SEED})`, async () => {
  const random = new Random(SEED);
  const db = await open({ connect: address, ...sound, tables: TABLES });
  const endpoint = await client();
  const session = "garbage";
  expect(await send(endpoint, kinds.OPEN_CALLS, (out) => out.text(session))).toBeUndefined();
  const codes = new Map<string, number>();
  try {
    await db.transact((tx) => tx.put(Account, { id: 1, balance: 5n }));
    const call = async (number: number): Promise<void> => {
      const name = ["deposit", "echo", "transfer", "nobody"][random.below(4)];
      const values = [[1, 0n], ["x", { a: [1n] }], [1, NOBODY, 3n], []][random.below(4)];
      const called = { procedure: name, values, isPassedOn: false };
      const out = new Writer();
      new Call(0, { session, number }, called, { leftMs: () => 50 }).encode(out);
      const whole = out.views.i32.slice(0, out.at);
      const words = random.below(8) === 0 ? noise(random) : mutated(whole, random);
      const answer = await send(endpoint, kinds.CALL, (to) => to.words(words, 0, words.length));
      codes.set(answer ?? "answered", (codes.get(answer ?? "answered") ?? 0) + 1);
    };
    // Not all at once: who is not served for long counts as lost.
    for (let first = 0; first < ROUNDS; first += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, (_, i) => call(first + i)));
    }
    expect([...codes.keys()]).toEqual(expect.arrayContaining(["answered", "SITU_PROTOCOL"]));
    expect(await db.call("echo", ["still there"])).toEqual(["still there"]);
    expect((await db.get(Account, 1))?.balance).toBe(5n);
    const { prepared, open: underWay } = await node.stats();
    expect({ prepared, underWay }).toEqual({ prepared: 0, underWay: 0 });
  } finally {
    await endpoint.close();
    await db.close();
  }
});
