/** `situ cluster status` against real nodes. */

import { afterAll, beforeAll, expect, test } from "vitest";
import { open } from "../../src/index.ts";
import { RealCluster, situ } from "../helpers/cluster.ts";

let cluster: RealCluster;

beforeAll(async () => {
  cluster = await RealCluster.start({ nodes: 2, secret: "sesame" });
});
afterAll(() => cluster.remove());

/** Nobody listens there. */
const NOBODY = "127.0.0.1:1";

function status(...more: string[]): ReturnType<typeof situ> {
  const args = ["cluster", "status", "--connect", `${NOBODY},${cluster.connect[0]}`, ...more];
  return situ(args, { SITU_SECRET: "sesame" });
}

test("a client needs any one of the nodes it was given, in any order", async () => {
  const [first, second] = cluster.connect;
  for (const connect of [[second], [NOBODY, first], [second, NOBODY, first]]) {
    const db = await open({ connect, secret: "sesame" });
    await db.close();
  }
});

test("the health of a cluster, its nodes and partitions; and who does not answer", async () => {
  const { code, stdout, stderr } = await status();
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^healthy: any 1 of 2 nodes may fail; the nodes are fixed/);
  expect(stdout).toContain("cluster situ, configuration 1: 2 nodes, 256 partitions with 2 copies");
  expect(stdout).toContain(`0  ${cluster.connect[0]}`);

  await cluster.nodes[1].stop();
  const less = await status("--json", "--timeout", "1500ms");
  const { health, nodes } = JSON.parse(less.stdout) as Record<string, never>;
  expect(less.code).toBe(1);
  expect(health).toMatchObject({ state: "unavailable", silent: [1], lost: [] });
  expect(nodes).toMatchObject([{ isAnswering: true }, { id: 1, isAnswering: false }]);
});

test("what is wrong is told: the secret, the address, the name", async () => {
  const refused = await situ(["cluster", "status", "--connect", cluster.connect[0]], {
    SITU_SECRET: "abracadabra",
  });
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("SITU_SECRET")]);
  expect((await situ(["cluster", "status", "--connect", "nowhere"])).code).toBe(2);
  expect((await situ(["cluster", "stats"])).stderr).toContain("unknown command cluster");
});
