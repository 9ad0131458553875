/** Messages that nobody answers: they arrive in order, and not where they are not wanted, of another configuration, or from whom they must not. */

import { afterEach, expect, test } from "vitest";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { eventually } from "../helpers/cluster.ts";

const KIND = 90;
const open: TcpEndpoint[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((endpoint) => endpoint.close()));
});

async function pair(
  posted?: (from: number, word: number) => void,
): Promise<{ from: TcpEndpoint; to: TcpEndpoint }> {
  const to = await openTcp({
    self: 1,
    nodes: new Map(),
    configurationId: 1,
    cluster: "one way",
    ...(posted === undefined
      ? {}
      : { posted: (sender, _kind, body) => posted(sender.node, body.word()) }),
  });
  open.push(to);
  await to.listen({ host: "127.0.0.1", port: 0 });
  const nodes = new Map([[1, { host: "127.0.0.1", port: to.address().port }]]);
  const from = await openTcp({ self: 0, nodes, configurationId: 1, cluster: "one way" });
  open.push(from);
  return { from, to };
}

test("arrive in order, and nothing of another configuration", async () => {
  const words: number[] = [];
  const { from, to } = await pair((sender, word) => {
    expect(sender).toBe(0);
    words.push(word);
  });
  for (let i = 0; i < 100; i++) from.post(1, KIND, (out) => out.word(i));
  await eventually("all are there", async () => words.length === 100);
  expect(words).toEqual(Array.from({ length: 100 }, (_, i) => i));
  expect(from.counters.repliesReceived).toBe(0);
  to.configurationId = 2;
  from.post(1, KIND, (out) => out.word(-1));
  await eventually("it was dropped", async () => to.counters.stale === 1);
  from.configurationId = 2;
  from.post(1, KIND, (out) => out.word(100));
  await eventually("the next one is there", async () => words.length === 101);
  expect(words[100]).toBe(100);
});

test("an end that takes none, or that refuses one, ends the connection; the next message makes another", async () => {
  const { from } = await pair();
  from.post(1, KIND, (out) => out.word(1));
  await eventually("the connection has ended", async () => from.counters.connections === 0);
  let refusals = 0;
  const other = await pair((_, word) => {
    if (word > 0) return;
    refusals++;
    throw new SituError("SITU_PERMISSION", "not you");
  });
  other.from.post(1, KIND, (out) => out.word(0));
  await eventually(
    "it was refused",
    async () => refusals === 1 && other.from.counters.connections === 0,
  );
  other.from.post(1, KIND, (out) => out.word(0));
  await eventually("it was refused again", async () => refusals === 2);
});

test("to nobody, or of nonsense, are dropped", async () => {
  const words: number[] = [];
  const { from } = await pair((_, word) => words.push(word));
  from.post(7, KIND, (out) => out.word(1));
  from.post(1, KIND, () => {
    throw new SituError("SITU_TOO_LARGE", "does not fit");
  });
  from.post(1, KIND, (out) => out.word(2));
  await eventually("what makes sense is there", async () => words.length === 1);
  expect(words).toEqual([2]);
});
