/**
 * One request of a client, where it lies: argument i is the bytes [starts[i], ends[i]) of `bytes`.
 *
 * A decoder has one of these and fills it again and again, so that a request costs no object and no
 * copy. The places are valid until the next `next()` of the decoder, the bytes until its next `push()`;
 * what is to live longer (the commands that MULTI queues) must be copied.
 */

/** Redis up to 6.2 had this limit; later versions allow as many as an int holds. */
export const MAX_ARGUMENTS = 1024 * 1024;

/** Small enough to lie on JavaScript's own heap; nearly all requests fit. */
const ARGUMENTS = 16;
/** Larger lists of places are given back when the connection has nothing left to read. */
const KEPT_ARGUMENTS = 1024;

const NOTHING = Buffer.alloc(0);

export class Request {
  bytes: Buffer = NOTHING;
  count = 0;
  starts = new Int32Array(ARGUMENTS);
  ends = new Int32Array(ARGUMENTS);

  /** Twice the room, as arguments come: what a client only announces takes no memory. */
  grow(): void {
    const capacity = this.starts.length * 2;
    const starts = new Int32Array(capacity);
    const ends = new Int32Array(capacity);
    starts.set(this.starts);
    ends.set(this.ends);
    this.starts = starts;
    this.ends = ends;
  }

  /** Becomes another request, whose bytes are these, so much behind where they were. */
  become(other: Request, bytes: Buffer, behind: number): void {
    const { starts, ends, count } = other;
    while (this.starts.length < count) this.grow();
    this.bytes = bytes;
    this.count = count;
    for (let i = 0; i < count; i++) {
      this.starts[i] = starts[i] + behind;
      this.ends[i] = ends[i] + behind;
    }
  }

  /** The bytes moved towards the beginning, and the places with them. */
  shift(by: number): void {
    const { starts, ends, count } = this;
    for (let i = 0; i < count; i++) {
      starts[i] -= by;
      ends[i] -= by;
    }
  }

  /** Forgets the bytes and what is large. */
  release(): void {
    this.bytes = NOTHING;
    this.count = 0;
    if (this.starts.length <= KEPT_ARGUMENTS) return;
    this.starts = new Int32Array(ARGUMENTS);
    this.ends = new Int32Array(ARGUMENTS);
  }
}
