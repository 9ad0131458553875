// The guard of a run: a process of its own that outlives whoever started it for as long as it takes
// to clean up. Its standard input is a pipe, which the kernel closes when the run ends, however it
// ends. Until then it looks after owners that end before the run does, such as vitest's workers.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { identityOf, isAlive, pidNamespace } from "./owned.ts";
import { ownersOf, sweepOwner } from "./run-folder.ts";

const POLL_MS = 250;
const LONGEST_END_MS = 5_000;
const [, , run] = process.argv;
/** Whether somebody is there who reads what was left behind, and then removes the folder. */
let isRead = false;

// Ctrl-C is for the run, whose end is then noticed here.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});

function sweepDead(): void {
  for (const owner of ownersOf(run)) if (!isAlive(owner)) sweepOwner(run, owner);
}

writeFileSync(join(run, "guard"), `${identityOf(process.pid)} ${pidNamespace()}`);
const polling = setInterval(sweepDead, POLL_MS);
process.stdin.on("data", () => {
  isRead = true;
});
process.stdin.on("close", () => {
  clearInterval(polling);
  const deadline = performance.now() + LONGEST_END_MS;
  // Workers of a run that was killed may need a moment to notice it.
  const finish = (): void => {
    sweepDead();
    const owners = ownersOf(run);
    if (owners.length > 0 && performance.now() < deadline) {
      setTimeout(finish, POLL_MS);
      return;
    }
    for (const owner of owners) {
      if (isAlive(owner)) process.kill(Number(owner.split("-")[0]), "SIGKILL");
      sweepOwner(run, owner);
    }
    if (!isRead) rmSync(run, { recursive: true, force: true });
  };
  finish();
});
process.stdin.resume();
