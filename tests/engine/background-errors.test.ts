/** Work that can wait: what may be passed over when it fails, and what must not vanish. */

import { afterEach, expect, test, vi } from "vitest";
import { CONFLICT } from "../../src/engine/signals.ts";
import { AssertionError } from "../../src/runtime/assert.ts";
import { passOver } from "../../src/runtime/background-errors.ts";
import { SituError } from "../../src/runtime/errors.ts";

const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
afterEach(() => warned.mockClear());

test("a full store, a conflict, a stack that is used up: another round will come", () => {
  for (const error of [
    new SituError("SITU_FULL", "the store is full"),
    new SituError("SITU_TIMEOUT", "gave up"),
    new RangeError("Maximum call stack size exceeded"),
    CONFLICT,
  ]) {
    passOver(error, "growing");
  }
  expect(warned).not.toHaveBeenCalled();
});

test("damage and bugs become a warning, each once", () => {
  for (let i = 0; i < 3; i++) {
    passOver(new SituError("SITU_CORRUPT", "a tag that none has"), "growing");
    passOver(new TypeError("x is undefined"), "growing");
  }
  expect(warned.mock.calls.map(([text]) => text)).toEqual([
    "growing failed: a tag that none has",
    "growing failed: x is undefined",
  ]);
});

test("a broken assertion is thrown", () => {
  expect(() => passOver(new AssertionError("never"), "growing")).toThrow(/never/);
});
