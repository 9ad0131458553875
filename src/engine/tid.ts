/**
 * A TID is the version of an object: unique, and ordered along every dependency.
 *
 *   epoch 44 bits | sequence 12 bits | slot 8 bits
 *
 * 44 bits of epochs last ten years at 55,000 epochs a second. The sequence counts the commits of
 * an epoch along a chain of dependencies; when it runs out, the epoch advances, so 4,095 is no
 * limit but a price: one compare-and-swap every 4,095 commits.
 *
 * Kept as two 32-bit words, because a BigInt costs an allocation:
 *   high = the upper 32 bits of the epoch; low = its lower 12 bits, sequence, slot.
 */

export const MAX_SEQUENCE = 0xfff;

export function tidHigh(epochHigh: number, epochLow: number): number {
  return (epochHigh << 20) | (epochLow >>> 12);
}

export function tidLow(epochLow: number, sequence: number, slot: number): number {
  return (epochLow << 20) | (sequence << 8) | slot;
}

/** The greatest TID of an epoch: its two words. */
export function limitHigh(epoch: number): number {
  return tidHigh(Math.floor(epoch / 2 ** 32), epoch | 0);
}

export function limitLow(epoch: number): number {
  return tidLow(epoch | 0, MAX_SEQUENCE, 0xff);
}

export function slotOf(low: number): number {
  return low & 0xff;
}

export function sequenceOf(low: number): number {
  return (low >>> 8) & MAX_SEQUENCE;
}

/** The part of the low word that belongs to the epoch, as a number from 0 to 4095. */
export function epochBitsOf(low: number): number {
  return low >>> 20;
}

/** Unsigned order of two TIDs. */
export function isLater(high: number, low: number, thanHigh: number, thanLow: number): boolean {
  return high === thanHigh ? low >>> 0 > thanLow >>> 0 : high >>> 0 > thanHigh >>> 0;
}

/** For messages and statistics. */
export function epochOf(high: number, low: number): number {
  return (high >>> 0) * 4096 + epochBitsOf(low);
}
