/** docs/FAULTS.md, "Network and cluster": what concerns clients. Retries, vanishing, partitions, epochs. */

import { describe, expect, test } from "vitest";
import { COMMIT, LOCK, LOG, READ, SUBMIT } from "../../src/protocols/kinds.ts";
import { Account, balancesOf, FIRST_BALANCE, LONG_MS, Scene, transfer } from "./scene.ts";

describe("reply lost and the client retries", () => {
  test("applied once, same outcome", async () => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const client = await scene.client();
    const before = scene.served(SUBMIT);
    const lost = { kind: "loss", probability: 1, from: 0, to: client.id } as const;
    scene.when("sent", SUBMIT, () => {
      scene.fabric.addFault(lost);
      scene.fabric.at(scene.fabric.nowUs + 2_500_000, () => scene.fabric.removeFault(lost));
    });
    const moved = await scene.run(transfer(client, a, b));
    expect(moved.kind).toBe("ok");
    expect(scene.served(SUBMIT) - before).toBeGreaterThan(1);
    scene.rest();
    expect([scene.balance(a), scene.balance(b)]).toEqual([FIRST_BALANCE - 1n, FIRST_BALANCE + 1n]);
    expect(scene.nodes[0].service.coordinator.counters.committed).toBe(2);
  });

  test("a blind write is not done again, also after another one", async () => {
    const scene = new Scene();
    const a = scene.accountAt(0);
    scene.open([a]);
    const [client, other] = [await scene.client(), await scene.client()];
    // The first copy of the request is served at once, another one a long time later.
    const from = client.id;
    const delay = { probability: 1, minUs: 5e6, maxUs: 5e6 };
    scene.fabric.addFault({ kind: "duplicate", frames: "requests", from, ...delay });
    const put = (who: typeof client, balance: bigint) =>
      who.worker.transact((tx) => tx.put(Account, { id: a, balance }));
    expect((await scene.run(put(client, 1n))).kind).toBe("ok");
    expect((await scene.run(put(other, 2n))).kind).toBe("ok");
    scene.pass(LONG_MS);
    scene.rest();
    expect(scene.balance(a)).toBe(2n);
  });

  test('one who gives up is told "unknown", never "aborted"', async () => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const client = await scene.client();
    const { id } = client;
    scene.when("sent", SUBMIT, () => scene.fabric.partition(0, id));
    const moved = await scene.run(transfer(client, a, b));
    expect(moved.kind).toBe("unknown");
    scene.rest();
    expect(scene.balance(b)).toBe(FIRST_BALANCE + 1n);
  });
});

describe("client vanishes in a transaction: locks gone", () => {
  const moments = [
    { name: "when its reads are served", what: "served", kind: READ },
    { name: "right after SUBMIT was sent", what: "sent", kind: SUBMIT },
    { name: "when SUBMIT is served", what: "served", kind: SUBMIT },
    { name: "after a primary has locked", what: "served", kind: LOCK },
    { name: "after a backup has logged", what: "served", kind: LOG },
    { name: "after a primary has committed", what: "served", kind: COMMIT },
  ] as const;
  test.each(moments)("$name", async ({ what, kind }) => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const client = await scene.client();
    const other = await scene.client();
    scene.when(what, kind, () => client.vanish());
    scene.start(transfer(client, a, b));
    await scene.work(LONG_MS);
    expect(client.isGone).toBe(true);
    scene.rest();
    const sum = (scene.balance(a) ?? 0n) + (scene.balance(b) ?? 0n);
    expect(sum).toBe(2n * FIRST_BALANCE);
    // Whoever comes next finds nothing in his way.
    expect((await scene.run(transfer(other, b, a))).kind).toBe("ok");
    scene.rest();
  });
});

describe("majority/minority and one-way partitions", () => {
  test.each(["one-way", "two-way"])(
    "%s: what cannot be logged is not acknowledged",
    async (how) => {
      const scene = new Scene();
      const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
      scene.open([a, b]);
      const client = await scene.client();
      const reader = await scene.client();
      scene.fabric.partition(0, 2);
      if (how === "two-way") scene.fabric.partition(2, 0);
      const moved = scene.start(transfer(client, a, b));
      await scene.work(LONG_MS);
      expect(moved.result?.kind).toBe("unknown");
      // Both rows are locked, so that nobody sees what may yet come, or not.
      for (const id of [0, 1]) expect(scene.nodes[id].service.participant.prepared).toBe(1);
      expect(scene.balances(2).get(`n${b}`)).toBe(FIRST_BALANCE);
      expect((await scene.run(balancesOf(reader, [b]))).kind).toBe("failed");
      scene.rest();
      expect(scene.balance(b)).toBe(FIRST_BALANCE + 1n);
    },
  );

  test("a primary that is not reached before the locks are held: aborted, nothing is left", async () => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const client = await scene.client();
    scene.when("sent", SUBMIT, () => scene.fabric.partition(0, 1));
    const moved = scene.start(transfer(client, a, b));
    await scene.work(LONG_MS);
    expect(["failed", "unknown"]).toContain(moved.result?.kind);
    scene.rest();
    expect([scene.balance(a), scene.balance(b)]).toEqual([FIRST_BALANCE, FIRST_BALANCE]);
  });
});

describe("another configuration number is refused at the receiver", () => {
  test.each([-1, 1])("a client whose configuration number differs by %d", async (by) => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const stale = await scene.client(scene.configuration.configurationId + by);
    const before = scene.nodes[0].endpoint.counters.stale;
    const seen = await scene.run(balancesOf(stale, [a, b]));
    // It learns of no other one, and tries until its time is over.
    const told = {
      code: "SITU_TIMEOUT",
      message: expect.stringMatching(/nothing was committed: .*configuration/),
    };
    expect(seen).toMatchObject({ kind: "failed", error: told });
    const written = await scene.run(
      stale.worker.transact((tx) => tx.put(Account, { id: a, balance: 0n })),
    );
    expect(written).toMatchObject({ kind: "failed", error: told });
    expect(scene.nodes[0].endpoint.counters.stale).toBeGreaterThan(before);
    scene.rest();
    expect(scene.balance(a)).toBe(FIRST_BALANCE);
  });

  test("a node that was paused and has an old one commits nothing elsewhere", async () => {
    const scene = new Scene();
    const [a, b] = [scene.accountAt(0), scene.accountAt(1)];
    scene.open([a, b]);
    const client = await scene.client();
    // Node 0 alone is one configuration behind when it begins to coordinate.
    scene.when("served", SUBMIT, () => {
      scene.nodes[0].endpoint.configurationId = scene.configuration.configurationId - 1;
    });
    const moved = await scene.run(transfer(client, a, b));
    expect(moved.kind).not.toBe("ok");
    expect(scene.nodes[1].endpoint.counters.stale).toBeGreaterThan(0);
    expect(scene.nodes[1].service.participant.prepared).toBe(0);
    expect(scene.balances(1).get(`n${b}`)).toBe(FIRST_BALANCE);
    expect(scene.balances(2).get(`n${a}`)).toBe(FIRST_BALANCE);
  });
});
