/** Exactly once: the first outcome for whoever asks again, and bounds on what is remembered. */

import { describe, expect, test } from "vitest";
import { Outcomes } from "../../src/cluster/outcomes.ts";
import {
  MAX_OUTCOMES,
  MAX_REMEMBERED_CLIENTS,
  REMEMBERED_CLIENT_MS,
} from "../../src/runtime/limits.ts";
import { failureSync } from "../helpers/store.ts";

describe("outcomes", () => {
  test("one who asks again gets the first outcome, and makes no second attempt", () => {
    const outcomes = new Outcomes<string>();
    const { attempt, isNew } = outcomes.attempt("s", 1, 0, 0);
    expect(isNew).toBe(true);
    attempt.end("committed");
    const again = outcomes.attempt("s", 1, 0, 0);
    expect(again.isNew).toBe(false);
    const heard: string[] = [];
    again.attempt.hear((outcome) => heard.push(outcome));
    outcomes.attempt("s", 1, 1, 0).attempt.hear((outcome) => heard.push(outcome));
    expect(heard).toEqual(["committed", "committed"]);
  });

  test("one who asks while it is under way waits with the first", () => {
    const outcomes = new Outcomes<string>();
    const { attempt } = outcomes.attempt("s", 1, 0, 0);
    const heard: string[] = [];
    attempt.hear((outcome) => heard.push(`first ${outcome}`));
    outcomes.attempt("s", 1, 0, 0).attempt.hear((outcome) => heard.push(`again ${outcome}`));
    expect(heard).toEqual([]);
    attempt.end("aborted");
    expect(heard).toEqual(["first aborted", "again aborted"]);
  });

  test("numbers of different sessions are different", () => {
    const outcomes = new Outcomes<string>();
    outcomes.attempt("a", 1, 0, 0).attempt.end("x");
    expect(outcomes.attempt("b", 1, 0, 0).isNew).toBe(true);
    expect(outcomes.clients).toBe(2);
  });

  test("what was heard is forgotten, and asking for it is refused, not done again", () => {
    const outcomes = new Outcomes<string>();
    for (let number = 0; number < 5; number++) {
      outcomes.attempt("s", number, 0, 0).attempt.end(`${number}`);
    }
    expect(outcomes.attempt("s", 5, 4, 0).isNew).toBe(true);
    for (const number of [0, 3]) {
      failureSync("SITU_PROTOCOL", () => outcomes.attempt("s", number, 0, 0));
    }
    expect(outcomes.attempt("s", 4, 0, 0).isNew).toBe(false);
    // A late request with an earlier low changes nothing.
    failureSync("SITU_PROTOCOL", () => outcomes.attempt("s", 3, 2, 0));
  });

  test("an attempt under way is ended for those who wait, though a later request has passed it", () => {
    const outcomes = new Outcomes<string>();
    const heard: string[] = [];
    const { attempt } = outcomes.attempt("s", 1, 0, 0);
    attempt.hear((outcome) => heard.push(outcome));
    outcomes.attempt("s", 3, 2, 0);
    attempt.end("committed");
    expect(heard).toEqual(["committed"]);
  });

  test("one client's outcomes have a limit; to hear some makes room", () => {
    const outcomes = new Outcomes<string>();
    for (let number = 0; number < MAX_OUTCOMES; number++) outcomes.attempt("s", number, 0, 0);
    failureSync("SITU_OVERLOADED", () => outcomes.attempt("s", MAX_OUTCOMES, 0, 0));
    // Those that are known can still be asked for.
    expect(outcomes.attempt("s", 7, 0, 0).isNew).toBe(false);
    expect(outcomes.attempt("other", 0, 0, 0).isNew).toBe(true);
    expect(outcomes.attempt("s", MAX_OUTCOMES, 1, 0).isNew).toBe(true);
  });

  test("clients have a limit; those that were silent for long make room, unless one waits", () => {
    const outcomes = new Outcomes<string>();
    outcomes.attempt("under way", 0, 0, 0);
    for (let i = 1; i < MAX_REMEMBERED_CLIENTS; i++)
      outcomes.attempt(`s${i}`, 0, 0, i).attempt.end("x");
    failureSync("SITU_OVERLOADED", () => outcomes.attempt("one more", 0, 0, REMEMBERED_CLIENT_MS));
    // One that was heard of again stays.
    outcomes.attempt("s1", 0, 0, REMEMBERED_CLIENT_MS);
    expect(outcomes.attempt("one more", 0, 0, REMEMBERED_CLIENT_MS + 10).isNew).toBe(true);
    expect(outcomes.clients).toBeLessThanOrEqual(MAX_REMEMBERED_CLIENTS);
    expect(outcomes.attempt("under way", 0, 0, REMEMBERED_CLIENT_MS + 10).isNew).toBe(false);
    expect(outcomes.attempt("s1", 0, 0, REMEMBERED_CLIENT_MS + 10).isNew).toBe(false);
    expect(outcomes.attempt("s2", 0, 0, REMEMBERED_CLIENT_MS + 10).isNew).toBe(true);
  });
});
