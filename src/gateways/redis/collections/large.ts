/**
 * How the value of a key says that its members are in a table of their own:
 *
 *   byte 0       LARGE; a packed collection begins with another byte
 *   bytes 1–3    zero
 *   bytes 4–7    how many members it has
 *   bytes 8–15   its id, which no other collection ever had
 */

/** The first byte of a value whose members are in the table. */
export const LARGE = 1;

export interface Large {
  readonly id: bigint;
  readonly members: number;
}

export function largeIn(value: Uint8Array): Large | undefined {
  if (value.length < 16 || value[0] !== LARGE) return undefined;
  const view = new DataView(value.buffer, value.byteOffset, 16);
  return { members: view.getUint32(4, true), id: view.getBigUint64(8, true) };
}

export function largeValue({ id, members }: Large): Uint8Array {
  const value = new Uint8Array(16);
  const view = new DataView(value.buffer);
  value[0] = LARGE;
  view.setUint32(4, members, true);
  view.setBigUint64(8, id, true);
  return value;
}
