/** A store in which another process is stopped in the middle of a commit. */

import { COMMITTED, COMMITTING, INTENT } from "../../src/engine/slot.ts";
import type { Database, OpenOptions } from "../../src/index.ts";
import {
  endAll,
  type Running,
  StoreFolder,
  start,
  stateOf,
  until,
} from "../helpers/engine-processes.ts";
import type { CrashOrder, CrashSteps } from "./crash-child.ts";
import { fillStore, openStore } from "./crash-store.ts";

/** Where in its commit the process stops. */
export type StoppedAt = "some locks" | "all locks" | "installing";

/**
 * The atomic step of a commit that leaves it there. Not a share of all steps: what comes after the
 * commit point, cells and maintenance, takes more of them than the commit, or fewer.
 */
function stepAt(
  where: StoppedAt,
  { phases }: CrashSteps,
): Required<Pick<CrashOrder, "phase" | "step">> {
  const [phase, share] = {
    // First each object is locked; then each lock is turned to INSTALLING. Most are taken: which rows the
    // first ones are of depends on the seed of the hashes, and others want only some of the rows.
    "some locks": [INTENT, 0.45] as const,
    // Its first step: the epoch is announced again if it moves, so how many follow is up to chance.
    "all locks": [COMMITTING, 0] as const,
    // Early: of the last objects some may be of no interest to others, such as the cell of a freed row.
    installing: [COMMITTED, 0.25] as const,
  }[where];
  // Maintenance commits as well, later.
  const first = phases.indexOf(phase);
  const after = phases.findIndex((other, index) => index > first && other !== phase);
  if (first < 0 || after < 0) throw new Error(`no phase ${phase} in ${phases}`);
  return { phase, step: Math.max(1, Math.floor((after - first) * share)) };
}

/** Starts a process that commits round 2 and stops in the middle of it; round 1 is a rehearsal. */
export async function startStopped(path: string, where: StoppedAt): Promise<Running> {
  const order: CrashOrder = {
    path,
    role: "victim",
    step: 0,
    when: "after",
    signal: "SIGSTOP",
    round: 1,
  };
  const rehearsal = await start("crash-child", order).ended;
  if (rehearsal.code !== 0) {
    throw new Error(`the rehearsal: ${rehearsal.code ?? rehearsal.signal}\n${rehearsal.stderr}`);
  }
  // An empty program ends so: a script of dist/ that was just being written.
  if (rehearsal.stdout === "") throw new Error("the rehearsal said nothing: was dist/ built anew?");
  const at = stepAt(where, JSON.parse(rehearsal.stdout) as CrashSteps);
  const stopped = start("crash-child", { ...order, ...at, round: 2 });
  await until("the process has stopped itself", () => stateOf(stopped.pid) === "T");
  return stopped;
}

export async function withStopped(
  where: StoppedAt,
  work: (db: Database, stopped: Running) => Promise<void>,
  options: Pick<OpenOptions, "durability"> = {},
): Promise<void> {
  const folder = new StoreFolder();
  const { path } = folder;
  let db: Database | undefined;
  try {
    db = await openStore(path, undefined, options);
    fillStore(db);
    await work(db, await startStopped(path, where));
  } finally {
    endAll();
    await db?.close();
    await folder.remove();
  }
}
