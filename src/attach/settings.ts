/** What a thread must know to attach to a store: where it is, how large, how durable. */

import type { MemoryBytes } from "../folder/memory-size.ts";
import type { RecoveryProgress } from "../log/recovery/progress.ts";

/** When a commit is on disk: before it returns, a moment later, or never. */
export type DurabilityMode = "sync" | "lazy" | "none";

export interface StoreSettings {
  /** The store's folder. */
  readonly path: string;
  /** For a node: nobody else has the store open, now and until it is closed. */
  readonly isAlone?: boolean;
  /** For the other threads of that node. */
  readonly isNode?: boolean;
  /** How long to wait for another process that is opening the store; the default if that is longer. */
  readonly timeoutMs?: number | undefined;
  /** Undefined: as the store is, and "lazy" for a new one. */
  readonly durability: DurabilityMode | undefined;
  readonly lagMs: number;
  readonly checkpointMs: number;
  readonly checkpointBytes: number;
  readonly keepLogMs: number;
  readonly keepLogBytes: number;
  readonly onRecovery: ((progress: RecoveryProgress) => void) | undefined;
  /** Undefined: as the store is, and the default for a new one. */
  readonly memoryBytes: MemoryBytes | undefined;
  readonly memoryDir: string;
  /** Whether the caller named the folder, and not the environment or the default. */
  readonly memoryDirGiven: boolean;
  readonly sharing: "processes" | "threads";
  /** Undefined: a part of memoryBytes. */
  readonly versionBytes: number | undefined;
}
