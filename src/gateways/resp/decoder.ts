/**
 * Requests in a stream of bytes: arrays of bulk strings, the same in RESP2 and RESP3, and inline
 * commands. What it accepts and the texts of its errors are those of Redis 7.0 (networking.c,
 * processMultibulkBuffer and processInlineBuffer).
 *
 *   decoder.push(chunk);
 *   while (decoder.next()) serve(decoder.request);
 *   if (decoder.error !== undefined) …  // reply with it and close
 *
 * A chunk that finds the decoder empty is read where it lies. When `next` says that no whole request
 * is left, the beginning of one is copied to a buffer of the decoder's own, so the decoder does not
 * need the chunk any more. Chunks that follow are put behind it. Nothing that was given out is
 * written to before the next `push`, so requests can be gathered: their places must be copied, their
 * bytes need not.
 *
 *   bytes:  [ consumed | arguments that are known | the argument being read …  | room ]
 *                      start                       at                          end
 *
 * Reading goes on at `at`, with the argument or the line that was not complete: a request in pieces of
 * one byte costs as many steps as in one. Neither the buffer nor the list of arguments grows for
 * what a client announces, only for what it sends. An error is met at the same byte however the
 * stream is cut, and ends the stream: nothing more is given, nothing is kept.
 *
 * A request with an argument beyond `maxBulkBytes`, but within `maxRequestBytes` as a whole, is not an
 * error of the protocol: its bytes are passed over, none of them is kept, and `next` gives it out as
 * one that `isTooLong`, so that the client gets an error for this command and the stream goes on.
 *
 * Differences from Redis: at most MAX_ARGUMENTS arguments; a limit on a whole request; a NUL byte
 * in the line of a length is an error at once, where Redis waits for 64 KiB more. Redis takes
 * arguments of up to 512 MB; what is beyond that is an error with its words here too.
 */

import { splitInline } from "./inline.ts";
import { DIGITS_BITS, DIGITS_MASK, shortNumber, wholeNumber } from "./numbers.ts";
import { MAX_ARGUMENTS, Request } from "./request.ts";

export interface DecoderLimits {
  /** The longest argument (Redis: proto-max-bulk-len); a longer one is passed over. */
  readonly maxBulkBytes: number;
  /** A whole request, with the lengths before its arguments. */
  readonly maxRequestBytes: number;
  /** A line: an inline command, or a length (Redis: PROTO_INLINE_MAX_SIZE, 64 KiB). */
  readonly maxInlineBytes: number;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const DOLLAR = 36;
const ASTERISK = 42;

/** The longest argument that Redis takes (proto-max-bulk-len, by default). */
const REDIS_BULK_BYTES = 512 * 1024 * 1024;

/** Redis 7's limits for clients that have yet to say the password. */
const UNAUTHENTICATED_ARGUMENTS = 10;
const UNAUTHENTICATED_BULK_BYTES = 16_384;

/** A decoder's own memory, at first; more than KEPT_BYTES is given back when it is empty. */
const OWN_BYTES = 1024;
const KEPT_BYTES = 16 * 1024;
/** A buffer of this size is also given back when little is left in it. */
const LARGE_BYTES = 256 * 1024;

const NOTHING = Buffer.alloc(0);

const PROTOCOL_ERROR = "ERR Protocol error: ";

export class Decoder {
  readonly request = new Request();
  /** Whether the request that was given out last had an argument that was too long: it is empty. */
  isTooLong = false;
  error: string | undefined = undefined;

  readonly #limits: DecoderLimits;
  #authenticated = true;
  #maxArguments = MAX_ARGUMENTS;
  #maxBulkBytes: number;

  /** Either the chunk that came last or `#own`. */
  #bytes: Buffer = NOTHING;
  #own: Buffer = NOTHING;
  #start = 0;
  #at = 0;
  #end = 0;
  /** Arguments of the request being read; 0 between two requests. */
  #wanted = 0;
  /** The length of the argument being read, or −1 if that is yet to come. */
  #bulkBytes = -1;
  /** Up to here the line at `#at` has been searched for its end. */
  #searched = 0;
  /** Whether the request being read has an argument that is too long, and is passed over. */
  #isSkipping = false;
  /** Of that one: bytes before `#start`, which are gone; arguments, and bytes of this one, to come. */
  #dropped = 0;
  #left = 0;
  #toSkip = 0;

  constructor(limits: DecoderLimits) {
    this.#limits = limits;
    this.#maxBulkBytes = limits.maxBulkBytes;
  }

  /** False: the tighter limits for clients that have not said the password. */
  get authenticated(): boolean {
    return this.#authenticated;
  }

  set authenticated(authenticated: boolean) {
    const { maxBulkBytes } = this.#limits;
    this.#authenticated = authenticated;
    this.#maxArguments = authenticated ? MAX_ARGUMENTS : UNAUTHENTICATED_ARGUMENTS;
    this.#maxBulkBytes = authenticated
      ? maxBulkBytes
      : Math.min(maxBulkBytes, UNAUTHENTICATED_BULK_BYTES);
  }

  /** Bytes that came and were not given out as requests. */
  get buffered(): number {
    return this.#end - this.#start;
  }

  /** Bytes of memory that the decoder has for itself. */
  get ownBytes(): number {
    return this.#own.length;
  }

  /**
   * What came from the socket. The chunk belongs to the decoder until `next` returns false: it is
   * read in place, and the quotes of inline commands are undone in it. Then the caller may reuse it.
   */
  push(chunk: Buffer): void {
    if (this.error !== undefined || chunk.length === 0) return;
    if (this.#end === this.#start) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#at = 0;
      this.#searched = 0;
      this.#end = chunk.length;
      return;
    }
    this.#append(chunk);
  }

  /**
   * True: `request` holds the next request, with one argument at least, unless `isTooLong`; empty ones
   * are skipped. False: more bytes are needed, or `error` is set.
   */
  next(): boolean {
    this.isTooLong = false;
    if (this.#wanted === 0 && !this.#begin()) return false;
    if (this.#isSkipping) return this.#skip();
    return this.#wanted === 0 || this.#arguments();
  }

  /** True: `#wanted` arguments follow, or, if that is 0, an inline command is complete. */
  #begin(): boolean {
    for (;;) {
      const at = this.#at;
      const end = this.#end;
      this.#start = at;
      if (at === end) return this.#wait();
      const bytes = this.#bytes;
      if (bytes[at] !== ASTERISK) {
        if (!this.#inline()) return false;
        if (this.request.count > 0) return true;
        continue;
      }
      let wanted: number;
      const short = shortNumber(bytes, at + 1, end);
      if (short >= 0) {
        wanted = short >> DIGITS_BITS;
        this.#at = at + 3 + (short & DIGITS_MASK);
      } else {
        const line = this.#lineEnd("too big mbulk count string");
        if (line < 0) return false;
        wanted = wholeNumber(bytes, at + 1, line);
        this.#at = line + 2;
      }
      if (!(wanted <= this.#maxArguments)) return this.#failCount(wanted);
      this.#searched = this.#at;
      if (wanted <= 0) continue;
      this.#wanted = wanted;
      this.#bulkBytes = -1;
      this.request.count = 0;
      return true;
    }
  }

  #arguments(): boolean {
    const { request } = this;
    const bytes = this.#bytes;
    const end = this.#end;
    const wanted = this.#wanted;
    // The data of an argument and its "\r\n" end at most here.
    const limit = this.#start + this.#limits.maxRequestBytes;
    let { starts, ends, count } = request;
    let at = this.#at;
    let length = this.#bulkBytes;
    for (;;) {
      if (length < 0) {
        const short = at < end && bytes[at] === DOLLAR ? shortNumber(bytes, at + 1, end) : -1;
        if (short >= 0) {
          length = short >> DIGITS_BITS;
          at += 3 + (short & DIGITS_MASK);
          if (length > this.#maxBulkBytes && !this.#mayPassOver(length)) return false;
        } else {
          this.#at = at;
          this.#bulkBytes = -1;
          if (this.#searched < at) this.#searched = at;
          request.count = count;
          if (!this.#bulkHeader()) return false;
          at = this.#at;
          length = this.#bulkBytes;
        }
        if (at + length + 2 > limit) return this.#failSize();
        if (length > this.#maxBulkBytes) {
          this.#at = at;
          this.#bulkBytes = length;
          this.#left = wanted - count;
          return this.#beginToSkip();
        }
      }
      const after = at + length;
      if (after + 2 > end) break;
      if (count === starts.length) {
        request.grow();
        starts = request.starts;
        ends = request.ends;
      }
      starts[count] = at;
      ends[count] = after;
      count++;
      // As in Redis, nobody looks at the two bytes behind an argument.
      at = after + 2;
      length = -1;
      if (count === wanted) {
        request.bytes = bytes;
        request.count = count;
        this.#at = at;
        this.#searched = at;
        this.#wanted = 0;
        return true;
      }
    }
    request.count = count;
    this.#at = at;
    this.#searched = at;
    this.#bulkBytes = length;
    return this.#wait();
  }

  /** Whether a length beyond `#maxBulkBytes` is one to pass over, and no error. */
  #mayPassOver(length: number): boolean {
    return (this.#authenticated && length <= REDIS_BULK_BYTES) || this.#failLength(length);
  }

  /** Forgets all of the request that was read so far. */
  #beginToSkip(): boolean {
    this.#isSkipping = true;
    this.#dropped = 0;
    this.#toSkip = this.#bulkBytes + 2;
    this.#drop();
    return this.#skip();
  }

  #drop(): void {
    this.#dropped += this.#at - this.#start;
    this.#start = this.#at;
    this.#searched = this.#at;
  }

  /** Passes over the rest of such a request; true at its end. */
  #skip(): boolean {
    for (;;) {
      const passed = Math.min(this.#toSkip, this.#end - this.#at);
      this.#at += passed;
      this.#toSkip -= passed;
      if (passed > 0) this.#drop();
      if (this.#toSkip > 0) return this.#wait();
      if (this.#bulkBytes >= 0) {
        this.#bulkBytes = -1;
        if (--this.#left === 0) break;
      }
      if (!this.#bulkHeader()) return false;
      const size = this.#dropped + this.#at - this.#start + this.#bulkBytes + 2;
      if (size > this.#limits.maxRequestBytes) return this.#failSize();
      this.#toSkip = this.#bulkBytes + 2;
      this.#drop();
    }
    this.request.count = 0;
    this.#wanted = 0;
    this.#isSkipping = false;
    this.isTooLong = true;
    return true;
  }

  /** The unusual way to the length of an argument: in pieces, very long, or wrong. */
  #bulkHeader(): boolean {
    const line = this.#lineEnd("too big bulk count string");
    if (line < 0) return false;
    const bytes = this.#bytes;
    const at = this.#at;
    if (bytes[at] !== DOLLAR) return this.#fail(`expected '$', got '${shown(bytes[at])}'`);
    const length = wholeNumber(bytes, at + 1, line);
    if (!(length >= 0)) return this.#failLength(length);
    if (length > this.#maxBulkBytes && !this.#mayPassOver(length)) return false;
    this.#bulkBytes = length;
    this.#at = line + 2;
    this.#searched = this.#at;
    return true;
  }

  /**
   * Where the "\r" of the line at `#at` is, if the byte behind it is there too; else −1, and what
   * there is to do about it is done.
   */
  #lineEnd(tooLong: string): number {
    const bytes = this.#bytes;
    const last = Math.min(this.#end, this.#at + this.#limits.maxInlineBytes + 1);
    let i = this.#searched;
    while (i < last && bytes[i] !== CARRIAGE_RETURN) i++;
    this.#searched = i;
    if (i < last && i + 1 < this.#end) return i;
    if (i === last && this.#end - this.#at > this.#limits.maxInlineBytes) this.#fail(tooLong);
    else this.#wait();
    return -1;
  }

  /** True: the line was complete, and `request` has its words, or none. */
  #inline(): boolean {
    const bytes = this.#bytes;
    const at = this.#at;
    const last = Math.min(this.#end, at + this.#limits.maxInlineBytes + 1);
    let i = this.#searched;
    while (i < last && bytes[i] !== LINE_FEED) i++;
    this.#searched = i;
    if (i === last) {
      if (this.#end - at > this.#limits.maxInlineBytes) return this.#fail("too big inline request");
      return this.#wait();
    }
    const line = i > at && bytes[i - 1] === CARRIAGE_RETURN ? i - 1 : i;
    if (!splitInline(this.request, bytes, at, line)) {
      return this.#fail("unbalanced quotes in request");
    }
    this.#at = i + 1;
    this.#searched = i + 1;
    return true;
  }

  /** There is no whole request: nothing of the caller's chunk may be needed from here on. */
  #wait(): false {
    const start = this.#start;
    const length = this.#end - start;
    if (length === 0) {
      this.#bytes = NOTHING;
      this.#start = 0;
      this.#at = 0;
      this.#end = 0;
      this.#searched = 0;
      if (this.#own.length > KEPT_BYTES) this.#own = NOTHING;
      this.request.release();
    } else if (this.#bytes !== this.#own) {
      if (this.#own.length < length) this.#own = Buffer.allocUnsafeSlow(roomFor(length));
      this.#moveTo(this.#own);
    } else if (start > 0 && this.#own.length > LARGE_BYTES && 8 * length <= this.#own.length) {
      this.#own = Buffer.allocUnsafeSlow(roomFor(length));
      this.#moveTo(this.#own);
    }
    return false;
  }

  /** Puts a chunk behind what is left. */
  #append(chunk: Buffer): void {
    const length = this.#end - this.#start;
    const needed = length + chunk.length;
    if (this.#bytes !== this.#own || this.#end + chunk.length > this.#own.length) {
      // What is consumed is squeezed out if that gives half of the buffer, so that no byte is moved
      // more than once on average.
      const enough = needed <= this.#own.length && 2 * length <= this.#own.length;
      if (!enough) this.#own = Buffer.allocUnsafeSlow(roomFor(needed));
      this.#moveTo(this.#own);
    }
    chunk.copy(this.#own, this.#end);
    this.#end += chunk.length;
  }

  /** Moves what is not consumed to the beginning of a buffer, perhaps of the one where it is. */
  #moveTo(buffer: Buffer): void {
    const start = this.#start;
    this.#bytes.copy(buffer, 0, start, this.#end);
    this.#bytes = buffer;
    this.request.bytes = NOTHING;
    this.#start = 0;
    this.#at -= start;
    this.#end -= start;
    this.#searched -= start;
    // Between two requests the places are those of the last one, which nobody may use any more.
    if (this.#wanted > 0 && !this.#isSkipping) this.request.shift(start);
  }

  #failCount(wanted: number): false {
    const tooMany = !(wanted <= MAX_ARGUMENTS);
    return this.#fail(tooMany ? "invalid multibulk length" : "unauthenticated multibulk length");
  }

  #failLength(length: number): false {
    const valid = length >= 0 && length <= REDIS_BULK_BYTES;
    return this.#fail(valid ? "unauthenticated bulk length" : "invalid bulk length");
  }

  /** Ours: Redis closes without a word beyond client-query-buffer-limit. */
  #failSize(): false {
    return this.#fail(`too big request, at most ${this.#limits.maxRequestBytes} bytes are taken`);
  }

  #fail(text: string): false {
    this.error = PROTOCOL_ERROR + text;
    this.#wanted = 0;
    this.#isSkipping = false;
    this.#own = NOTHING;
    this.#start = this.#end;
    return this.#wait();
  }
}

/** Room for that much and as much again, but a small connection stays small. */
function roomFor(bytes: number): number {
  let room = OWN_BYTES;
  while (room < bytes) room *= 2;
  return room;
}

/** As Redis writes a character into an error: line ends would end the reply. */
function shown(byte: number): string {
  const visible = byte !== CARRIAGE_RETURN && byte !== LINE_FEED;
  return String.fromCharCode(visible ? byte : SPACE);
}
