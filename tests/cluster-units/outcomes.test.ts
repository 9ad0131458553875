/** Exactly once: the first outcome for whoever asks again, and bounds on what is remembered. */

import { describe, expect, test } from "vitest";
import { Outcomes } from "../../src/cluster/outcomes.ts";
import {
  MAX_KEPT_OUTCOMES,
  MAX_KEPT_RESULT_BYTES,
  MAX_SESSIONS,
  SESSION_IDLE_MS,
  SESSION_SLOTS,
} from "../../src/runtime/limits.ts";
import { failureSync } from "../helpers/store.ts";

function opened(...sessions: string[]): Outcomes<string> {
  const outcomes = new Outcomes<string>();
  for (const session of sessions) outcomes.open(session, 0);
  return outcomes;
}

describe("outcomes", () => {
  test("one who asks again gets the first outcome, and makes no second attempt", () => {
    const outcomes = opened("s");
    const { attempt, isNew } = outcomes.attempt("s", 1, 0);
    expect(isNew).toBe(true);
    attempt.end("committed");
    const again = outcomes.attempt("s", 1, 0);
    expect(again.isNew).toBe(false);
    const heard: string[] = [];
    again.attempt.hear((outcome) => heard.push(outcome));
    outcomes.open("s", 0);
    outcomes.attempt("s", 1, 0).attempt.hear((outcome) => heard.push(outcome));
    expect(heard).toEqual(["committed", "committed"]);
  });

  test("one who asks while it is under way waits with the first", () => {
    const outcomes = opened("s");
    const { attempt } = outcomes.attempt("s", 1, 0);
    const heard: string[] = [];
    attempt.hear((outcome) => heard.push(`first ${outcome}`));
    outcomes.attempt("s", 1, 0).attempt.hear((outcome) => heard.push(`again ${outcome}`));
    expect(heard).toEqual([]);
    attempt.end("aborted");
    expect(heard).toEqual(["first aborted", "again aborted"]);
  });

  test("numbers of different sessions are different", () => {
    const outcomes = opened("a", "b");
    outcomes.attempt("a", 1, 0).attempt.end("x");
    expect(outcomes.attempt("b", 1, 0).isNew).toBe(true);
    expect(outcomes.sessions).toBe(2);
  });

  test("a slot is used again when its outcome was heard; asking for the old one is refused", () => {
    const outcomes = opened("s");
    outcomes.attempt("s", 3, 0).attempt.end("first");
    expect(outcomes.attempt("s", 3 + SESSION_SLOTS, 0).isNew).toBe(true);
    failureSync("SITU_PROTOCOL", () => outcomes.attempt("s", 3, 0));
    expect(outcomes.attempt("s", 3 + SESSION_SLOTS, 0).isNew).toBe(false);
    // The client may have given up some numbers that never arrived.
    expect(outcomes.attempt("s", 3 + 9 * SESSION_SLOTS, 0).isNew).toBe(true);
  });

  test("a slow one keeps no other waiting, however many come after it", () => {
    const outcomes = opened("s");
    const heard: string[] = [];
    const { attempt } = outcomes.attempt("s", 0, 0);
    attempt.hear((outcome) => heard.push(outcome));
    for (let i = 0; i < 3 * SESSION_SLOTS; i++) {
      const number = 1 + i * SESSION_SLOTS;
      const next = outcomes.attempt("s", number, 0);
      expect(next.isNew).toBe(true);
      next.attempt.end("done");
    }
    attempt.end("late");
    expect(heard).toEqual(["late"]);
  });

  test("one that is under way is ended for those who wait, though its client has given it up", () => {
    const outcomes = opened("s");
    const heard: string[] = [];
    const { attempt } = outcomes.attempt("s", 1, 0);
    attempt.hear((outcome) => heard.push(outcome));
    outcomes.attempt("s", 1 + SESSION_SLOTS, 0);
    attempt.end("committed");
    expect(heard).toEqual(["committed"]);
  });

  test("where all is busy none is begun, and known ones can be asked for", () => {
    const outcomes = opened("s");
    outcomes.attempt("s", 1, 0).attempt.end("x");
    failureSync("SITU_OVERLOADED", () => outcomes.attempt("s", 2, 0, true));
    expect(outcomes.attempt("s", 1, 0, true).isNew).toBe(false);
    expect(outcomes.attempt("s", 2, 0).isNew).toBe(true);
  });
});

describe("sessions", () => {
  test("what a forgotten session had done is never done again", () => {
    const outcomes = new Outcomes<string>();
    failureSync("SITU_UNKNOWN_OUTCOME", () => outcomes.attempt("never opened", 0, 0));
    outcomes.open("idle", 0);
    outcomes.attempt("idle", 0, 0).attempt.end("committed");
    for (let i = 1; i < MAX_SESSIONS; i++) outcomes.open(`s${i}`, SESSION_IDLE_MS);
    outcomes.open("one more", SESSION_IDLE_MS + 1);
    failureSync("SITU_UNKNOWN_OUTCOME", () => outcomes.attempt("idle", 0, SESSION_IDLE_MS + 1));
  });

  test("have a limit; those that were silent for long make room, unless something is under way", () => {
    const outcomes = opened("under way", "heard of");
    outcomes.attempt("under way", 0, 0);
    for (let i = 2; i < MAX_SESSIONS; i++) outcomes.open(`s${i}`, 0);
    failureSync("SITU_OVERLOADED", () => outcomes.open("one more", SESSION_IDLE_MS));
    outcomes.attempt("heard of", 0, SESSION_IDLE_MS);
    outcomes.open("one more", SESSION_IDLE_MS + 1);
    expect(outcomes.sessions).toBe(3);
    expect(outcomes.attempt("under way", 0, SESSION_IDLE_MS + 1).isNew).toBe(false);
    expect(outcomes.attempt("heard of", 0, SESSION_IDLE_MS + 1).isNew).toBe(false);
  });

  test("all outcomes together have a limit; to forget an idle session makes room", () => {
    const outcomes = opened("idle");
    outcomes.attempt("idle", 0, 0).attempt.end("x");
    const sessions = MAX_KEPT_OUTCOMES / SESSION_SLOTS;
    for (let i = 0; i < sessions; i++) {
      outcomes.open(`s${i}`, SESSION_IDLE_MS);
      const most = i === 0 ? SESSION_SLOTS - 1 : SESSION_SLOTS;
      for (let slot = 0; slot < most; slot++) outcomes.attempt(`s${i}`, slot, SESSION_IDLE_MS);
    }
    failureSync("SITU_OVERLOADED", () =>
      outcomes.attempt("s0", SESSION_SLOTS - 1, SESSION_IDLE_MS),
    );
    // A slot that is used again takes no more.
    expect(outcomes.attempt("s1", SESSION_SLOTS, SESSION_IDLE_MS).isNew).toBe(true);
    expect(outcomes.attempt("s0", SESSION_SLOTS - 1, SESSION_IDLE_MS + 1).isNew).toBe(true);
    expect(outcomes.sessions).toBe(sessions);
  });

  test("results take so many bytes at most; of the oldest it is only known that they are over", () => {
    const outcomes = opened("s");
    const bytes = MAX_KEPT_RESULT_BYTES / 4;
    const keep = (number: number): void => {
      const { attempt } = outcomes.attempt("s", number, 0);
      attempt.end(`result ${number}`);
      outcomes.keep(attempt, bytes, "gone");
    };
    for (let number = 0; number < 6; number++) keep(number);
    expect(outcomes.keptBytes).toBe(MAX_KEPT_RESULT_BYTES);
    const known = Array.from({ length: 6 }, (_, number) => outcomes.known("s", number));
    expect(known).toEqual(["gone", "gone", "result 2", "result 3", "result 4", "result 5"]);
    // A slot that is used again gives back what its last result took.
    outcomes.attempt("s", 2 + SESSION_SLOTS, 0);
    expect(outcomes.keptBytes).toBe(MAX_KEPT_RESULT_BYTES - bytes);
  });
});

describe("what another node had begun", () => {
  test("is settled here, and its client gets the outcome when it asks", () => {
    const outcomes = new Outcomes<string>();
    outcomes.settle("s", 7, "committed", 0);
    expect(outcomes.known("s", 7)).toBe("committed");
    const { attempt, isNew } = outcomes.attempt("s", 7, 0);
    expect(isNew).toBe(false);
    const heard: string[] = [];
    attempt.hear((outcome) => heard.push(outcome));
    expect(heard).toEqual(["committed"]);
    expect(outcomes.known("s", 8)).toBeUndefined();
    expect(outcomes.known("another", 7)).toBeUndefined();
  });

  test("one who asked too early hears of it; a later attempt counts more than an earlier", () => {
    const outcomes = opened("s");
    const heard: string[] = [];
    outcomes.attempt("s", 7, 0).attempt.hear((outcome) => heard.push(outcome));
    outcomes.settle("s", 7, "aborted", 0);
    outcomes.settle("s", 7, "committed", 0);
    expect(heard).toEqual(["aborted"]);
    expect(outcomes.known("s", 7)).toBe("committed");
    // An earlier number of the slot is of no interest: its client has heard, or given it up.
    outcomes.settle("s", 7 + SESSION_SLOTS, "committed", 0);
    outcomes.settle("s", 7, "aborted", 0);
    expect(outcomes.known("s", 7 + SESSION_SLOTS)).toBe("committed");
    expect(outcomes.known("s", 7)).toBeUndefined();
  });
});
