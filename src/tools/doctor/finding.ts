/**
 * What the doctor has found about one thing, and if that is not well, what to do about it. "failed"
 * is what keeps Situ from working, "warning" what will be felt some day.
 */

export interface Finding {
  readonly check: string;
  readonly status: "ok" | "warning" | "failed";
  readonly found: string;
  /** What to do; empty if all is well. */
  readonly advice: string;
}

export const ok = (check: string, found: string): Finding => ({
  check,
  status: "ok",
  found,
  advice: "",
});
export const warning = (check: string, found: string, advice: string): Finding => ({
  check,
  status: "warning",
  found,
  advice,
});
export const failed = (check: string, found: string, advice: string): Finding => ({
  check,
  status: "failed",
  found,
  advice,
});
