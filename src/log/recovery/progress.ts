/** How far a recovery is. */
export interface RecoveryProgress {
  /** What is being read: the checkpoint, or the log behind it. */
  readonly phase: "checkpoint" | "log";
  readonly doneBytes: number;
  readonly totalBytes: number;
}
