// The row that every contestant stores and returns: 52 bytes of fields (a u32 key, an i64, five
// f64). Peers that keep bytes hold them in 48, because the key already says the id.

export interface AccountRow {
  id: number;
  balance: bigint;
  a: number;
  b: number;
  c: number;
  d: number;
  e: number;
}

/** The same random keys for every contestant: one row each, and two different ones. */
export interface Keys {
  readonly single: Int32Array;
  readonly pairs: Int32Array;
}

export const rowBytes = 52;
export const valueBytes = 48;

/** The fractions keep V8 from holding the doubles as small integers, which would flatter reads. */
export function makeRow(id: number): AccountRow {
  const balance = 1_000_000n + BigInt(id);
  return { id, balance, a: id + 0.5, b: id + 0.25, c: id * 0.1, d: -id - 0.5, e: id / 3 };
}

export function totalOf(rows: number): bigint {
  const count = BigInt(rows);
  return count * 1_000_000n + (count * (count - 1n)) / 2n;
}

/** One 48-byte value seen as numbers; typed arrays beat DataView and the bytes are aligned. */
export interface ValueView {
  readonly bytes: Buffer;
  readonly balance: BigInt64Array;
  readonly doubles: Float64Array;
}

export function viewValue(buffer: ArrayBufferLike, byteOffset: number): ValueView {
  return {
    bytes: Buffer.from(buffer, byteOffset, valueBytes),
    balance: new BigInt64Array(buffer, byteOffset, 1),
    doubles: new Float64Array(buffer, byteOffset, valueBytes / 8),
  };
}

export function decodeValue({ balance, doubles }: ValueView, id: number): AccountRow {
  return {
    id,
    balance: balance[0],
    a: doubles[1],
    b: doubles[2],
    c: doubles[3],
    d: doubles[4],
    e: doubles[5],
  };
}

export function encodeValue(view: ValueView, row: AccountRow): void {
  const { balance, doubles } = view;
  balance[0] = row.balance;
  doubles[1] = row.a;
  doubles[2] = row.b;
  doubles[3] = row.c;
  doubles[4] = row.d;
  doubles[5] = row.e;
}

/** A contestant that is fast and wrong must not reach the report. */
export function checkRow(contestant: string, row: AccountRow | undefined, id: number): void {
  const wanted = makeRow(id);
  for (const field of Object.keys(wanted) as (keyof AccountRow)[]) {
    if (row?.[field] !== wanted[field]) {
      throw new Error(`${contestant} returned ${field} = ${row?.[field]} for row ${id}`);
    }
  }
}

export function checkTotal(contestant: string, total: bigint, rows: number): void {
  const wanted = totalOf(rows);
  if (total !== wanted)
    throw new Error(`${contestant}: balances add up to ${total}, not ${wanted}`);
}
