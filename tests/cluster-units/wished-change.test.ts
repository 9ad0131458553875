/** What operators ask a manager for is asked again until it is seen, and a change that was made meanwhile is no error. */

import { expect, test } from "vitest";
import { type Seen, WishedChange } from "../../src/cli/work/wished-change.ts";
import { SituError } from "../../src/runtime/errors.ts";

const OPEN: Seen = { left: 0, isDone: false, isUnderWay: false };
const UNDER_WAY: Seen = { left: 3, isDone: false, isUnderWay: true };
const DONE: Seen = { left: 0, isDone: true, isUnderWay: false };
const REFUSAL = new SituError("SITU_CONFIG", "the cluster has no node 2");
const NO_ANSWER = new SituError("SITU_TIMEOUT", "node 0 did not answer");

/** Follows a change whose asks end like that, and whose looks see that; the last look stays. */
async function follow(
  asks: readonly ("accepted" | SituError)[],
  looks: readonly (Seen | undefined)[],
): Promise<{ asked: number; waitedMs: number; error?: unknown }> {
  let [asked, looked, waitedMs] = [0, 0, 0];
  const change = new WishedChange({
    ask: async () => {
      const answer = asks[asked++];
      if (answer instanceof SituError) throw answer;
      expect(answer).toBe("accepted");
    },
    look: async () => looks[Math.min(looked++, looks.length - 1)],
    clock: {
      nowMs: () => waitedMs,
      sleep: async (ms) => {
        waitedMs += ms;
      },
    },
  });
  try {
    await change.begin();
    while ((await change.advance())?.isDone !== true) await change.pause();
    return { asked, waitedMs };
  } catch (error) {
    return { asked, waitedMs, error };
  }
}

test("a node that has left between a look and the next question is removed", async () => {
  expect(await follow(["accepted", REFUSAL], [OPEN, OPEN, DONE])).toEqual({
    asked: 2,
    waitedMs: 500,
  });
});

test("so is one whose removal was granted with an answer that was lost", async () => {
  expect(await follow([NO_ANSWER, REFUSAL], [OPEN, DONE])).toMatchObject({ asked: 2 });
  expect(await follow([NO_ANSWER, REFUSAL], [OPEN, DONE])).not.toHaveProperty("error");
});

test("nodes that have an old configuration may say for a while that it is there", async () => {
  const looks = [OPEN, OPEN, OPEN, undefined, OPEN, DONE];
  expect(await follow(["accepted", REFUSAL], looks)).toEqual({ asked: 2, waitedMs: 2_000 });
});

test("what is refused at first is refused at once", async () => {
  const refused = { asked: 1, waitedMs: 0, error: REFUSAL };
  expect(await follow([REFUSAL], [OPEN])).toEqual(refused);
  expect(await follow([REFUSAL], [DONE])).toEqual(refused);
});

test("a node that never was there is not removed, even if the first answer was lost", async () => {
  expect(await follow([NO_ANSWER, REFUSAL], [DONE])).toMatchObject({ asked: 2, error: REFUSAL });
});

test("what stays refused and is never seen is refused", async () => {
  const { asked, waitedMs, error } = await follow(["accepted", REFUSAL], [OPEN]);
  expect([asked, error]).toEqual([2, REFUSAL]);
  expect(waitedMs).toBeGreaterThanOrEqual(10_000);
});

test("what a manager has forgotten is asked for again, and what is under way is not", async () => {
  const looks = [OPEN, UNDER_WAY, UNDER_WAY, OPEN, UNDER_WAY, DONE];
  expect(await follow(["accepted", "accepted"], looks)).toMatchObject({ asked: 2 });
});

test("without a manager that answers it is given up", async () => {
  const { error, waitedMs } = await follow(Array(50).fill(NO_ANSWER), [OPEN]);
  expect(error).toBe(NO_ANSWER);
  expect(waitedMs).toBeGreaterThanOrEqual(10_000);
});
