/** Sessions as clients have them: what is told when a reply is lost, late, or never asked for. */

import { describe, expect, test } from "vitest";
import { callOnce, encodeReturned, type Returned } from "../../src/cluster/call.ts";
import { Deadline, decodeNumbered, type Numbered, Sessions } from "../../src/cluster/session.ts";
import { encodeOutcome, submitOnce } from "../../src/cluster/submit.ts";
import { COMMITTED, type Outcome } from "../../src/protocols/coordinator.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { CALL, OPEN_CALLS, OPEN_SESSION, SUBMIT } from "../../src/protocols/kinds.ts";
import type { Routine } from "../../src/protocols/message.ts";
import type { SituErrorCode } from "../../src/runtime/errors.ts";
import { RESEND_MAX_MS, SESSION_SLOTS } from "../../src/runtime/limits.ts";
import { FakeEndpoint, type Sent } from "./fake-endpoint.ts";

const TIMEOUT_MS = 700;

class World {
  readonly endpoint = new FakeEndpoint(-1);
  readonly driver = new Driver(this.endpoint);
  readonly #submits = new Sessions("client", OPEN_SESSION);
  readonly #calls = new Sessions("client", OPEN_CALLS);

  submit(to = 1): (Outcome["kind"] | SituErrorCode)[] {
    return this.#run(
      submitOnce(this.#submits, to, { parts: new Map(), executedIn: 1 }, this.#time),
      (outcome) => ("error" in outcome ? [outcome.kind, outcome.error.code] : [outcome.kind]),
    );
  }

  call(to = 1): unknown[] {
    const called = { procedure: "deposit", values: [], isPassedOn: false };
    return this.#run(callOnce(this.#calls, to, called, this.#time), (returned: Returned) => [
      returned.isDone ? returned.value : returned.error.code,
    ]);
  }

  /** What was sent, with sessions opened as a node would. */
  take(): Sent[] {
    const sent = this.endpoint.take();
    for (const each of sent) if (isOpening(each)) each.reply();
    const rest = sent.filter((each) => !isOpening(each));
    return sent.length === rest.length ? rest : [...rest, ...this.take()];
  }

  pass(ms: number): void {
    this.endpoint.clock.advance(ms);
  }

  get #time(): Deadline {
    return new Deadline(this.endpoint.clock, TIMEOUT_MS);
  }

  #run<T, U>(routine: Routine<T>, told: (result: T) => U[]): U[] {
    const ended: U[] = [];
    this.driver.run(
      routine,
      TIMEOUT_MS,
      (result) => ended.push(...told(result)),
      (error) => {
        throw error;
      },
    );
    return ended;
  }
}

function isOpening({ kind }: Sent): boolean {
  return kind === OPEN_SESSION || kind === OPEN_CALLS;
}

function numberedOf(sent: Sent): Numbered {
  return decodeNumbered(sent.body());
}

function committed(sent: Sent): void {
  sent.reply((out) => encodeOutcome(out, COMMITTED));
}

describe("a request", () => {
  test("opens a session first, once for all that come after it", () => {
    const world = new World();
    const ended = world.submit();
    expect(world.endpoint.take().map(({ kind }) => kind)).toEqual([OPEN_SESSION]);
    expect(ended).toEqual([]);
    world.submit();
    const [first, second] = world.take();
    expect([first.kind, second]).toEqual([SUBMIT, undefined]);
    committed(first);
    world.submit();
    expect(world.endpoint.take().map(({ kind }) => kind)).toEqual([SUBMIT]);
  });

  test("whose session is refused for another configuration was not done: it may be tried again", () => {
    const world = new World();
    const submitted = world.submit();
    world.endpoint.take()[0].fail("SITU_STALE_CONFIGURATION");
    expect(submitted).toEqual(["refused", "SITU_STALE_CONFIGURATION"]);
    const called = world.call();
    world.endpoint.take()[0].fail("SITU_STALE_CONFIGURATION");
    expect(called).toEqual(["SITU_STALE_CONFIGURATION"]);
  });

  test("that was sent again has the same number; the next in its slot another", () => {
    const world = new World();
    const ended = world.submit();
    const [first] = world.take();
    first.fail("SITU_LOST");
    world.pass(RESEND_MAX_MS);
    const [again] = world.take();
    expect(numberedOf(again)).toEqual(numberedOf(first));
    committed(again);
    expect(ended).toEqual(["committed"]);
    world.submit();
    const [next] = world.take();
    expect(numberedOf(next).number).toBe(numberedOf(first).number + SESSION_SLOTS);
  });

  test("that is slow, or to a node that is stopped, uses up no numbers of others", () => {
    const world = new World();
    world.submit(1);
    world.submit(2);
    const [, slow] = world.take();
    expect(slow.to).toBe(2);
    for (let i = 0; i < 2 * SESSION_SLOTS; i++) {
      const ended = world.submit(2);
      const [sent] = world.take();
      expect(numberedOf(sent).number % SESSION_SLOTS).toBe(1);
      committed(sent);
      expect(ended).toEqual(["committed"]);
    }
  });
});

describe("what is told when there is no answer", () => {
  test("no session could be opened: nothing was done, and the error says why", () => {
    for (const code of ["SITU_STALE_CONFIGURATION", "SITU_LOST"] as const) {
      const world = new World();
      const [submit, call] = [world.submit(), world.call()];
      for (let ms = 0; ms < 2 * TIMEOUT_MS; ms += 50) {
        for (const sent of world.endpoint.take()) sent.fail(code);
        world.pass(50);
      }
      expect([submit, call]).toEqual([["refused", code], [code]]);
    }
  });

  test("a request that may have been served: nobody knows", () => {
    for (const code of ["SITU_LOST", undefined] as const) {
      const world = new World();
      const [submit, call] = [world.submit(), world.call()];
      for (let ms = 0; ms < 2 * TIMEOUT_MS; ms += 50) {
        for (const sent of world.take()) if (code !== undefined) sent.fail(code);
        world.pass(50);
      }
      expect(submit).toEqual(["unknown", "SITU_UNKNOWN_OUTCOME"]);
      expect(call).toEqual(["SITU_UNKNOWN_OUTCOME"]);
    }
  });

  test.each(["SITU_OVERLOADED", "SITU_UNREACHABLE"] as const)(
    "a request that was refused each time: nothing was done, and it may be tried again: %s",
    (code) => {
      const world = new World();
      const [submit, call] = [world.submit(), world.call()];
      for (let ms = 0; ms < 2 * TIMEOUT_MS; ms += 50) {
        for (const sent of world.take()) sent.fail(code);
        world.pass(50);
      }
      expect(submit).toEqual(["refused", code]);
      expect(call).toEqual([code]);
    },
  );

  test("no session can be opened: nothing was done", () => {
    const world = new World();
    const submit = world.submit();
    world.endpoint.take();
    world.pass(2 * TIMEOUT_MS);
    expect(submit).toEqual(["refused", "SITU_LOST"]);
  });

  test("one that waits to be sent when its time is over is not sent any more", () => {
    const world = new World();
    const endpoint = world.endpoint;
    const waiting: (() => void)[] = [];
    const send = endpoint.send.bind(endpoint);
    const submit = world.submit();
    endpoint.send = (to, request) => void waiting.push(() => send(to, request));
    for (const opening of endpoint.take()) opening.reply();
    world.pass(2 * TIMEOUT_MS);
    expect(submit).toEqual(["refused", "SITU_LOST"]);
    expect(waiting).toHaveLength(1);
    expect(() => waiting[0]()).toThrow(expect.objectContaining({ code: "SITU_LOST" }));
  });
});

describe("a node that does not know the session", () => {
  test("has not done what it was asked once: it is done in another session", () => {
    const world = new World();
    const [submit, call] = [world.submit(), world.call()];
    const sent = world.take();
    for (const each of sent) each.fail("SITU_UNKNOWN_OUTCOME");
    // What the transaction has read may lie elsewhere by now: it is run again.
    expect(submit).toEqual(["aborted"]);
    const [again] = world.take();
    expect(again.kind).toBe(CALL);
    const before = sent.find(({ kind }) => kind === CALL)!;
    expect(numberedOf(again).session).not.toBe(numberedOf(before).session);
    again.reply((out) => encodeReturned(out, { isDone: true, value: 7 }));
    expect(call).toEqual([7]);
  });

  test("may have done what it was asked before", () => {
    const world = new World();
    const [submit, call] = [world.submit(), world.call()];
    for (const sent of world.take()) sent.fail("SITU_LOST");
    world.pass(RESEND_MAX_MS);
    for (const sent of world.take()) sent.fail("SITU_UNKNOWN_OUTCOME");
    expect(submit).toEqual(["unknown", "SITU_UNKNOWN_OUTCOME"]);
    expect(call).toEqual(["SITU_UNKNOWN_OUTCOME"]);
    // The next one opens a session under a new name.
    world.submit();
    const [next] = world.take();
    expect(numberedOf(next).session).toBe("client 1");
  });
});
