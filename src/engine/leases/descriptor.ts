import { closeSync, fstatSync, ftruncateSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Random, uniqueId } from "../../runtime/random.ts";
import type { SlotId } from "../slot.ts";
import type { Leases } from "./leases.ts";

const DESCRIPTOR_BITS = 24n;
const MAX_TAG = 2 ** 24;

/**
 * Leases among the threads of one process, without a system call that Node lacks. The owner of a
 * slot holds a file descriptor, which Node closes when its worker ends. Descriptors are numbers
 * of the whole process, so any thread can ask with fstat whether it is still open; the length of
 * the file is a random tag that tells it from a later file with the same number.
 *
 * The holder word of a slot is tag and descriptor in 64 bits, so that it changes in one
 * compare-and-swap.
 */
export class DescriptorLeases implements Leases {
  readonly #holders: BigInt64Array;
  readonly #path = join(tmpdir(), `situ-lease-${uniqueId()}`);
  readonly #fd: number;
  readonly #mine: bigint;
  readonly #held = new Set<number>();

  constructor(holders: SharedArrayBuffer) {
    this.#holders = new BigInt64Array(holders);
    this.#fd = openSync(this.#path, "wx+", 0o600);
    const tag = 1 + new Random().below(MAX_TAG - 1);
    ftruncateSync(this.#fd, tag);
    // Windows keeps the name of an open file; close() tries again.
    rmSync(this.#path, { force: true, maxRetries: 0 });
    this.#mine = (BigInt(tag) << DESCRIPTOR_BITS) | BigInt(this.#fd);
  }

  tryAcquire(slot: SlotId): boolean {
    const holder = Atomics.load(this.#holders, slot);
    if (holder !== 0n && isOpen(holder)) return false;
    if (Atomics.compareExchange(this.#holders, slot, holder, this.#mine) !== holder) return false;
    this.#held.add(slot);
    return true;
  }

  release(slot: SlotId): void {
    this.#held.delete(slot);
    Atomics.compareExchange(this.#holders, slot, this.#mine, 0n);
  }

  close(): void {
    for (const slot of [...this.#held]) this.release(slot);
    closeSync(this.#fd);
    rmSync(this.#path, { force: true });
  }
}

function isOpen(holder: bigint): boolean {
  const fd = Number(holder & ((1n << DESCRIPTOR_BITS) - 1n));
  try {
    return BigInt(fstatSync(fd).size) === holder >> DESCRIPTOR_BITS;
  } catch {
    // EBADF: the descriptor is closed, its thread is gone. Nothing else can go wrong with fstat.
    return false;
  }
}
