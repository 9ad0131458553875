/** Whether a store's log can be trusted, and starting it: for a new store, or in place of a log that has failed. */

import { FAILED, RUNNING } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { NodeFiles } from "../folder/node-files.ts";
import { explainedOnDisk, type Identity, withLog, writeIdentity } from "../folder/store-files.ts";
import { LOG_STATE } from "../memory/control.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { beginLog } from "./begin.ts";
import { listSegments } from "./segments/segments.ts";

/**
 * Whether nobody knows what is on disk: the log has failed, or whoever began it died over that.
 */
export function isLogInDoubt({ control }: StoreMemory, identity: Identity): boolean {
  const hasFailed = Atomics.load(control.i32, LOG_STATE) === FAILED;
  return hasFailed || control.isLogged !== (identity.logStarted === true);
}

/** Begins a log, or begins it anew, with all of memory as its base: see log/begin.ts. */
export function startLogAnew(path: string, identity: Identity, executor: Executor): Identity {
  return explainedOnDisk(path, () => {
    // First the id: whoever dies over this, or finds no room, goes on with the same log.
    const begun = identity.logId === undefined ? writeIdentity(path, withLog(identity)) : identity;
    beginLog(executor, new NodeFiles(path), begun.logId!);
    const done = writeIdentity(path, { ...begun, logStarted: true });
    executor.memory.control.startLog();
    executor.durability.setState(RUNNING, 0);
    return done;
  });
}

/** Without store.json nobody can tell whose log this is; a new store must not mix with it. */
export function refuseForeignLog(path: string): void {
  if (explainedOnDisk(path, () => listSegments(new NodeFiles(path))).length === 0) return;
  throw new SituError(
    "SITU_CORRUPT",
    `${path} has a log but no store.json: bring that file back, or restore the store from a ` +
      `backup, or remove ${path}/log and ${path}/checkpoints to start an empty store`,
  );
}
