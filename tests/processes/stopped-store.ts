/** A store in which another process is stopped in the middle of a commit. */

import type { Database } from "../../src/index.ts";
import {
  endAll,
  type Running,
  StoreFolder,
  start,
  stateOf,
  until,
} from "../helpers/engine-processes.ts";
import type { CrashOrder } from "./crash-child.ts";
import { fillStore, openStore } from "./crash-store.ts";

/** `step` chooses the atomic step of the commit at which it stops, of so many. */
export async function withStopped(
  step: (steps: number) => number,
  work: (db: Database, stopped: Running) => Promise<void>,
): Promise<void> {
  const folder = new StoreFolder();
  const { path } = folder;
  let db: Database | undefined;
  try {
    db = await openStore(path);
    fillStore(db);
    const order: CrashOrder = {
      path,
      role: "victim",
      step: 0,
      when: "after",
      signal: "SIGSTOP",
      round: 1,
    };
    const rehearsal = await start("crash-child", order).ended;
    const { steps } = JSON.parse(rehearsal.stdout) as { steps: number };
    const stopped = start("crash-child", { ...order, step: step(steps), round: 2 });
    await until("the process has stopped itself", () => stateOf(stopped.pid) === "T");
    await work(db, stopped);
  } finally {
    endAll();
    await db?.close();
    await folder.remove();
  }
}
