/** `situ doctor`: whether this machine has what Situ needs (tools/doctor/ looks, this prints). */

import type { Finding } from "../../tools/doctor/finding.ts";
import { checkFolder } from "../../tools/doctor/folder.ts";
import { checkMachine } from "../../tools/doctor/machine.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import type { Screen } from "../screen.ts";
import type { Run } from "./context.ts";

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
