/**
 * A segment is a named piece of shared memory: the control segment, a region, a journal. This is
 * the seam between Situ and the system it runs on, with two implementations behind one contract:
 *
 *   mapped-segments.ts   files that any process of the machine maps
 *   thread-segments.ts   SharedArrayBuffers that the threads of one process share
 *
 * `create` gives zeroed memory that is really there (or fails with SITU_NO_MEMORY), and makes a
 * half-created segment of a dead creator whole again. `attach` maps what another one created and
 * refuses a segment of the wrong length.
 */
export interface Segment {
  readonly buffer: ArrayBufferLike;
  /** Where it is mapped in this process, if it is. */
  readonly address?: bigint;
  /**
   * Asks for large pages where its creator had no time to: until then, but for one page at least. Says whether there
   * is more to ask for.
   */
  improve?(endMs: number): boolean;
  /** The buffer must not be touched after this. */
  release(): void;
}

export interface Segments {
  /** Where the segments lie, for messages. */
  readonly place: string;
  /**
   * With `reservedBytes`, only so many bytes from its beginning are backed by memory: see `reserve`. It may take so
   * long to look for large pages (huge-pages.ts).
   */
  create(name: string, bytes: number, reservedBytes?: number, patienceMs?: number): Segment;
  attach(name: string, bytes: number): Segment;
  /** Backs the first bytes of an existing segment by memory, or fails with SITU_NO_MEMORY. */
  reserve(name: string, bytes: number): void;
  /**
   * Gives the memory of a segment back to the system, if that is possible. Its length and all mappings of it
   * stay, so one who reads it all the same finds zeroes. To use it again, `create` it.
   */
  vacate?(name: string): void;
  /**
   * Gives back the memory of a segment that nobody has mapped any more; `create` makes it anew. Not there where
   * all segments exist from the start.
   */
  empty?(name: string): void;
  /**
   * Whether segments were removed while they are in use. `expected` names those that were created.
   * Not there where nobody can remove them.
   */
  isLost?(expected: () => readonly string[]): boolean;
}
