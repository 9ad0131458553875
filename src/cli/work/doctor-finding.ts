/** What a check of the doctor has found, and what to do about it. */

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
