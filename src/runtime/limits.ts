/**
 * Every limit of Situ has its name here, and the relations between them are asserted below, so
 * that a change of one that breaks another fails at import and not in production.
 */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Blocks of one size class are made of 1 to 16 such units, so that each holds a few cells. */
export const UNIT_BYTES = 64 * KIB;
export const MAX_BLOCK_UNITS = 16;
/** A block has at least this many cells, as far as its units allow. */
export const MIN_BLOCK_CELLS = 8;
/** Regions are the unit of mapping. FaRM uses 2 GB; small ones let a small store stay small. */
export const REGION_BYTES = 64 * MIB;
export const MIN_MEMORY_BYTES = 8 * MIB;
/** 2^21 region ids times 2^32 bytes is all that fits a safe integer; a store uses fewer. */
export const MAX_REGIONS = 1 << 14;

export const SIZE_CLASSES = 256;
export const MIN_CELL_BYTES = 64;
export const MAX_CELL_BYTES = MIB;

/** A slot id takes eight bits of a TID, and 0 in a lock word means "nobody". */
export const MAX_SLOTS = 255;
/** In the threads-only mode all journals exist from the start, so there are fewer of them. */
export const MAX_THREAD_SLOTS = 32;
export const JOURNAL_BYTES = 4 * MIB;
export const THREAD_JOURNAL_BYTES = 4 * MIB;

/** What one transaction writes is kept in private memory until it commits. */
export const MAX_ARENA_BYTES = 2 * JOURNAL_BYTES;
/** A larger arena is given back after its transaction. */
export const KEPT_ARENA_BYTES = MIB;

/** Objects that one transaction may read, write, allocate and free, together. */
export const MAX_ACCESSES = 1 << 17;

export const MAX_TABLES = 256;
export const MAX_NAME_BYTES = 200;
export const MAX_FIELDS = 256;
/** A schema is kept in one catalogue object. */
export const MAX_SCHEMA_BYTES = 64 * KIB;
/** A single string, bytes or json value. */
export const MAX_VALUE_BYTES = MIB;
/** A whole row; more than one value of the largest size fits. */
export const MAX_ROW_BYTES = 3 * MIB;
export const MAX_KEY_BYTES = 1024;
/** Up to this size a row lies inside its bucket (FaRM §3.6: 128 bytes with H = 8). */
export const MAX_INLINE_ROW_BYTES = 128;
/** Up to this declared length, a string or byte field has a fixed place in its row. */
export const MAX_INLINE_FIELD_BYTES = 255;

/** Hopscotch: H/2 slots a bucket, two pairs an overflow block (FaRM §3.6). */
export const BUCKET_SLOTS = 4;
export const OVERFLOW_SLOTS = 2;
export const SHARD_BUCKETS = 64;
/** How far an insert probes for an empty slot before it starts an overflow chain. */
export const PROBE_BUCKETS = 16;
/** A shard that had to chain and is at least this full is split in two. */
export const SPLIT_OCCUPANCY = 0.88;
/** A shard is also split when one chain gets this long, if it is at least half full. */
export const SPLIT_CHAIN_BLOCKS = 4;
/** Six bits of the hash choose the bucket, the others the shard. */
export const MAX_SHARD_DEPTH = 26;

/** A lookup that keeps meeting moving keys gives up its turn after so many attempts. */
export const LOOKUP_ATTEMPTS = 1 << 20;

export const DEFAULT_TIMEOUT_MS = 5_000;
export const MAX_TIMEOUT_MS = 24 * 3600 * 1000;
/** Attempts of one transaction before it fails with SITU_CONFLICT, whatever its deadline. */
export const MAX_ATTEMPTS = 10_000;
/** Spinning longer than this on one lock turns into sleeping. */
export const SPIN_MICROSECONDS = 20;
export const MAX_SLEEP_MS = 2;
/** A lock met for this long is suspected: is its owner alive? */
export const SUSPECT_MS = 5;
/** The background sweep that finds dead executors nobody has run into. */
export const SWEEP_MS = 500;
/** Freed cells that an executor remembers for quick reuse; the rest is found by sweeping. */
export const MAX_FREE_CELLS = 4_096;
/** Epochs that an announced one may lag behind; the 30 bits of a status word bound it. */
export const MAX_EPOCH_LAG = 2 ** 28;

function relation(holds: boolean, what: string): void {
  if (!holds) throw new Error(`limits: ${what}`);
}

relation(REGION_BYTES % (UNIT_BYTES * MAX_BLOCK_UNITS) === 0, "a region is whole blocks");
relation(MAX_CELL_BYTES <= UNIT_BYTES * MAX_BLOCK_UNITS, "the largest cell fits a block");
relation(MIN_MEMORY_BYTES % (UNIT_BYTES * MAX_BLOCK_UNITS) === 0, "a store is whole blocks");
relation(MAX_SLOTS < 256, "a slot id fits eight bits and leaves one value for nobody");
relation(1 << (32 - MAX_SHARD_DEPTH) === SHARD_BUCKETS, "hash bits: bucket and depth");
relation(MAX_ROW_BYTES + 256 * KIB <= THREAD_JOURNAL_BYTES, "the largest row fits a journal");
relation(MAX_VALUE_BYTES < MAX_ROW_BYTES, "the largest value fits a row");
relation(MAX_SCHEMA_BYTES < MAX_CELL_BYTES, "a schema fits one object");
