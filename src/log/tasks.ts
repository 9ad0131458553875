/** What the thread of a log is told when it is started, and by which words it is told to end. */

/** Where a store is, and what its log thread is to do. */
export interface LogTask {
  readonly role: "log" | "checkpoint";
  /** The store's folder. */
  readonly path: string;
  /** The folder of its memory. */
  readonly memory: string;
  readonly logId: string;
  readonly checkpointMs: number;
  readonly checkpointBytes: number;
  readonly keepLogMs: number;
  readonly keepLogBytes: number;
  /** Slot + 1 of the executor that starts the thread: see thread-keeper.ts. */
  readonly starter: number;
  /** Two words, STOP and ENDED: events would need event loops that turn. */
  readonly signals: Int32Array<SharedArrayBuffer>;
}

/** Turns to 1 when the thread is to end. */
export const STOP = 0;
/** Turns to 1 when it has. */
export const ENDED = 1;
