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

/**
 * A store that is created has room to grow to so many times the machine's memory, within these bounds, if its
 * regions are large enough for MAX_REGIONS. Room costs each process that opens the store address space, 16 bytes
 * for each unit, and V8 collects garbage whenever 64 MiB more are mapped.
 */
export const ROOM_TO_GROW_SHARE = 2;
export const MIN_ROOM_TO_GROW_BYTES = 16 * 1024 * MIB;
export const ROOM_TO_GROW_BYTES = 256 * 1024 * MIB;
export const DEFAULT_MEMORY_BYTES = 256 * MIB;
/** Regions of a store that is created where there is little shared memory, such as Docker's 64 MB. */
export const SMALL_REGION_BYTES = 8 * MIB;
/** Larger pages than this are not asked for: regions would not be whole pages (64-bit Arm with pages of 64 KiB has 512 MiB). */
export const MAX_HUGE_PAGE_BYTES = 2 * MIB;
/** How long one who creates a segment looks for large pages; then the rest gets small ones. */
export const HUGE_PAGES_MS = 250;
/** The same within an event loop that should turn: the rest is made large in the background, so long at a time. */
export const HUGE_PAGES_TURN_MS = 4;
/** How soon the background goes on with it. */
export const HUGE_PAGES_AGAIN_MS = 20;
/** Shared memory that should be left beside the rows: journals, old versions. */
export const SPARE_MEMORY_BYTES = 64 * MIB;
/** The part of the machine's memory that `memoryBytes: "auto"` may come to use. */
export const AUTO_MEMORY_SHARE = 1 / 2;
/** What it leaves free in the file system of the store's memory. */
export const AUTO_SPARE_BYTES = 16 * MIB;
/** Where only threads share a store, all of its memory exists from the start, as address space. */
export const MAX_AUTO_THREAD_BYTES = 4 * 1024 * MIB;
/** How long `resize` to less waits for transactions that may still use what is to be given back. */
export const SHRINK_PATIENCE_MS = 1_000;

export const SIZE_CLASSES = 256;
export const MIN_CELL_BYTES = 64;
export const MAX_CELL_BYTES = MIB;

/** A slot id takes eight bits of a TID, and 0 in a lock word means "nobody". */
export const MAX_SLOTS = 255;
/** In the threads-only mode all journals exist from the start, so there are fewer of them. */
export const MAX_THREAD_SLOTS = 32;
/** Of these, for the threads that write the log and take checkpoints. */
export const LOG_THREAD_SLOTS = 2;
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
export const LOG_WATCH_MS = 25;
/** The same where many processes have the store open, which share the watch. */
export const LOG_SHARED_WATCH_MS = 2_000;
/** After so long without a commit the log's writer rests, until the next one calls it. */
export const LOG_REST_AFTER_MS = 100;
/** How long others leave it to one process to start a thread that writes the log. */
export const LOG_START_PATIENCE_MS = 2_000;
/**
 * Of commits that come quickly, one in so many looks at the clock, to see how far the log is behind. All do
 * that if the last two looks were further apart than this.
 */
export const COMMITS_PER_LOOK = 4;
export const QUICK_COMMITS_MS = 1;
/** A commit that waits for the disk looks for it so long before it sleeps: a wake-up costs 20 µs. */
export const DURABLE_SPIN_MS = 0.5;
/** And the log's writer for the next commit. */
export const LOG_SPIN_MS = 0.2;
/** A sleeper looks after this time whether there is somebody who will wake it. */
export const DURABLE_LOOK_MS = 20;
/** How long the log's writer waits at a time for a commit that is being installed. */
export const LOG_PATIENCE_MS = 100;
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
/** How long one who must be alone in a store waits for others, who may be on their way out. */
export const FOLDER_PATIENCE_MS = 250;
/**
 * An executor looks after so many of its commits whether the store's memory is still there. A power of
 * two.
 */
export const COMMITS_PER_MEMORY_LOOK = 4_096;
/** How long others wait for the one who is recovering the store. */
export const RECOVERY_PATIENCE_MS = 30 * 60_000;

/** The gateway: replies of one client that wait, before its requests do so, too. */
export const MAX_WAITING_REPLY_BYTES = MIB;
/** What one client may queue with MULTI: more fits no transaction. */
export const MAX_QUEUED_BYTES = 16 * MIB;
/** Redis's own: an inline command, or the line of a length. */
export const MAX_INLINE_REQUEST_BYTES = 64 * KIB;
/** Defaults of what a gateway is told (gateways/gateway-options.ts). */
export const DEFAULT_MAX_CLIENTS = 10_000;
export const DEFAULT_MAX_REQUEST_BYTES = 8 * MIB;
export const DEFAULT_MAX_PIPELINE = 65_536;
export const DEFAULT_MAX_OUTPUT_BYTES = 64 * MIB;
export const MAX_GATEWAY_THREADS = 64;
/**
 * When a command has waited in vain for a process that is stopped in a commit, those that meet it within
 * this time hardly wait for it: while a command waits, no other client of its thread is served.
 */
export const GATEWAY_STUCK_MS = 1_000;
/** How often keys whose time is over are swept away, and how long that may take at a time. */
export const EXPIRY_SWEEP_MS = 100;
export const EXPIRY_SWEEP_BUDGET_MS = 5;
/** Expired rows of a table that one transaction removes: few enough that others seldom meet it. */
export const EXPIRED_ROWS_AT_ONCE = 64;
/** What members of deleted collections may take of a turn of the event loop. */
export const GARBAGE_TURN_MS = 2;
/** If there is more to do. */
export const EXPIRY_SWEEP_AGAIN_MS = 15;

/**
 * What one transaction changes. Beyond JOURNAL_BYTES its record gets a segment of its own (engine/large-record.ts), if
 * memory has files.
 */
export const MAX_TRANSACTION_BYTES = 256 * MIB;
/** What one transaction writes is kept in private memory until it commits. */
export const MAX_ARENA_BYTES = 2 * MAX_TRANSACTION_BYTES;
/** A larger arena is given back after its transaction. */
export const KEPT_ARENA_BYTES = MIB;

/** Objects that one transaction may read, write, allocate and free, together. */
export const MAX_ACCESSES = 1 << 20;

export const MAX_TABLES = 256;
export const MAX_NAME_BYTES = 200;
export const MAX_FIELDS = 256;
/** The position of an enum's value takes one byte. */
export const MAX_ENUM_VALUES = 256;
/** Numbers for autoIncrement() keys that an executor takes at a time. */
export const SEQUENCE_RANGE_NUMBERS = 64;
/** And that the counter moves on beyond a key that a caller has chosen. */
export const SEQUENCE_PASS_NUMBERS = 1_024;
/** An element of an edge list: some sixty edges with 16 bytes of data. */
export const MAX_ELEMENT_BYTES = 2 * KIB;
export const MAX_EDGE_DATA_BYTES = 768;
/** A list with more edges than this gets a second tree, which leads from an edge's target to its time. */
export const FINDER_EDGES = 512;
/** Kinds of objects, and types of associations with their inverses, of one graph. */
export const MAX_OBJECT_KINDS = 255;
export const MAX_ASSOCIATION_TYPES = 255;
/** Edges that one call returns, and targets that `assocGet` takes. */
export const MAX_EDGES_READ = 10_000;
/** Edges that one transaction removes with their object; more take several transactions. */
export const MAX_EDGES_DELETED_AT_ONCE = 1_000;
/** Objects and list heads whose places an open graph remembers: at first, and at most. */
export const MIN_REMEMBERED_PLACES = 1 << 12;
export const MAX_REMEMBERED_PLACES = 1 << 19;
/** Indexes of one table. */
export const MAX_INDEXES = 32;
/** A schema is kept in one catalogue object. */
export const MAX_SCHEMA_BYTES = 64 * KIB;
/** Formats of recorded rows that a watched table keeps: the present one, and those before it. */
export const MAX_CHANGE_FORMATS = 16;
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

/**
 * Robin Hood tables (Xenic §4.1.2): slots of a segment, and D_m, the displacement that no pair reaches. With 16, about 4 %
 * of the pairs of a table that is nine tenths full overflow, as in FaRM's.
 */
export const SEGMENT_SLOTS = 8;
export const MAX_DISPLACEMENT = 16;
/** A NIC reads so many slots more than it knows to be needed (k in §4.1.3). */
export const DISPLACEMENT_SLACK = 1;
/** Rows in a page of the NIC's index; the paper does not say how many. */
export const NIC_PAGE_SLOTS = 4;
/** A NIC's question that was not answered is asked again after this pause, which doubles up to the other. */
export const XENIC_RESEND_MIN_US = 500;
export const XENIC_RESEND_MAX_US = 8_000;
/** EXECUTE, VALIDATE and SHIP are given up after so many times: nothing is decided yet. */
export const XENIC_ATTEMPTS = 6;
/** A coordinator that has nothing else to say tells backups this often which of its transactions are over. */
export const XENIC_LOW_US = 200;
/** Over sockets these times are so much longer: TCP loses nothing while a connection lasts. */
export const XENIC_SOCKET_TIMES = 200;
/** Rows that tables have room for beyond what they say: for transactions under way when one becomes full. */
export const XENIC_RESERVE_ROWS = 16_384;
/** Nodes with the protocol "xenic": their memory for tables, and that of their NICs, unless their files say otherwise. */
export const XENIC_MEMORY_BYTES = 1024 * MIB;
export const XENIC_NIC_MEMORY_BYTES = 256 * MIB;
/** Tables of such a cluster: how many, the longest schema, and what one has room for unless its creator says otherwise. */
export const XENIC_MAX_TABLES = 1_024;
export const XENIC_MAX_SCHEMA_BYTES = 64 * KIB;
export const XENIC_MAX_ROWS = 2 ** 27;
export const XENIC_ROWS = 16_384;
export const XENIC_ROW_BYTES = 256;
export const XENIC_MAX_ROW_BYTES = 64 * KIB;
/** Of each of a node's two logs: its ring in host memory, and how many records may wait in it before nothing new begins. */
export const XENIC_LOG_BYTES = 4 * MIB;
export const XENIC_LOG_RECORDS = 4_096;
/** Records that a host applies at once, before it looks at anything else. */
export const XENIC_APPLY_RECORDS = 256;
/** How often a host looks at its logs while there is something to apply now and then, and how often in vain before it sleeps. */
export const XENIC_LOOK_MS = 2;
export const XENIC_LOOKS = 16;
/** How often nodes look after each other, and how many looks in vain make a node unreachable. */
export const XENIC_BEAT_MS = 250;
export const XENIC_BEAT_MISSES = 8;
/** A procedure at the NIC: how long one run may take, its heap, the workers of a NIC, and calls that wait for one. */
export const XENIC_PROCEDURE_MS = 3_000;
export const XENIC_PROCEDURE_HEAP_MIB = 64;
/** Buffers are not in the heap: how far the process may grow during one run, and how often a run is looked at. */
export const XENIC_PROCEDURE_GROWTH_MIB = 256;
export const XENIC_PROCEDURE_LOOK_MS = 10;
export const XENIC_PROCEDURE_WORKERS = 1;
export const XENIC_PROCEDURE_QUEUE = 1_024;
export const XENIC_PROCEDURE_ROWS = 1_024;
/** Rows of one transaction, in messages of clients, and the room of all of them: they fit a frame, and a record of the log. */
export const XENIC_MAX_ITEMS = 16_384;
export const XENIC_TRANSACTION_BYTES = 2 * MIB;

/** FaSST's buckets (§5: 7 to 15 slots): as many as fit this size, with the header. */
export const MIN_BUCKET_SLOTS = 7;
export const MAX_BUCKET_SLOTS = 15;
export const SMALL_BUCKET_BYTES = 512;
/** A shard that had to chain and whose main buckets are at least this full is split in two. */
export const BUCKETS_SPLIT_OCCUPANCY = 0.8;
/** A shard is also split when one chain gets this long, if it is at least half as full. */
export const BUCKETS_SPLIT_CHAIN_BLOCKS = 2;

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
/** Looks at a shard that others keep splitting, before the transaction starts again. */
export const SHARD_ATTEMPTS = 1 << 10;
/** Shards are split long before a chain is so long: one that is, is damaged, and goes round. */
export const MAX_CHAIN_BLOCKS = 1 << 12;

/** Rows that a scan asks its cursor for at a time. */
export const SCAN_BATCH_ROWS = 256;
/** Changes that a watch decodes ahead of its reader; of the log it reads a batch at a time. */
export const WATCH_AHEAD_CHANGES = 256;
/** How often a watch that has told all looks for more: soon after a change, and after a while. */
export const WATCH_LOOK_MIN_MS = 1;
export const WATCH_LOOK_MAX_MS = 20;
/** Tools let the event loop turn after this much work. */
export const SCAN_YIELD_MS = 5;
/** Asynchronous transactions and scans of one thread let the event loop turn after this much work. */
export const EVENT_LOOP_TURN_MS = 4;
/**
 * How long an asynchronous transaction waits for another executor within a turn of the event loop;
 * most locks are held for microseconds. Then it waits while the loop turns.
 */
export const ASYNC_PATIENCE_MS = 1;
/** For so long, whoever was not worth that wait is not waited for within a turn again. */
export const STUCK_MS = 50;
/** Pauses between two looks at what an asynchronous transaction waits for. */
export const MAX_ASYNC_PAUSE_MS = 20;
/** Splits and merges that come after an asynchronous transaction, before the rest is put off. */
export const MAINTENANCE_TURN_MS = 2;
/** What `load` writes in one transaction: so many rows, or so many characters of text. */
export const LOAD_BATCH_ROWS = 256;
export const LOAD_BATCH_LENGTH = 256 * KIB;
/** The longest row in a text that is loaded: the largest row there is, with every byte escaped. */
export const MAX_LOADED_ROW_LENGTH = 32 * MIB;
/** Rows that are indexed in one transaction while an index is built. */
export const BUILD_BATCH_ROWS = 64;
/** How long a migration works before it looks whether others do, and how much longer it rests then. */
export const MIGRATION_SLICE_MS = 2;
export const MIGRATION_REST = 2;
/** A hashed table is copied in so many ranges at most, each of so many rows at least, about. */
export const MIGRATION_RANGES = 32;
export const MIGRATION_RANGE_ROWS = 64;
/** How often a migration notes in the catalogue how far it is, and others look. */
export const MIGRATION_NOTE_MS = 500;
export const MIGRATION_POLL_MS = 50;

/** Operators, fields and values of one expression, and how deep they may be nested. */
export const MAX_EXPRESSION_NODES = 10_000;
export const MAX_EXPRESSION_DEPTH = 200;
/** Groups of one `aggregate`. */
export const MAX_GROUPS = 1 << 20;
/** Programs that a thread keeps compiled for a table; the one used longest ago is dropped first. */
export const MAX_COMPILED_PROGRAMS = 64;
/** A list of `in` up to this long can be looked up value by value. */
export const PLAN_IN_VALUES = 256;
/** Rows that the planner counts at most in a range, and in the table. */
export const PLAN_RANGE_ROWS = 1_024;
export const PLAN_TABLE_ROWS = 16_384;
/** How long it goes by what it has counted in a table. */
export const PLAN_COUNT_MS = 1_000;

export const DEFAULT_TIMEOUT_MS = 5_000;
/** A node that starts waits so long for the number of its life to be on disk: a busy machine starts the log's writer late. */
export const FIRST_SYNC_MS = 60_000;
/** The same for calls that hold the event loop while they wait: `transactSync`, `get`, `snapshot`. */
export const DEFAULT_SYNC_TIMEOUT_MS = 500;
export const MAX_TIMEOUT_MS = 24 * 3600 * 1000;
/** Attempts of one transaction before it fails with SITU_CONFLICT, whatever its deadline. */
export const MAX_ATTEMPTS = 10_000;
/** Spinning longer than this on one lock turns into sleeping. */
export const SPIN_MICROSECONDS = 20;
export const MAX_SLEEP_MS = 2;
/** A lock met for this long is suspected: is its owner alive? */
export const SUSPECT_MS = 5;
/**
 * A transaction is starved after so many conflicts and so much time since the first, or when this part
 * of its time-out is over (engine/priority.ts).
 */
export const STARVED_CONFLICTS = 3;
export const STARVED_MS = 10;
export const STARVED_SHARE = 1 / 5;
/** How long others yield to it at most, the first time and if that was not enough. */
export const PRIORITY_MS = 250;
export const MAX_PRIORITY_MS = 1_000;
/** For how many times as long nobody takes priority after it. */
export const PRIORITY_REST = 3;
/** One who does not come for it is passed over after this time. */
export const PRIORITY_GRACE_MS = 10;
/** How long the holder waits for commits that were under way when it took priority. */
export const PRIORITY_COMMITS_MS = 2;
/** The background sweep that finds dead executors nobody has run into. */
export const SWEEP_MS = 500;
/** Executors that one sweep in the background looks at: many processes share the work. */
export const SWEPT_SLOTS = 16;
/** So many executors sweep every SWEEP_MS each; where there are more, all together as often as these, */
export const UPKEEP_SHARERS = 8;
/** but each at least once in so many times SWEEP_MS: the others may be stopped. */
export const UPKEEP_MAX_SHARES = 8;
/** How often a process that waits to open a store looks again, at first and after a while. */
export const OPEN_RETRY_MIN_MS = 2;
export const OPEN_RETRY_MAX_MS = 40;
/** Where many wait, more rarely: it pauses for this part of the time that it has waited, up to CROWD_MS. */
export const OPEN_RETRY_SHARE = 1 / 10;
export const OPEN_RETRY_CROWD_MS = 250;
/** Freed cells that an executor remembers for quick reuse; the rest is found by sweeping. */
export const MAX_FREE_CELLS = 4_096;
/** Remembered cells that are compared with where a new one should be near to. */
export const CELLS_PER_SEARCH = 8;
/** Blocks with free cells that an executor remembers of each class, beside those that it has made. */
export const MAX_CANDIDATES = 64;
/** Where there is no cell of its class, an object lies in one of up to so many times the size. */
export const MAX_CELL_EXCESS = 2;
/** An executor prefers blocks of a class that makes up at least one in so many of its allocations. */
export const HOT_CLASSES = 16;
/** Allocations of an executor that it takes to tell how large the part of one class is. */
export const HOT_SAMPLE = 8 * HOT_CLASSES;
/** How often a transaction that finds no memory gets some back and tries again: what it gets may be what it has just used. */
export const RECLAIM_ATTEMPTS = 3;
/** How long a synchronous transaction that finds no memory waits for others to move on. */
export const RECLAIM_PATIENCE_MS = 100;
/** Allocations near something in a full region before that region is asked for a block again. */
export const FULL_REGION_PAUSE = 1_024;
/** Epochs that an announced one may lag behind; the 30 bits of a status word bound it. */
export const MAX_EPOCH_LAG = 2 ** 28;
/**
 * Between the clocks of the nodes that a transaction locks at. Beyond, it is aborted, and those that are behind catch up
 * first: a clock that jumps must not leave an open transaction behind, and this one is open at all of them.
 */
export const MAX_EPOCH_GAP = 2 ** 26;
/** Recovery from the log passes over so many epochs: more than any life had that were not on disk. */
export const LOST_EPOCHS = 2 ** 28;
/** Epochs lie below this: 44 bits of a TID (engine/tid.ts). */
export const MAX_EPOCH = 2 ** 44;

/** A message between machines, its header included: a transaction's largest row, and some. */
export const MAX_FRAME_BYTES = 4 * MIB;
/** Words that one verb reads or writes. */
export const MAX_VERB_WORDS = (64 * KIB) / 4;
/** How deep the arguments of procedures may be nested. */
export const MAX_VALUE_DEPTH = 32;
/** Requests that one end has under way to another; further ones wait in its queue. */
export const MAX_IN_FLIGHT = 4_096;
export const MAX_QUEUED_REQUESTS = 1 << 16;
/** Bytes that wait for a reader who does not read, before his requests are not read either. */
export const MAX_UNREAD_BYTES = 8 * MIB;
/** Of all connections to a node together: each may have less where there are many. */
export const MAX_ALL_UNREAD_BYTES = 1024 * MIB;
/** The least that each may have. */
export const MIN_UNREAD_BYTES = 256 * KIB;
/** Parts of frames that a node keeps until the rest arrives, of all connections together. */
export const MAX_PARTIAL_BYTES = 256 * MIB;
/** Bytes that one tag authenticates: what a reader keeps until it knows that they are right. */
export const MAX_BATCH_BYTES = 16 * KIB;
/** A connection that has requests under way and hears nothing for so long has lost one (FaSST §4.3). */
export const PROGRESS_TIMEOUT_MS = 1_000;
/** From connecting to the end of the handshake. */
export const HANDSHAKE_TIMEOUT_MS = 5_000;
/** Connections to one node, unless its configuration says otherwise. */
export const DEFAULT_MAX_CONNECTIONS = 1_024;
/** Pauses between attempts to reach a node that does not answer. */
export const RECONNECT_MIN_MS = 10;
export const RECONNECT_MAX_MS = 1_000;
/** A ring between two ends in shared memory (FaRM §3.1). */
export const MESSAGE_RING_BYTES = 8 * MIB + 4 * KIB;
/** Ends that have such rings to one node at a time. */
export const MAX_RING_SLOTS = 128;
/** Who finds nothing in its rings for so long sleeps: a wake-up costs tens of microseconds. */
export const RING_POLL_MS = 0.02;
/** And looks after itself now and then. */
export const RING_SLEEP_MS = 500;

/** Memory servers (protocols/nam): tables that each has in its part of the catalogue, and the schema of one. */
export const NAM_MAX_TABLES = 1_024;
export const NAM_MAX_SCHEMA_BYTES = 64 * KIB;
/** Cells of a table, in all; each has room for one key, for good. */
export const NAM_MAX_CELLS = 2 ** 30;
/** Rows that a table has room for, bytes of a row without a fixed size, and of such a key, unless hints say otherwise. */
export const NAM_ROWS = 16_384;
export const NAM_ROW_BYTES = 256;
export const NAM_KEY_BYTES = 64;
/** Cells for each row that a table is to have room for: a key may be only so far from its place. */
export const NAM_CELLS_PER_ROW = 2;
/** Old versions that each record has room for before they are moved. */
export const NAM_RING = 3;
/** Execution threads of a memory, unless its settings say otherwise, and those of one compute server. */
export const NAM_THREADS = 256;
export const NAM_MAX_THREADS = 4_096;
export const NAM_THREADS_PER_CLIENT = 16;
/** What a transaction may write: it lies in a journal, which is read by one verb. */
export const NAM_JOURNAL_BYTES = 64 * KIB;
/** Old versions that have no room in their record's ring. */
export const NAM_OVERFLOW_BYTES = 64 * MIB;
/** What a memory server holds, unless its file says otherwise. */
export const NAM_MEMORY_BYTES = 1024 * MIB;
/** A transaction or a snapshot that is older may find that a version it needs was collected. */
export const NAM_LONGEST_TRANSACTION_MS = 10_000;
/** How often the mover of a memory server looks, and at how many cells. */
export const NAM_MOVER_MS = 20;
export const NAM_MOVER_CELLS = 4_096;
/** Servers that have each row, where there are three or more, unless their files say otherwise. */
export const NAM_COPIES = 2;
/** Memory servers that were asked so often and have not answered are given up, if there are copies. */
export const NAM_SERVER_MISSES = 4;
/** How often a compute server shows that it is alive, and how often it must be missed to be taken for dead. */
export const NAM_BEAT_MS = 500;
export const NAM_BEAT_MISSES = 8;

/** Pauses before a message that was lost is sent again. */
export const RESEND_MIN_MS = 1;
export const RESEND_MAX_MS = 250;

/** How often requests under way are looked at, whether their time is over. */
export const DEADLINE_LOOK_MS = 20;

/** Transactions that hold locks at one node between two messages. */
export const MAX_PREPARED = 4_096;
/** Records of one coordinator that a backup keeps and has not applied: beyond, that coordinator waits. */
export const MAX_LOGGED = 1 << 16;
/** The same of all coordinators together. */
export const MAX_ALL_LOGGED = 1 << 18;
/** Transactions that a coordinator begins after one that is not over: others remember them until it is. */
export const MAX_SEQUENCE_SPAN = 1 << 18;
/** What a transaction writes, as the record of one backup: it comes in one message. */
export const MAX_RECORD_BYTES = MAX_FRAME_BYTES;
/** Records of one log that lie in slots, and the words of a slot; longer and further ones are rows. */
export const RECORD_SLOTS = 512;
export const RECORD_SLOT_WORDS = 128;
/** Slots that are made at once. */
export const RECORD_PIECE_SLOTS = 64;
/** Transactions of an earlier life that a node tells a coordinator of in one message. */
export const FIND_BATCH = 256;
/** Records that a backup applies in one local transaction. */
export const APPLY_BATCH = 16;
/** A record that met a lock is tried again after this time. */
export const APPLY_RETRY_MS = 1;
/** A commit that met another's lock on its way, or a full journal, is tried again after this time. */
export const COMMIT_RETRY_MS = 1;
/** Snapshots of the cluster that are open at one node: in all, and of one client. */
export const MAX_SERVED_SNAPSHOTS = 512;
export const MAX_CLIENT_SNAPSHOTS = 64;
/** A node that hears nothing of a snapshot for so long releases it; its client tells of it so often. */
export const SNAPSHOT_LEASE_MS = 10_000;
export const SNAPSHOT_RENEW_MS = 2_500;
/** How often a node looks for snapshots whose time is over. */
export const SNAPSHOT_LOOK_MS = 250;
/** A node answers after so long that a snapshot still has to wait for commits. */
export const SNAPSHOT_SETTLE_MS = 50;
/** Snapshots of the cluster are taken at multiples of so many epochs, so that nodes agree on one at once. */
export const SNAPSHOT_EPOCHS_AHEAD = 256;
/** A client that closes a snapshot waits so long until all nodes know it. */
export const SNAPSHOT_END_MS = 250;
/** How often nodes are asked for a common epoch, and a snapshot is taken anew that was released meanwhile. */
export const SNAPSHOT_BEGIN_ROUNDS = 8;
export const SNAPSHOT_TAKE_ATTEMPTS = 8;
/** Transactions in doubt that one message of a recovery tells of. */
export const RECOVERY_BATCH = 256;
/** Backups are told of so many committed transactions at once, or after this time. */
export const TRUNCATE_BATCH = 64;
export const TRUNCATE_MS = 2;

/** Sessions of clients that a node remembers, and requests of one that are under way at once. */
export const MAX_SESSIONS = 10_000;
export const SESSION_SLOTS = 4_096;
/** Outcomes that a node remembers, of all sessions together. */
export const MAX_KEPT_OUTCOMES = 1 << 18;
/** What procedures have returned, for clients that may ask again; beyond, the oldest are forgotten. */
export const MAX_KEPT_RESULT_BYTES = 64 * MIB;
/** Calls that others have passed on to a node, whose callers may ask for them. */
export const MAX_PASSED_ON_CALLS = 1 << 15;
/** The name of a client's session; it is part of every record. */
export const MAX_SESSION_NAME_LENGTH = 128;
/** A session that was silent for so long may be forgotten, where there are too many. */
export const SESSION_IDLE_MS = 60_000;

/** Transactions and calls of one connected database that run at once, however quick; others wait. */
export const MAX_RUNNING_TRANSACTIONS = 1_024;
/** At first, and however slow they are. */
export const FIRST_RUNNING_TRANSACTIONS = 512;
export const MIN_RUNNING_TRANSACTIONS = 64;
/** Where some wait: if the others take longer than this fewer run, if they take less more do. */
export const SLOW_TRANSACTION_MS = 1_000;
export const QUICK_TRANSACTION_MS = 250;
/** For so long it is measured how long they take. */
export const ADMISSION_WINDOW_MS = 250;
export const MAX_WAITING_TRANSACTIONS = 1 << 16;
/** Commits that one thread of a node coordinates for clients at once; further ones are refused. */
export const MAX_SUBMITTED = 1 << 14;
/** Procedures that run at once at a node; further calls wait, up to so many. */
export const MAX_RUNNING_CALLS = 1_024;
export const MAX_WAITING_CALLS = 1 << 14;
/** Calls about one row that one transaction carries out (node/combining.ts). */
export const MAX_COMBINED_CALLS = 32;
/** For how long calls about a row are combined after two of them came together last. */
export const COMBINING_MS = 100;
/** Rows whose calls are combined at a node; those of others run side by side. */
export const MAX_COMBINED_ROWS = 1_024;
/** The least time that a commit has, however late it is begun; and a reply, after its request's time. */
export const OUTCOME_GRACE_MS = 250;

/** Pauses between two looks of a client for a later configuration, while something is the matter. */
export const FOLLOW_MIN_MS = 10;
export const FOLLOW_MAX_MS = 100;
/** For so long after the last sign that something is. */
export const FOLLOW_FOR_MS = 3_000;
/** Nodes that it asks each time, and for how long; after so many looks without an answer it asks its seeds. */
export const FOLLOW_ASKED = 2;
export const FOLLOW_ANSWER_MS = 500;
export const FOLLOW_SILENT_LOOKS = 3;
/** How much faster the clock of another machine may be, when it says for how long something was so. */
export const CLOCK_SLACK = 1.1;
/** `open` waits so long for nodes that cannot be reached, once another one has answered. */
export const MEET_PATIENCE_MS = 1_000;

/** How long a coordinator tries to lock what it does not reach, before it gives up. */
export const LOCK_TIMEOUT_MS = 3_000;

/** Rows that a node looks at, and bytes of them that it sends, in one step of a scan. */
export const SCAN_STEP_ROWS = 1_024;
export const SCAN_STEP_BYTES = 256 * KIB;
/** How often a step that met a lock is tried again at once, before its transaction is. */
export const SCAN_STEP_ATTEMPTS = 4;
/** Up to so many rows, a scan outside of transactions is validated before it gives out the first. */
export const SCAN_HELD_ROWS = 4_096;

/** A lookup by verbs that keeps meeting moving keys is told as locked after so many attempts. */
export const REMOTE_LOOKUP_ATTEMPTS = 16;
/** Blocks of a chain that a lookup by verbs reads one by one, before it asks by a message. */
export const MAX_CHAIN_READS = 32;

/** How long a node that is told to stop waits for the commits that it takes part in. */
export const DRAIN_MS = 5_000;
/** And then for backups to hear that they may apply. */
export const DRAIN_TRUNCATE_MS = 500;

/** Nodes of a cluster; a node's number and a sequence make the name of a transaction. */
export const MAX_NODES = 128;
/** Virtual rings of consistent hashing (FaRM §3.3: k = 100). */
export const DEFAULT_RINGS = 100;
export const DEFAULT_PARTITIONS = 256;
export const MAX_PARTITIONS = 1 << 14;
/** Partitions that are copied to where they lie better at a time, and that get another primary at a time. */
export const MOVED_AT_ONCE = 32;
export const HANDED_OVER_AT_ONCE = 32;
/** Keys that a node looks at for one who copies partitions, and bytes of rows that it gives, in one piece. */
export const COPY_STEP_KEYS = 1_024;
export const COPY_STEP_BYTES = 8 * KIB;
/** Names of transactions that are told to one who copies in one message. */
export const COPY_STEP_NAMES = 16_384;
/** One who copies, or clears, has work for this share of the time, at both ends together; it pauses at least so long. */
export const COPY_SHARE = 0.2;
export const COPY_PAUSE_MS = 1;
/** How often a piece that met a lock is read again at once; later it is asked for again. */
export const COPY_ATTEMPTS = 4;
/** How long a piece is waited for, and how long after one that failed the next is asked for. */
export const COPY_TIMEOUT_MS = 5_000;
export const COPY_RETRY_MS = 50;
/** What was copied and is not counted as a copy yet is told again after this time. */
export const COPY_TELL_MS = 1_000;
/** Keys that are remembered while partitions are copied: beyond, copying begins anew. */
export const MAX_COPY_KEYS = 1 << 20;
/** How long a table that nobody knew is not asked for again. */
export const UNKNOWN_TABLE_MS = 1_000;
/** Bytes of schemas that are told in one message. */
export const MAX_SCHEMAS_BYTES = 256 * KIB;
/** How long a node may serve after it last heard from the manager of the configuration. */
export const DEFAULT_LEASE_MS = 250;
export const MIN_LEASE_MS = 20;
export const MAX_LEASE_MS = 60_000;
/** How much faster or slower than true time the clock of a node may run. */
export const LEASE_DRIFT = 0.05;
/** How often a lease is renewed in the time that it lasts (FaRM §5.1). */
export const LEASE_RENEWALS = 5;
/** Requests for a lease that can still be answered: later ones take the places of the oldest. */
export const MAX_LEASE_REQUESTS = 16;
/** How often the lease thread looks at the clock in the time that a lease lasts. */
export const LEASE_TICKS = 20;
/** A message about a lease, and how many wait to be sent: beyond, they are dropped. */
export const MAX_LEASE_MESSAGE_BYTES = 384;
export const MAX_LEASE_MESSAGES = 2 * MAX_NODES;
/** A NIC worker that hangs for so many leases has them no more. */
export const HANGING_LEASES = 20;
/** How often a node looks, in the time of a lease, whether the configuration has to change. */
export const MEMBERSHIP_TICKS = 10;
/** A configuration that is not committed after so many leases is replaced. */
export const COMMIT_PATIENCE_LEASES = 10;
/** The nodes of a cluster's first configuration may take so many to start. */
export const FIRST_GRACE_LEASES = 40;
/** After so many, nobody waits for the store of configurations any more, and asks it again. */
export const STORE_PATIENCE_LEASES = 20;
/** Earlier configurations in which nodes may still serve: beyond, the next has to be committed first. */
export const MAX_UNSETTLED = 32;
/** So many leases pass between two changes of the configuration that can wait: copies that move, or have moved. */
export const STEP_PAUSE_LEASES = 4;
/** How often a node that is to have a free id starts to join, if others take the id that it has chosen. */
export const JOIN_ATTEMPTS = 5;
/** So many nodes are asked who the manager is, by one who wants something of it. */
export const MAX_MANAGER_HOPS = 4;
/** Changes of the configuration that wait at the manager; who wants more has to ask again. */
export const MAX_CHANGES = 256;

/** One request to etcd; then the next of its members is asked. */
export const ETCD_CALL_MS = 2_000;
/** Pauses after all members of etcd have been asked in vain. */
export const ETCD_RETRY_MIN_MS = 50;
export const ETCD_RETRY_MAX_MS = 1_000;
/** How long a node that starts, or that changes the configuration, waits for etcd. */
export const ETCD_PATIENCE_MS = 30_000;
/** How often the configuration is looked up, whatever a watch says or does not. */
export const ETCD_POLL_MS = 5_000;
/** The longest answer of etcd that is read: its values have at most 1.5 MiB, in base64. */
export const MAX_ETCD_REPLY_BYTES = 8 * MIB;
/** How long the first nodes of a cluster wait for each other, and how often they look. */
export const FORMING_PATIENCE_MS = 10 * 60_000;
export const FORMING_POLL_MS = 500;
/** How long a node waits for an answer of one that may run under its id. */
export const PROBE_MS = 1_000;

/** Metrics. Numbers that a gateway's commands may have, in the block of each slot. */
export const MAX_COMMANDS = 160;
/**
 * Of synchronous transactions, one in so many is timed, on the average: two looks at the clock take
 * 60 to 80 ns, a short transaction about 1.2 µs.
 */
export const TIMED_ONE_IN = 64;
/**
 * How often a database looks at the stack because a transaction begins while a callback of another is
 * under way; later only while one is run again (database/run/transaction-context.ts).
 */
export const NESTED_LOOKS = 1_000;
/** How far up the stack, those who await included. */
export const NESTED_STACK_FRAMES = 200;
/** The endpoint for metrics: who scrapes it needs one connection, and a short request. */
export const METRICS_CONNECTIONS = 32;
export const METRICS_HEADER_BYTES = 8 * KIB;
export const METRICS_REQUEST_MS = 10_000;
export const METRICS_KEEP_ALIVE_MS = 30_000;
/** How long it waits, when it is closed, for those who read an answer. */
export const METRICS_CLOSE_MS = 500;
/** How often the delay of the event loop is looked at. */
export const LOOP_DELAY_MS = 20;

/** Redis commands. The table of LCS, so that no client makes the others wait for long. */
export const MAX_LCS_BYTES = 64 * MIB;

/** Tables on the device (src/device/). The pages of a device file, of one size for good. */
export const DEVICE_PAGE_BYTES = 8 * KIB;
/** The buffer of device pages in a process: a share of the store's memory, within these bounds. */
export const DEVICE_BUFFER_SHARE = 1 / 4;
export const MIN_DEVICE_BUFFER_PAGES = 128;
export const MAX_DEVICE_BUFFER_PAGES = 128 * KIB;
/** Frames of the buffer are made so many at a time, when they are needed. */
export const DEVICE_BUFFER_STEP_PAGES = 64;
/** Bytes of new rows that a process leaves in memory before it moves them to the device, at most. */
export const DEVICE_DELTA_BYTES = 4 * MIB;
/** The same as a share of the store's memory. */
export const DEVICE_DELTA_SHARE = 1 / 16;
/** After so many times as much, whoever writes waits for the move. */
export const DEVICE_DELTA_FACTOR = 2;
/** Bytes that one round of a move writes and syncs, and the rows that one transaction moves. */
export const DEVICE_FLUSH_BYTES = 512 * KIB;
export const DEVICE_MOVE_ROWS = 32;
/** How long one round of background work on device tables may take, and when it goes on. */
export const DEVICE_WORK_MS = 4;
export const DEVICE_WORK_AGAIN_MS = 1;
/** After the disk has failed: when it is tried again. */
export const DEVICE_RETRY_MS = 1_000;
/** A file is looked through for space after so many new pages, or this share of its pages. */
export const DEVICE_COLLECT_PAGES = 64;
export const DEVICE_COLLECT_SHARE = 1 / 4;
/** Pages that are filled less than this are emptied; so many of them at a time. */
export const DEVICE_SPARSE_SHARE = 1 / 2;
export const DEVICE_COMPACT_PAGES = 32;
/** Pages that one transaction adds to the free ones, or takes. */
export const DEVICE_FREE_PAGES = 64;
/** Pages of one operation that are loaded without holding the event loop; then it reads them itself. */
export const DEVICE_MISSES_AT_ONCE = 32;
export const DEVICE_MISS_ROUNDS = 3;
/** The device's threads (tables/device/elements/): at most so many in a process, one less than it has processors. */
export const MAX_DEVICE_ELEMENTS = 8;
/** Operations of a process that they carry out at once, and that wait for them. */
export const DEVICE_OPERATIONS = 16;
export const DEVICE_WAITING_OPERATIONS = 1_024;
/** Rows whose places are gathered, to be read in the order of their pages. */
export const DEVICE_GATHER_ROWS = 1 << 20;
/** Pages that one read brings, reads that are under way, and pages between two that are read along. */
export const DEVICE_READ_PAGES = 64;
export const DEVICE_READS_AHEAD = 4;
export const DEVICE_READ_GAP_PAGES = 2;
/** Fields of rows that a thread keeps in memory: bytes of a row, of a piece of memory, and at most. */
export const DEVICE_PROJECTED_ROW_BYTES = 64;
export const DEVICE_PROJECTION_CHUNK_BYTES = MIB;
export const DEVICE_PROJECTION_SHARE = 1 / 16;
export const MAX_DEVICE_PROJECTION_BYTES = 256 * MIB;
/** Entries of a device table's map that one step reads where it can choose, and the share of memory that a thread remembers steps in. */
export const DEVICE_STEP_ENTRIES = 1_024;
export const DEVICE_REMEMBERED_MAP_SHARE = 1 / 16;
export const MAX_DEVICE_REMEMBERED_MAP_BYTES = 256 * MIB;
/** Rows of a select that are sent at once, and batches that the reader has not taken. */
export const DEVICE_SELECT_ROWS = 256;
export const DEVICE_SELECT_AHEAD = 8;
/** Updates in the device's threads. Rows of a table that one can be about. */
export const MAX_DEVICE_CHANGE_ROWS = 1 << 23;
/** Objects of its map that one reads when it is applied: as many, should each have a row of its own. */
export const MAX_DEVICE_CHANGE_OBJECTS = 1 << 23;
/** Pages that are reserved at a time at most, that are written at once, that a buffer has room for, and bytes after which they are synced meanwhile. */
export const DEVICE_RESERVE_PAGES = 1_024;
export const DEVICE_WRITE_PAGES = 64;
export const DEVICE_PACK_PAGES = 192;
export const DEVICE_SYNC_BYTES = 32 * MIB;
/** Rows that others have changed are read again, until there are fewer than so many, so often at most. */
export const DEVICE_CATCH_UP_ROWS = 1_024;
export const DEVICE_CATCH_UP_ROUNDS = 4;

function relation(holds: boolean, what: string): void {
  if (!holds) throw new Error(`limits: ${what}`);
}

relation(
  SMALL_REGION_BYTES % MAX_HUGE_PAGE_BYTES === 0,
  "a region is whole pages, also large ones",
);
relation(REGION_BYTES % (UNIT_BYTES * MAX_BLOCK_UNITS) === 0, "a region is whole blocks");
relation(MAX_CELL_BYTES <= UNIT_BYTES * MAX_BLOCK_UNITS, "the largest cell fits a block");
relation(MIN_MEMORY_BYTES % (UNIT_BYTES * MAX_BLOCK_UNITS) === 0, "a store is whole blocks");
relation(
  EVENT_LOOP_TURN_MS + ASYNC_PATIENCE_MS + MAINTENANCE_TURN_MS < 10,
  "an asynchronous transaction holds the event loop for a few milliseconds",
);
relation(MAX_ROW_BYTES < 4 * 2 ** 21, "the words of a row fit 21 bits of its place on the device");
relation(
  4 * DEVICE_MISSES_AT_ONCE <= MIN_DEVICE_BUFFER_PAGES,
  "the pages that an operation waits for do not drive each other out of the buffer",
);
relation(
  MAX_DEVICE_CHANGE_OBJECTS >= MAX_DEVICE_CHANGE_ROWS,
  "an update reads the objects of all rows that it may look at",
);
relation(MAX_SLOTS < 256, "a slot id fits eight bits and leaves one value for nobody");
relation(1 << (32 - MAX_SHARD_DEPTH) === SHARD_BUCKETS, "hash bits: bucket and depth");
relation(SEGMENT_SLOTS === 8, "three bits choose the slot of a segment");
relation(MAX_DISPLACEMENT % SEGMENT_SLOTS === 0, "the last homes need whole segments behind them");
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
relation(JOURNAL_BYTES <= MAX_TRANSACTION_BYTES, "a transaction may fill a journal");
relation(MAX_REGIONS <= 1 << 16, "a region id and a size class are one word of a journal");
relation(MAX_REGIONS < 0xffff, "one region id is left to mark row changes in a journal");
relation(
  PRIORITY_MS <= MAX_PRIORITY_MS && MAX_PRIORITY_MS < 2 ** 22,
  "the end of priority fits its word",
);
relation(
  MAX_RUNNING_TRANSACTIONS <= SESSION_SLOTS,
  "a client has a slot for each of its transactions",
);
relation(
  MAX_RUNNING_CALLS + MAX_WAITING_CALLS < MAX_PASSED_ON_CALLS,
  "calls that run are not forgotten",
);
relation(
  4 * MAX_EPOCH_GAP <= MAX_EPOCH_LAG,
  "a clock can be raised from where a transaction begins to where it becomes visible",
);
relation(2 ** 32 % RECORD_SLOTS === 0, "arrivals go round in a circle of 32 bits");
relation(RECORD_SLOTS % RECORD_PIECE_SLOTS === 0, "slots of records are whole pieces");
relation(HEAD_BYTES < SEGMENT_BYTES, "a segment has room for more than its head");
relation(MAX_SCHEMA_BYTES < MAX_CELL_BYTES, "a schema fits one object");
relation(MAX_FRAME_BYTES > MAX_ROW_BYTES + MAX_KEY_BYTES, "the largest row fits a frame");
relation(
  MAX_PARTIAL_BYTES >= 8 * MAX_FRAME_BYTES,
  "a few of the largest frames may be on their way",
);
relation(
  MAX_ROW_BYTES + COPY_STEP_BYTES + 64 * KIB < MAX_FRAME_BYTES,
  "a piece of a copy, and the row that it ends with, fit a frame",
);
relation(
  MAX_ROW_BYTES + SCAN_STEP_BYTES + 64 * SCAN_STEP_ROWS < MAX_FRAME_BYTES,
  "a step of a scan fits a frame: rows, and what it depends on",
);
relation(MAX_BATCH_BYTES % 8 === 0, "a batch has whole words, and an even number of them");
relation(
  MAX_ELEMENT_BYTES / 2 + MAX_EDGE_DATA_BYTES + 16 + 32 <= MAX_ELEMENT_BYTES,
  "a full element and one edge more are two elements, wherever it is cut",
);
relation(MAX_REMEMBERED_PLACES % MIN_REMEMBERED_PLACES === 0, "places are doubled");
relation(MESSAGE_RING_BYTES >= 2 * MAX_FRAME_BYTES, "two of the largest frames fit a ring");
relation(NAM_JOURNAL_BYTES <= 4 * MAX_VERB_WORDS, "a journal is read by one verb");
relation(2 + 2 * NAM_MAX_THREADS <= MAX_VERB_WORDS, "the vector is read by one verb");

/**
 * Bytes of memory in use up to which a closed store is sealed as a whole (engine/seal.ts); of a
 * larger one, all but the regions. The checksum alone takes about a second for each 2 GiB.
 */
export const MAX_SEALED_BYTES = 4 * 2 ** 30;
/** Bytes under one checksum of a seal: how closely it says where the damage is. */
export const SEAL_PIECE_BYTES = 2 ** 20;
