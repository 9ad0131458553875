/**
 * One buffer seen through all the typed arrays that Situ uses. A region of shared memory and the
 * private arena of a transaction are both `Views`, so code that walks an object does not care
 * where the object lies, and V8 sees one shape: there are no subclasses on the hot paths.
 *
 * After `clear()` every access reads `undefined` instead of unmapped memory: a use after close
 * is then a wrong value that the caller's checks catch, never a segmentation fault.
 */

const NOTHING = new ArrayBuffer(0);

export class Views {
  /** The id of the region, or -1 for private memory. */
  readonly id: number;
  i32!: Int32Array;
  u16!: Uint16Array;
  u8!: Uint8Array;
  f64!: Float64Array;
  i64!: BigInt64Array;
  u64!: BigUint64Array;
  /** For strings: Buffer's native slices and writes. */
  bytes!: Buffer;

  constructor(buffer: ArrayBufferLike, id = -1) {
    this.id = id;
    this.reset(buffer);
  }

  reset(buffer: ArrayBufferLike): void {
    this.i32 = new Int32Array(buffer);
    this.u16 = new Uint16Array(buffer);
    this.u8 = new Uint8Array(buffer);
    this.f64 = new Float64Array(buffer);
    this.i64 = new BigInt64Array(buffer);
    this.u64 = new BigUint64Array(buffer);
    this.bytes = Buffer.from(buffer as ArrayBuffer);
  }

  clear(): void {
    this.reset(NOTHING);
  }
}
