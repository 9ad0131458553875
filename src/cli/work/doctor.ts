/**
 * `situ doctor`: whether this machine has what Situ needs. Each check says what it has found, and
 * if that is not well, what to do about it. "failed" is what keeps Situ from working, "warning"
 * what will be felt some day.
 */

import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import type { Screen } from "../screen.ts";
import type { Run } from "./context.ts";
import { checkFolder } from "./doctor-folder.ts";
import { checkMachine } from "./doctor-machine.ts";

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

export const runDoctor: Run<"doctor"> = async ({ path }, { screen }) => {
  const findings = [
    ...(await checkMachine()),
    ...(path === undefined ? [] : await checkFolder(path)),
  ];
  const isWell = findings.every(({ status }) => status !== "failed");
  screen.json({ ok: isWell, checks: findings });
  show(screen, findings);
  const warnings = findings.filter(({ status }) => status === "warning").length;
  screen.line();
  if (!isWell) screen.line(screen.red("Some checks failed: Situ will not work properly here."));
  else if (warnings > 0) screen.line("Situ works here, but see the warnings.");
  else screen.line(screen.green("All checks passed."));
  return isWell ? EXIT_OK : EXIT_FAILED;
};

function show(screen: Screen, findings: readonly Finding[]): void {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const { green, yellow, red, dim } = screen;
  const marks = { ok: green("ok     "), warning: yellow("warning"), failed: red("failed ") };
  for (const { check, status, found, advice } of findings) {
    screen.line(`${marks[status]}  ${check.padEnd(width)}  ${found}`);
    if (advice !== "") screen.line(`${" ".repeat(width + 11)}${dim("→")} ${advice}`);
  }
}
