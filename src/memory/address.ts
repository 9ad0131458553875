/**
 * An address names a byte of the shared address space: region id and offset in one safe integer,
 * as FaRM's 64-bit addresses do (§3.3). Inside an executor the hot paths carry the region object
 * and a word index instead; an address is what is stored, journalled and compared.
 */

declare const brand: unique symbol;
export type Address = number & { readonly [brand]: "Address" };

const REGION_UNIT = 2 ** 32;

export const NO_ADDRESS = 0 as Address;

/** Region ids are stored plus one, so that 0 is no object's address. */
export function addressOf(regionId: number, word: number): Address {
  return ((regionId + 1) * REGION_UNIT + word * 4) as Address;
}

export function regionIdOf(address: Address): number {
  return (Math.floor(address / REGION_UNIT) - 1) | 0;
}

/** The index of the address's 32-bit word inside its region. */
export function wordOf(address: Address): number {
  // As an int32: a float64 that went into a field would make every later use of it a float64.
  return ((address % REGION_UNIT) / 4) | 0;
}

/** A hash of where something lies; the caller takes as many low bits as it needs. */
export function placeHash(regionId: number, word: number): number {
  const mixed = Math.imul(word ^ Math.imul(regionId, 0x85ebca6b), 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}
