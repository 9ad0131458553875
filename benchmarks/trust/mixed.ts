// Rows of mixed sizes, for what measures memory: 0 to 400 KB, mostly small, 100 KB on the average.
import * as situ from "situ";

export const MIB = 2 ** 20;
export const MEMORY_BYTES = 256 * MIB;
/** Ids of each process begin at a multiple of this. */
export const IDS_PER_PROCESS = 1_000_000;

export const Mixed = situ.table("mixed", { id: situ.u32(), value: situ.str() }, { key: "id" });

/** What a process is told when it is started. */
export interface MixedTask {
  readonly path: string;
  readonly memoryDir: string;
  readonly number: number;
  readonly seed: number;
}

export function openMixed({ path, memoryDir }: Pick<MixedTask, "path" | "memoryDir">) {
  return situ.open({
    path,
    memoryDir,
    tables: [Mixed],
    memoryBytes: MEMORY_BYTES,
    durability: "none",
  });
}

export type MixedStore = Awaited<ReturnType<typeof openMixed>>;

const largestBytes = 400_000;
const text = "x".repeat(largestBytes);

/** The cube of an even random number makes small rows frequent and large ones weigh most. */
export function mixedValue(random: () => number): string {
  return text.slice(0, Math.floor(largestBytes * random() ** 3));
}

export function isFull(error: unknown): boolean {
  return error instanceof situ.SituError && error.code === "SITU_FULL";
}

/** Puts one row after the other until the store is full; the bytes of their values. */
export function fill(db: MixedStore, first: number, random: () => number): number {
  let bytes = 0;
  for (let id = first; ; id++) {
    const value = mixedValue(random);
    try {
      db.transactSync((tx) => tx.put(Mixed, { id, value }));
    } catch (error) {
      if (isFull(error)) return bytes;
      throw error;
    }
    bytes += value.length;
  }
}
