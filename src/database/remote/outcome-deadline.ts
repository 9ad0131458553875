/**
 * How long a client waits for the outcome of a commit. The node that coordinates it may have to wait
 * itself: once backups have begun to log a transaction it can only go on, and a backup that has died
 * holds it up until that node is back. The client is told that the outcome is unknown, and the
 * coordinator goes on.
 */

import type { Clock } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";

/** What `running` comes to, or after `timeoutMs` SITU_UNKNOWN_OUTCOME. */
export function outcomeWithin<T>(
  running: Promise<T>,
  timeoutMs: number,
  what: string,
  clock: Clock,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(timeoutMs, () => {
      const why = `the outcome was not known within ${timeoutMs} ms: ${what} may or may not have been committed`;
      reject(new SituError("SITU_UNKNOWN_OUTCOME", why));
    });
    running.then(
      (result) => {
        timer.cancel();
        resolve(result);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
