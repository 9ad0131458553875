/**
 * CRC-32 of the log, of checkpoints and of sealed memory. node:zlib is loaded by the first call: a process
 * that joins a store needs none, and loading it takes as long as joining does.
 */

type Crc32 = (data: Uint8Array | string, value?: number) => number;

let known: Crc32 | undefined;

export function crc32(data: Uint8Array | string, value?: number): number {
  known ??= process.getBuiltinModule("node:zlib").crc32 as Crc32;
  return known(data, value);
}
