import { inspect } from "node:util";

const MOST = 80;

/** A value out of a caller's hands, for a message: short, and whatever it is. */
export function show(value: unknown): string {
  const text =
    typeof value === "string"
      ? JSON.stringify(value)
      : inspect(value, {
          depth: 0,
          breakLength: Number.POSITIVE_INFINITY,
          customInspect: false,
        });
  return text.length <= MOST ? text : `${text.slice(0, MOST - 1)}…`;
}

/** A key as `String` shows it, without running code that belongs to it. */
export function showKey(key: unknown): string {
  if (typeof key === "string") return key;
  if (typeof key !== "object" || key === null) return String(key);
  if (!Array.isArray(key)) return show(key);
  try {
    return Array.from(key, showKey).join(",");
  } catch {
    return "of several values";
  }
}
