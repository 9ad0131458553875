/** Lists of numbers as the bytes of a row. */

export function encodeList(values: readonly number[]): Uint8Array {
  return new Uint8Array(new Float64Array(values).buffer);
}

export function decodeList(data: Uint8Array | undefined): number[] {
  return data === undefined ? [] : [...new Float64Array(data.slice().buffer)];
}
