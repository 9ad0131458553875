/** The driver of coroutines, and what sends TRUNCATE, over an endpoint in the hands of the test. */

import { describe, expect, test } from "vitest";
import type { Incoming, NodeId } from "../../src/fabric/fabric.ts";
import { type Reader, Writer } from "../../src/fabric/wire.ts";
import { ABORTED, Coordinator, type Held } from "../../src/protocols/coordinator.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { ABORT, COMMIT, DECIDE, LOCK, LOG, TRUNCATE } from "../../src/protocols/kinds.ts";
import { Message, OK, OVER, type Routine } from "../../src/protocols/message.ts";
import { firstSequenceOf, Sequences } from "../../src/protocols/names.ts";
import { Truncations } from "../../src/protocols/phases/truncate.ts";
import { protocolOf } from "../../src/protocols/places.ts";
import { Head } from "../../src/protocols/records.ts";
import { Part, WriteList } from "../../src/protocols/writes.ts";
import { SituError } from "../../src/runtime/errors.ts";
import {
  DEADLINE_LOOK_MS,
  MAX_EPOCH_GAP,
  MAX_RECORD_BYTES,
  MAX_SEQUENCE_SPAN,
  RESEND_MAX_MS,
  TRUNCATE_BATCH,
  TRUNCATE_MS,
} from "../../src/runtime/limits.ts";
import type { Placement } from "../../src/tables/partitions.ts";
import type { DecisionLog } from "../../src/tables/served/contract.ts";
import { FakeEndpoint, type Sent } from "./fake-endpoint.ts";

class Ask extends Message {
  readonly kind = 99;
  override readonly isInsistent: boolean;
  answer = 0;

  constructor(to: NodeId, isInsistent = false) {
    super(to);
    this.isInsistent = isInsistent;
  }

  encode(out: Writer): void {
    out.word(this.to * 10);
  }

  protected decode(reply: Reader): void {
    this.answer = reply.word();
  }
}

function* ask(...messages: Ask[]): Routine<(number | string)[]> {
  yield messages;
  return messages.map(({ error, answer }) => error?.code ?? answer);
}

interface Ended {
  results: unknown[];
  errors: unknown[];
}

function run<T>(driver: Driver, routine: Routine<T>, timeoutMs = 1_000): Ended {
  const ended: Ended = { results: [], errors: [] };
  driver.run(
    routine,
    timeoutMs,
    (result) => ended.results.push(result),
    (error) => ended.errors.push(error),
  );
  return ended;
}

describe("a batch", () => {
  test("is sent at once; the coroutine goes on when all of it has ended, in any order", () => {
    const endpoint = new FakeEndpoint();
    const driver = new Driver(endpoint);
    const ended = run(driver, ask(new Ask(1), new Ask(2), new Ask(3)));
    const sent = endpoint.take();
    expect(sent.map(({ to, words }) => [to, ...words])).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
    expect([driver.running, driver.messages, driver.roundTrips]).toEqual([1, 3, 1]);
    sent[2].reply((out) => out.word(7));
    sent[0].fail("SITU_UNKNOWN_TABLE");
    expect(ended.results).toEqual([]);
    sent[1].reply((out) => out.word(8));
    expect(ended.results).toEqual([["SITU_UNKNOWN_TABLE", 8, 7]]);
    endpoint.clock.advance(DEADLINE_LOOK_MS);
    expect([driver.running, endpoint.clock.waiting]).toEqual([0, 0]);
  });

  test("a reply that makes no sense is the message's error; what a coroutine throws is told", () => {
    const endpoint = new FakeEndpoint();
    const driver = new Driver(endpoint);
    const ended = run(driver, ask(new Ask(1)));
    endpoint.take()[0].reply();
    expect(ended.results).toEqual([["SITU_PROTOCOL"]]);

    function* fails(): Routine<void> {
      yield [new Ask(1)];
      throw new Error("its own");
    }
    const failed = run(driver, fails());
    endpoint.take()[0].reply((out) => out.word(1));
    expect(failed.errors).toEqual([expect.objectContaining({ message: "its own" })]);
    expect(driver.running).toBe(0);
  });
});

describe("a coroutine whose time is over", () => {
  test("goes on, though nothing was heard; a reply that comes later is not", () => {
    const endpoint = new FakeEndpoint();
    const driver = new Driver(endpoint);
    const [first, second] = [new Ask(1), new Ask(2)];
    const ended = run(driver, ask(first, second), 700);
    const sent = endpoint.take();
    sent[1].reply((out) => out.word(5));
    endpoint.clock.advance(700 - 1);
    expect(ended.results).toEqual([]);
    endpoint.clock.advance(1 + DEADLINE_LOOK_MS);
    expect(ended.results).toEqual([["SITU_LOST", 5]]);
    sent[0].reply((out) => out.word(7));
    sent[0].fail("SITU_CLOSED");
    expect([first.answer, first.error?.code]).toEqual([0, "SITU_LOST"]);
    expect([driver.running, endpoint.clock.waiting]).toEqual([0, 0]);
  });

  test("does not end what is insistent, and sends nothing else any more", () => {
    const endpoint = new FakeEndpoint();
    const driver = new Driver(endpoint);
    function* both(): Routine<(string | undefined)[]> {
      const [insistent, other] = [new Ask(1, true), new Ask(2)];
      yield [insistent, other];
      const late = new Ask(3);
      yield [late];
      return [insistent, other, late].map(({ error }) => error?.code);
    }
    const ended = run(driver, both(), 700);
    const [insistent] = endpoint.take();
    endpoint.clock.advance(60_000);
    expect(ended.results).toEqual([]);
    // Nothing is left to happen but the reply.
    expect([endpoint.clock.waiting, endpoint.take().length]).toEqual([0, 0]);
    insistent.reply((out) => out.word(5));
    expect(ended.results).toEqual([[undefined, "SITU_LOST", "SITU_LOST"]]);
    expect(endpoint.take()).toEqual([]);
  });
});

describe("what is lost", () => {
  test.each(["SITU_LOST", "SITU_OVERLOADED", "SITU_UNREACHABLE"] as const)(
    "is sent again after a pause, until the time is over: %s",
    (code) => {
      const endpoint = new FakeEndpoint();
      const driver = new Driver(endpoint);
      const ended = run(driver, ask(new Ask(1), new Ask(2)), 1_000);
      const [first, second] = endpoint.take();
      second.reply((out) => out.word(5));
      first.fail(code);
      let attempts = 1;
      for (let ms = 0; ms < 3_000 && ended.results.length === 0; ms += 10) {
        endpoint.clock.advance(10);
        for (const again of endpoint.take()) {
          expect(again.to).toBe(1);
          attempts++;
          again.fail(code);
        }
      }
      expect(ended.results).toEqual([[code, 5]]);
      expect(attempts).toBeGreaterThan(4);
      expect(attempts).toBeLessThan(40);
      endpoint.clock.advance(RESEND_MAX_MS);
      expect([endpoint.clock.waiting, endpoint.take().length]).toEqual([0, 0]);
    },
  );

  test("an answer to a later attempt counts, as if it were the first", () => {
    const endpoint = new FakeEndpoint();
    const ended = run(new Driver(endpoint), ask(new Ask(1)));
    endpoint.take()[0].fail("SITU_LOST");
    endpoint.clock.advance(RESEND_MAX_MS);
    endpoint.take()[0].reply((out) => out.word(3));
    expect(ended.results).toEqual([[3]]);
  });

  test("an insistent message is sent until it is answered, or refused", () => {
    const endpoint = new FakeEndpoint();
    const driver = new Driver(endpoint);
    const ended = run(driver, ask(new Ask(1, true)), 0);
    for (let attempt = 0; attempt < 100; attempt++) {
      endpoint.take()[0].fail("SITU_LOST");
      endpoint.clock.advance(RESEND_MAX_MS);
    }
    expect(ended.results).toEqual([]);
    endpoint.take()[0].fail("SITU_STALE_CONFIGURATION");
    expect(ended.results).toEqual([["SITU_STALE_CONFIGURATION"]]);
  });

  test("once the driver is closed nothing is sent again, not even to the own node", () => {
    const endpoint = new FakeEndpoint(1);
    let served = 0;
    const driver = new Driver(endpoint, () => {
      served++;
      throw new SituError("SITU_OVERLOADED", "no room");
    });
    const self = run(driver, ask(new Ask(1, true)));
    const other = run(driver, ask(new Ask(2, true)));
    expect(served).toBe(1);
    driver.close();
    endpoint.clock.advance(10_000);
    expect(served).toBe(1);
    expect(self.results).toEqual([["SITU_CLOSED"]]);
    endpoint.take()[0].fail("SITU_LOST");
    expect(other.results).toEqual([["SITU_CLOSED"]]);
    expect(run(driver, ask(new Ask(3))).results).toEqual([["SITU_CLOSED"]]);
    expect([driver.running, endpoint.clock.waiting]).toEqual([0, 0]);
  });
});

describe("messages to the own node", () => {
  test("are served through the same bytes, in the same call, and count no round trip", () => {
    const endpoint = new FakeEndpoint(4);
    const kinds: number[] = [];
    const driver = new Driver(endpoint, (incoming: Incoming) => {
      kinds.push(incoming.kind);
      expect(incoming.from.node).toBe(4);
      incoming.reply().word(incoming.body.word() + 1);
    });
    const ended = run(driver, ask(new Ask(4), new Ask(4)));
    expect(ended.results).toEqual([[41, 41]]);
    expect(kinds).toEqual([99, 99]);
    expect([driver.roundTrips, driver.messages]).toEqual([0, 0]);
    expect(endpoint.take()).toEqual([]);
  });

  test("may be refused, and may be answered later", () => {
    const endpoint = new FakeEndpoint(4);
    let later: (() => void) | undefined;
    const driver = new Driver(endpoint, (incoming) => {
      if (later !== undefined) throw new SituError("SITU_PERMISSION", "no");
      const ticket = incoming.defer();
      later = () => ticket.reply((out) => out.word(9));
    });
    const ended = run(driver, ask(new Ask(4), new Ask(4)));
    expect(ended.results).toEqual([]);
    later!();
    expect(ended.results).toEqual([[9, "SITU_PERMISSION"]]);
  });

  test("of kinds that another thread serves go over the endpoint", () => {
    const endpoint = new FakeEndpoint(4);
    const driver = new Driver(
      endpoint,
      () => {},
      (kind) => kind !== 99,
    );
    run(driver, ask(new Ask(4)));
    expect(endpoint.take().map(({ to }) => to)).toEqual([4]);
  });

  test("thousands one after the other need no stack", () => {
    const driver = new Driver(new FakeEndpoint(4), (incoming) => incoming.reply().word(1));
    function* many(): Routine<number> {
      let sum = 0;
      for (let i = 0; i < 50_000; i++) {
        const message = new Ask(4);
        yield [message];
        sum += message.answer;
      }
      return sum;
    }
    expect(run(driver, many()).results).toEqual([50_000]);
  });
});

describe("truncations", () => {
  const FIRST = firstSequenceOf(1);

  function started(): { endpoint: FakeEndpoint; sequences: Sequences; truncations: Truncations } {
    const endpoint = new FakeEndpoint();
    const sequences = new Sequences(6, 1, () => 2);
    const over = (sequence: number): void => sequences.end(sequence);
    const truncations = new Truncations(new Driver(endpoint), sequences, over);
    return { endpoint, sequences, truncations };
  }

  function told({ body }: Sent): { coordinator: number; low: number; sequences: number[] } {
    const reader = body();
    const coordinator = reader.word();
    const low = reader.wide();
    const sequences = Array.from({ length: reader.word() }, () => reader.wide());
    return { coordinator, low, sequences };
  }

  test("many go in one message to each backup, after a time; a sequence ends when all know", () => {
    const { endpoint, sequences, truncations } = started();
    const names = [1, 2, 3].map(() => sequences.begin());
    truncations.add(names[0], [1, 2]);
    truncations.add(names[1], [2]);
    expect(endpoint.take()).toEqual([]);
    endpoint.clock.advance(TRUNCATE_MS);
    const [toFirst, toSecond] = endpoint.take();
    expect([toFirst.kind, toFirst.to, toSecond.to]).toEqual([TRUNCATE, 1, 2]);
    expect(told(toFirst)).toEqual({ coordinator: 6, low: FIRST, sequences: [FIRST] });
    expect(told(toSecond)).toEqual({ coordinator: 6, low: FIRST, sequences: [FIRST, FIRST + 1] });
    toSecond.reply();
    expect([sequences.open, truncations.pending, sequences.low]).toEqual([2, 1, FIRST]);
    // Lost, and then told after all.
    toFirst.fail("SITU_LOST");
    endpoint.clock.advance(RESEND_MAX_MS);
    endpoint.take()[0].reply();
    expect([sequences.open, truncations.pending, sequences.low]).toEqual([1, 0, FIRST + 2]);
  });

  test("without backups a transaction is over at once; a full batch waits for no time", () => {
    const { endpoint, sequences, truncations } = started();
    truncations.add(sequences.begin(), []);
    expect([sequences.open, endpoint.clock.waiting]).toEqual([0, 0]);
    for (let i = 0; i < TRUNCATE_BATCH; i++) truncations.add(sequences.begin(), [1]);
    const [sent] = endpoint.take();
    expect(told(sent).sequences).toHaveLength(TRUNCATE_BATCH);
    sent.reply();
    expect([sequences.open, truncations.pending]).toEqual([0, 0]);
    endpoint.clock.advance(TRUNCATE_MS);
    expect(endpoint.take()).toEqual([]);
  });
});

describe("a coordinator", () => {
  const locked = (reply: Writer): void => {
    reply.word(OK);
    reply.word(0);
    reply.wide(1);
  };
  const rows = (count: number, words = 2): Part => {
    const list = new WriteList(new Writer());
    for (let i = 0; i < count; i++) list.put(5, i, new Int32Array(words).fill(i), 0, words);
    return new Part(list.words(), list.count);
  };

  function started(backups: NodeId[]): {
    endpoint: FakeEndpoint;
    coordinator: Coordinator;
    commit(parts: Map<NodeId, Part>, held?: Held): Ended;
  } {
    const endpoint = new FakeEndpoint(0);
    const placement: Placement = {
      partitions: 4,
      primaryOf: () => 1,
      backupsOf: () => backups,
      copiesOf: () => [1, ...backups],
      fillingOf: () => [],
      primarySince: () => 1,
      replicasSince: () => 1,
    };
    const protocol = protocolOf("rpc", "nic");
    const view = {
      current: {
        self: 0,
        configurationId: 1,
        placement,
        protocol,
        nodes: [0, 1, ...backups],
        memberSince: () => 1,
      },
    };
    const driver = new Driver(endpoint);
    const kept = new Set<number>();
    const decisions: DecisionLog = {
      keep: (_, sequence) => void kept.add(sequence),
      forget: (_, sequence) => void kept.delete(sequence),
      has: (_, sequence) => kept.has(sequence),
      all: () => [...kept].map((sequence) => ({ coordinator: 0, sequence })),
    };
    const coordinator = new Coordinator({
      driver,
      view,
      number: 0,
      life: 1,
      newLife: () => 2,
      decisions,
    });
    const commit = (parts: Map<NodeId, Part>, held?: Held): Ended =>
      run(driver, coordinator.commit(parts, held));
    return { endpoint, coordinator, commit };
  }

  test("aborts where clocks are far apart, and says how far they are: nothing is logged", () => {
    const { endpoint, coordinator, commit } = started([2]);
    const ended = commit(new Map([[1, rows(1)]]), heldAt(coordinator));
    const ahead = 8 + MAX_EPOCH_GAP;
    endpoint.take()[0].reply((reply) => {
      reply.word(OK);
      reply.word(0);
      reply.wide(ahead);
    });
    expect(ended.results).toEqual([ABORTED]);
    const [abort] = endpoint.take();
    expect(abort.kind).toBe(ABORT);
    expect(new Float64Array(abort.words.slice(-2).buffer)[0]).toBe(ahead);
  });

  test("refuses what no backup could be told while it still can: nothing is logged", () => {
    const { endpoint, coordinator, commit } = started([2]);
    const ended = commit(new Map([[1, rows(3, MAX_RECORD_BYTES / 8)]]));
    const [lock] = endpoint.take();
    expect(lock.kind).toBe(LOCK);
    lock.reply(locked);
    expect(ended.results).toEqual([
      { kind: "refused", error: expect.objectContaining({ code: "SITU_TOO_LARGE" }) },
    ]);
    const sent = endpoint.take();
    expect(sent.map(({ kind }) => kind)).toEqual([ABORT]);
    expect(coordinator.open).toBe(1);
    sent[0].reply();
    expect(coordinator.open).toBe(0);
  });

  test("without copies, a primary that has forgotten what it locked makes the outcome unknown", () => {
    const { endpoint, commit } = started([]);
    const ended = commit(new Map([[1, rows(1)]]));
    endpoint.take()[0].reply(locked);
    const [sent] = endpoint.take();
    expect(sent.kind).toBe(COMMIT);
    sent.fail("SITU_UNKNOWN_OUTCOME");
    expect(ended.results).toEqual([
      { kind: "unknown", error: expect.objectContaining({ code: "SITU_UNKNOWN_OUTCOME" }) },
    ]);
  });

  const heldAt = (coordinator: Coordinator): Held => ({
    name: coordinator.sequences.begin(),
    rounds: new Map([[1, 1]]),
    reads: new Set(),
    epoch: 7,
    leastEpoch: 7,
    writes: new Map([[1, rows(2)]]),
  });

  test("sends writes to locked rows beside LOG, but before where other writes go, too", () => {
    for (const isMixed of [false, true]) {
      const { endpoint, coordinator, commit } = started([2]);
      const ended = commit(isMixed ? new Map([[1, rows(1)]]) : new Map(), heldAt(coordinator));
      const sent = endpoint.take();
      expect(sent.map(({ kind }) => kind)).toEqual(isMixed ? [LOCK] : [LOCK, LOG]);
      expect(sent.map(writesIn)).toEqual(isMixed ? [3] : [2, 2]);
      sent[0].reply(locked);
      const log = isMixed ? endpoint.take()[0] : sent[1];
      expect([log.kind, writesIn(log)]).toEqual([LOG, isMixed ? 3 : 2]);
      log.reply();
      // It is the primary of nothing: it keeps its decision, and waits for the first COMMIT.
      const [decide] = endpoint.take();
      expect([decide.kind, decide.to]).toEqual([DECIDE, 0]);
      decide.reply();
      const [told] = endpoint.take();
      expect(told.kind).toBe(COMMIT);
      expect(ended.results).toEqual([]);
      told.reply();
      expect(ended.results).toEqual([{ kind: "committed" }]);
    }
  });

  test("where LOCK goes anyway, for what was read, it brings the writes to locked rows", () => {
    const { endpoint, coordinator, commit } = started([2]);
    const part = new Part();
    part.depend(0, 64, 1, 1);
    commit(new Map([[1, part]]), heldAt(coordinator));
    const sent = endpoint.take();
    expect(sent.map(({ kind }) => kind)).toEqual([LOCK]);
    expect(sent.map(writesIn)).toEqual([2]);
    sent[0].reply(locked);
    expect(endpoint.take().map(({ kind }) => kind)).toEqual([LOG]);
  });

  test("a LOG that is refused undoes all, at the backups first; then the caller is told why", () => {
    const { endpoint, coordinator, commit } = started([2, 3]);
    const ended = commit(new Map([[1, rows(1)]]));
    endpoint.take()[0].reply(locked);
    const logs = endpoint.take();
    expect(logs.map(({ kind, to }) => [kind, to])).toEqual([
      [LOG, 2],
      [LOG, 3],
    ]);
    logs[0].reply();
    logs[1].fail("SITU_UNKNOWN_TABLE");
    const told = endpoint.take();
    expect(told.map(({ kind, to }) => [kind, to])).toEqual([
      [TRUNCATE, 2],
      [TRUNCATE, 3],
    ]);
    told[0].reply();
    expect(ended.results).toEqual([]);
    told[1].reply();
    expect(ended.results).toEqual([
      { kind: "refused", error: expect.objectContaining({ code: "SITU_UNKNOWN_TABLE" }) },
    ]);
    const [abort] = endpoint.take();
    expect([abort.kind, abort.to]).toEqual([ABORT, 1]);
    abort.reply();
    expect([coordinator.open, endpoint.take()]).toEqual([0, []]);
  });

  test("a primary that has lost its locks before it has the writes: undone, to be run again", () => {
    const { endpoint, coordinator, commit } = started([2]);
    const ended = commit(new Map(), heldAt(coordinator));
    const [lock, log] = endpoint.take();
    lock.reply((out) => out.word(OVER));
    log.reply();
    const [told] = endpoint.take();
    expect(told.kind).toBe(TRUNCATE);
    told.reply();
    expect(ended.results).toEqual([{ kind: "aborted" }]);
    endpoint.take()[0].reply();
    expect(coordinator.open).toBe(0);
  });

  test("begins nothing too far behind one that is not over", () => {
    const { endpoint, coordinator, commit } = started([2]);
    coordinator.sequences.begin();
    coordinator.sequences.skip(MAX_SEQUENCE_SPAN);
    expect(commit(new Map([[1, rows(1)]])).results).toEqual([
      { kind: "refused", error: expect.objectContaining({ code: "SITU_OVERLOADED" }) },
    ]);
    expect(endpoint.take()).toEqual([]);
  });
});

/** How many writes a message has. */
function writesIn({ body }: Sent): number {
  const reader = body();
  Head.decode(reader);
  return reader.word();
}
