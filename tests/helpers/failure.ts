/** How promises fail: with which code, and in which words. */

import { expect } from "vitest";
import { SituError } from "../../src/index.ts";

/** The text of the error that it fails with, which must have this code. */
export async function failure(promise: Promise<unknown>, code: string): Promise<string> {
  const error = await promise.then(
    () => expect.fail(`no ${code}`),
    (thrown: unknown) => thrown as Error & { code: string },
  );
  expect(error.code, error.message).toBe(code);
  return error.message;
}

/** The code of the error that it fails with, or "done". */
export async function codeOf(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "done";
  } catch (error) {
    expect(error).toBeInstanceOf(SituError);
    return (error as SituError).code;
  }
}
