/** Transactions on objects that were drawn before the run: their keys, and what is done to each. */

import { checkPowerOfTwo } from "../random/drawn.ts";

export class Plan {
  readonly transactions: number;
  /** Keys of a transaction lie side by side, with room for this many. */
  readonly stride: number;
  readonly keys: Int32Array;
  readonly reads: Uint8Array;
  readonly writes: Uint8Array;
  /** Places in the mix. */
  readonly kinds: Uint8Array;

  constructor(transactions: number, stride: number) {
    checkPowerOfTwo(transactions);
    this.transactions = transactions;
    this.stride = stride;
    this.keys = new Int32Array(transactions * stride);
    this.reads = new Uint8Array(transactions);
    this.writes = new Uint8Array(transactions);
    this.kinds = new Uint8Array(transactions);
  }
}
