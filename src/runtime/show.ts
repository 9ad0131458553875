import { inspect } from "node:util";

const MOST = 80;

/** A value out of a caller's hands, for a message: short, and whatever it is. */
export function show(value: unknown): string {
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY });
  return text.length <= MOST ? text : `${text.slice(0, MOST - 1)}…`;
}
