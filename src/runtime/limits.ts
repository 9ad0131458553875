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
/** Of these, for the threads that write the log and take checkpoints. */
export const DEVICE_SLOTS = 2;
export const JOURNAL_BYTES = 4 * MIB;
export const THREAD_JOURNAL_BYTES = 4 * MIB;

/** Snapshots that may be open in a store at once, in all its processes. */
export const MAX_SNAPSHOTS = 1_024;
/** An older snapshot is released, unless `open` says otherwise (NAM-DB §5.3: the time-out E). */
export const DEFAULT_MAX_SNAPSHOT_MS = 60_000;
/** The old versions that an executor has kept last, in a ring of its own (NAM-DB §5.1). */
export const VERSION_RING_BYTES = 4 * MIB;
export const VERSION_RING_BUCKETS = 1 << 14;
/** The head, the tail, and an index over the ring. */
export const RING_HEADER_BYTES = 64 * 4 + VERSION_RING_BUCKETS * 4;
/** What does not fit the rings moves to chunks that all executors share. */
export const OVERFLOW_CHUNK_BYTES = 4 * MIB;
export const OVERFLOW_BUCKETS = 1 << 17;
export const OVERFLOW_INDEX_BYTES = OVERFLOW_BUCKETS * 4;
/** A chunk number and a place in the chunk are one word. */
export const MAX_OVERFLOW_CHUNKS = 1 << 13;
/** How often the process that has a snapshot open looks after old versions. */
export const KEEPER_MS = 20;
/** Ring bytes that are moved at a time, so that nobody waits long for the keeper's lock. */
export const KEEPER_BATCH_BYTES = 256 * KIB;
/**
 * A writer whose ring is full takes the keeper's lock. Should one who holds it not get a turn, on a
 * busy machine, or be stopped, the writer waits at most so long; then snapshots give way.
 */
export const KEEPER_PATIENCE_MS = 1_000;

/** The head of a log segment or a checkpoint. */
export const HEAD_BYTES = 1_024;
/** A log segment; one that takes a larger batch is as large as it must be. */
export const SEGMENT_BYTES = 16 * MIB;
/** How far the log may lag behind in "lazy", unless `open` says otherwise. */
export const DEFAULT_LAG_MS = 20;
export const MAX_LAG_MS = 10_000;
/** A journal that is this full wakes the log's writer before its time. */
export const JOURNAL_NUDGE = 1 / 4;
/** How often an open process looks whether the log has a writer: a dead one's work is taken over. */
export const DEVICE_WATCH_MS = 25;
/** A commit that waits for the disk looks for it so long before it sleeps: a wake-up costs 20 µs. */
export const DURABLE_SPIN_MS = 0.5;
/** And the log's writer for the next commit. */
export const DEVICE_SPIN_MS = 0.2;
/** A sleeper looks after this time whether there is somebody who will wake it. */
export const DURABLE_LOOK_MS = 20;
/** How long the log's writer waits at a time for a commit that is being installed. */
export const DEVICE_PATIENCE_MS = 100;
/** How often a writer of the log whose disk is full tries again. */
export const DISK_FULL_RETRY_MS = 100;
/** Checkpoints by time and by log size, unless `open` says otherwise. */
export const DEFAULT_CHECKPOINT_MS = 5 * 60_000;
export const DEFAULT_CHECKPOINT_BYTES = 256 * MIB;
export const MIN_CHECKPOINT_BYTES = 64 * KIB;
/** After so many segments a checkpoint is due, however little is in them. */
export const MAX_LOG_SEGMENTS = 128;
/** After one that failed, and was not asked for. */
export const CHECKPOINT_RETRY_MS = 10_000;
/** Full checkpoints, with the incremental ones upon them, so that a damaged one is not the end. */
export const KEPT_CHECKPOINTS = 2;
/** A chain of incremental checkpoints gets so long at most, before a full one. */
export const MAX_DELTAS = 4;
/** An incremental checkpoint pays if it has at most this part of a full one's bytes. */
export const DELTA_AT_MOST = 1 / 2;
/** A part of memory that recovery hands to one thread: every block lies in one. */
export const RECOVERY_CHUNK_BYTES = UNIT_BYTES * MAX_BLOCK_UNITS;
export const MAX_RECOVERY_THREADS = 16;
/** How long others wait for the one who is recovering the store. */
export const RECOVERY_PATIENCE_MS = 30 * 60_000;

/** What one transaction writes is kept in private memory until it commits. */
export const MAX_ARENA_BYTES = 2 * JOURNAL_BYTES;
/** A larger arena is given back after its transaction. */
export const KEPT_ARENA_BYTES = MIB;

/** Objects that one transaction may read, write, allocate and free, together. */
export const MAX_ACCESSES = 1 << 17;

export const MAX_TABLES = 256;
export const MAX_NAME_BYTES = 200;
export const MAX_FIELDS = 256;
/** Indexes of one table. */
export const MAX_INDEXES = 32;
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

/** B+-tree: bytes of its nodes with their headers; keys of one size make do with small leaves. */
export const LEAF_BYTES = 2 * KIB;
export const INNER_BYTES = 8 * KIB;
/** Nodes with keys of many sizes hold at least four of the longest ones, and two more as fences. */
export const VARIABLE_NODE_BYTES = 8 * KIB;
/** A key in its ordered form. */
export const MAX_ORDERED_KEY_BYTES = 1024;
/** Keys of one size, in their ordered form, have at most so many words. */
export const MAX_FIXED_KEY_WORDS = 8;
/** Text up to this declared length has one size in an ordered key: with its length, eight words. */
export const MAX_FIXED_TEXT_BYTES = 4 * (MAX_FIXED_KEY_WORDS - 1);
/** A leaf or inner node that is emptier than this looks for a neighbour to merge with. */
export const MERGE_BELOW = 1 / 4;
/** Two neighbours are merged if the result is at most this full. */
export const MERGED_AT_MOST = 3 / 4;
/** The root is at most on this level; the leaves are on level 0. */
export const MAX_TREE_LEVEL = 30;
/** Descents to a leaf that others keep splitting or merging, before the transaction starts again. */
export const MAX_DESCENTS = 1 << 10;

/** A lookup that keeps meeting moving keys gives up its turn after so many attempts. */
export const LOOKUP_ATTEMPTS = 1 << 20;

/** Rows that a scan asks its cursor for at a time. */
export const SCAN_BATCH_ROWS = 256;
/** An asynchronous scan lets the event loop turn after this much work. */
export const SCAN_YIELD_MS = 5;
/** Rows that are indexed in one transaction while an index is built. */
export const BUILD_BATCH_ROWS = 64;

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
relation(2 * MAX_CELL_BYTES <= VERSION_RING_BYTES, "the largest object fits a version ring");
relation(2 * MAX_CELL_BYTES <= OVERFLOW_CHUNK_BYTES, "the largest object fits a chunk");
relation(
  4 * (MAX_ORDERED_KEY_BYTES + MAX_INLINE_ROW_BYTES) + 2 * MAX_ORDERED_KEY_BYTES + 128 <=
    VARIABLE_NODE_BYTES,
  "four of the longest keys and two fences fit a node",
);
relation(
  (JOURNAL_BYTES & (JOURNAL_BYTES - 1)) === 0,
  "positions in a journal go round in a circle",
);
relation(MAX_REGIONS <= 1 << 16, "a region id and a size class are one word of a journal");
relation(HEAD_BYTES < SEGMENT_BYTES, "a segment has room for more than its head");
relation(MAX_SCHEMA_BYTES < MAX_CELL_BYTES, "a schema fits one object");
