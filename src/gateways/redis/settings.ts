/** What CONFIG GET and CONFIG SET can reach; a change in one thread is told to the others. */

export interface ServerSettings {
  /** Empty: nobody is asked for a password. */
  readonly password: string;
  readonly maxClients: number;
  readonly maxBulkBytes: number;
  readonly hashMaxPackedEntries: number;
  readonly hashMaxPackedValue: number;
  readonly setMaxPackedEntries: number;
  readonly setMaxIntsetEntries: number;
  /** Seconds without a command after which a client is closed; 0: never. */
  readonly timeoutSeconds: number;
  /** Changes settings here and in the other threads. */
  change(changes: SettingChanges): void;
}

/** How large a hash or set may be that is kept in one piece. */
export type PackingLimits = Pick<
  ServerSettings,
  "hashMaxPackedEntries" | "hashMaxPackedValue" | "setMaxPackedEntries" | "setMaxIntsetEntries"
>;

export type SettingValues = Omit<ServerSettings, "change">;
export type SettingChanges = Partial<SettingValues>;

/** Redis 7.0's defaults, where it has them. */
export const DEFAULT_SETTINGS = {
  hashMaxPackedEntries: 512,
  hashMaxPackedValue: 64,
  setMaxPackedEntries: 128,
  setMaxIntsetEntries: 512,
  timeoutSeconds: 0,
} as const;

/** The settings of one thread. */
export class LiveSettings implements ServerSettings {
  password!: string;
  maxClients!: number;
  maxBulkBytes!: number;
  hashMaxPackedEntries!: number;
  hashMaxPackedValue!: number;
  setMaxPackedEntries!: number;
  setMaxIntsetEntries!: number;
  timeoutSeconds!: number;
  readonly #tell: (changes: SettingChanges) => void;

  /** `tell` hears of changes that are made here, to pass them on. */
  constructor(values: SettingValues, tell: (changes: SettingChanges) => void) {
    this.#tell = tell;
    this.take(values);
  }

  /** As plain data. */
  get values(): SettingValues {
    return { ...this };
  }

  /** Takes over what another thread has changed. */
  take(changes: SettingChanges): void {
    Object.assign(this, changes);
  }

  change(changes: SettingChanges): void {
    this.take(changes);
    this.#tell(changes);
  }
}
