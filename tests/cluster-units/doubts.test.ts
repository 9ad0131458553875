/**
 * What became of a request whose node has left, by what members say: over an endpoint in the hands of the test. A call
 * may have been tried by several nodes, one after the other, all under one origin: that one of them did nothing says
 * nothing about the others.
 */

import { describe, expect, test } from "vitest";
import { Call, CallInDoubt, encodeReturned, type Returned } from "../../src/cluster/call.ts";
import { ClusterClient } from "../../src/cluster/client.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { initialPlacement } from "../../src/cluster/planning/planning.ts";
import { Deadline } from "../../src/cluster/session.ts";
import { Submit, SubmitInDoubt } from "../../src/cluster/submit.ts";
import { View } from "../../src/cluster/view.ts";
import { Begun, Doubts } from "../../src/database/remote/doubts.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { CALL_OUTCOME, OUTCOME } from "../../src/protocols/kinds.ts";
import { Part, WriteList } from "../../src/protocols/writes.ts";
import { SituError, type SituErrorCode } from "../../src/runtime/errors.ts";
import { FakeEndpoint, type Sent } from "./fake-endpoint.ts";

const GONE = 0;
const ORIGIN = { session: "-1 a client", number: 7 };
const NUMBERED = { session: "s", number: 3 };
const TIMEOUT_MS = 5_000;
const UNKNOWN = 0;
const COMMITTED = 1;
const ABORTED = 2;

function viewOf(configurationId: number, ids: readonly number[]): View {
  const nodes = ids.map((id) => ({ id, host: "test", port: id, instance: `${id}` }));
  // Partition 0 is that of node 0 first, and then of node 1, which was a copy.
  const placement = initialPlacement(nodes, 3, 2).map((each) => ({
    ...each,
    primary: ids[0],
    backups: ids.slice(1, 3),
  }));
  const configuration = configurationOf(
    { nodes, partitions: 3, backups: 2, placement, configurationId, manager: ids[0], leaseMs: 100 },
    "a test",
  );
  return new View({ self: -1, instance: "a client", configuration, protocol: "rpc" });
}

/** A request in doubt at node 0, which has left. */
class World {
  readonly endpoint = new FakeEndpoint(2);
  readonly driver = new Driver(this.endpoint);
  readonly client = new ClusterClient("c", { current: viewOf(2, [1, 2, 3]) });
  readonly doubts: Doubts;
  readonly begun: Begun;
  readonly #time: Deadline;

  constructor() {
    const { endpoint, driver, client } = this;
    endpoint.configurationId = 2;
    this.#time = new Deadline(endpoint.clock, TIMEOUT_MS);
    this.begun = new Begun(viewOf(1, [0, 1, 2, 3]), this.#time);
    const connection = { endpoint, driver, client, timeoutMs: TIMEOUT_MS, readsByVerb: false };
    this.doubts = new Doubts(connection, async () => {});
  }

  call(): Promise<Returned | undefined> {
    const called = { procedure: "deposit", values: [], isPassedOn: true, origin: ORIGIN };
    const message = new Call(GONE, NUMBERED, called, this.#time);
    message.error = lost();
    return this.doubts.ofCall(new CallInDoubt(message, called), called, this.begun);
  }

  async submit(): Promise<string> {
    const list = new WriteList(new Writer());
    list.put(5, 0, new Int32Array(2), 0, 2);
    const parts = new Map([[GONE, new Part(list.words(), list.count)]]);
    const submitted = { parts, executedIn: 1, origin: ORIGIN };
    const message = new Submit(GONE, NUMBERED, submitted, this.#time);
    message.error = lost();
    const doubt = new SubmitInDoubt(message);
    return (await this.doubts.ofSubmit(doubt, parts, this.begun, ORIGIN)).kind;
  }

  /** What goes to the members next. */
  async asked(kind: number): Promise<Sent[]> {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    const sent = this.endpoint.take();
    expect(sent.map((each) => [each.kind, each.to])).toEqual([1, 2, 3].map((to) => [kind, to]));
    return sent;
  }
}

function lost(): SituError {
  return new SituError("SITU_LOST", "a reply was lost");
}

function ran(sent: Sent, returned: Returned): void {
  sent.reply((out) => {
    out.word(1);
    encodeReturned(out, returned);
  });
}

function didNothing(sent: Sent, code: SituErrorCode): void {
  ran(sent, { isDone: false, error: new SituError(code, "nothing was begun") });
}

/** A member that remembers everything answers. */
function answer(sent: Sent, outcome: number, completeMs = 1e6): void {
  sent.reply((out) => {
    out.word(outcome);
    out.wide(completeMs);
    out.word(0);
  });
}

const notRun = (sent: Sent): void => sent.reply((out) => void out.word(0));

describe("a call that several nodes have tried", () => {
  test("is what the one says that has done it, not what an earlier one could not", async () => {
    const world = new World();
    const ended = world.call();
    const [first, second, third] = await world.asked(CALL_OUTCOME);
    didNothing(first, "SITU_UNREACHABLE");
    notRun(third);
    ran(second, { isDone: true, value: 42 });
    expect(await ended).toEqual({ isDone: true, value: 42 });
  });

  test("is not called again while one of them runs it", async () => {
    const world = new World();
    const ended = world.call();
    const [first, second, third] = await world.asked(CALL_OUTCOME);
    didNothing(first, "SITU_OVERLOADED");
    notRun(third);
    second.fail("SITU_OVERLOADED");
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    world.endpoint.clock.advance(100);
    const [again] = world.endpoint.take();
    expect([again.kind, again.to]).toEqual([CALL_OUTCOME, 2]);
    ran(again, { isDone: true, value: 43 });
    expect(await ended).toEqual({ isDone: true, value: 43 });
  });

  test("was committed if a copy says so, though one of them could do nothing", async () => {
    const world = new World();
    const ended = world.call();
    const [first, second, third] = await world.asked(CALL_OUTCOME);
    didNothing(first, "SITU_UNREACHABLE");
    notRun(second);
    notRun(third);
    for (const sent of await world.asked(OUTCOME))
      answer(sent, sent.to === 3 ? COMMITTED : UNKNOWN);
    expect(await ended).toMatchObject({ isDone: false, error: { code: "SITU_UNKNOWN_OUTCOME" } });
  });

  test("is called again if nobody has done it, and all would remember", async () => {
    const world = new World();
    const ended = world.call();
    for (const sent of await world.asked(CALL_OUTCOME)) notRun(sent);
    for (const sent of await world.asked(OUTCOME)) answer(sent, UNKNOWN);
    expect(await ended).toBeUndefined();
  });
});

describe("a commit that a node has shipped for a call", () => {
  test("is not aborted because an earlier attempt of the call was", async () => {
    const world = new World();
    const ended = world.submit();
    const [first, second, third] = await world.asked(OUTCOME);
    // It has settled the first attempt, whose coordinator died; the second one was committed.
    answer(second, ABORTED);
    answer(third, COMMITTED);
    answer(first, COMMITTED);
    expect(await ended).toBe("committed");
  });

  test("is aborted if the new primary would know of it", async () => {
    const world = new World();
    const ended = world.submit();
    const [first, second, third] = await world.asked(OUTCOME);
    answer(first, UNKNOWN);
    answer(second, ABORTED);
    answer(third, UNKNOWN);
    expect(await ended).toBe("aborted");
  });

  test("is unknown if the new primary has forgotten, whatever became of an earlier attempt", async () => {
    const world = new World();
    const ended = world.submit();
    const [first, second, third] = await world.asked(OUTCOME);
    answer(first, UNKNOWN, 0);
    answer(second, ABORTED);
    answer(third, UNKNOWN);
    expect(await ended).toBe("unknown");
  });
});
