import { SituError } from "../../runtime/errors.ts";

/** For operations that come after their transaction. */
export const ENDED = new SituError(
  "SITU_CLOSED",
  "this transaction has ended: its callback has returned, or is being run again",
);
