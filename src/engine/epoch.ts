/**
 * The one clock of a store (docs/DESIGN.md §5): a 64-bit counter in the control segment that moves on
 * demand. It is advanced with 64-bit compare-and-swap, and read on the hot path as two 32-bit
 * words: as it only grows, low, high and low again unchanged are one moment's value.
 */

import type { Control } from "../memory/control.ts";
import { EPOCH_HIGH, EPOCH_LOW } from "../memory/control.ts";
import { loadAcquire } from "../memory/ordering.ts";
import { type Holder, SituError, TimeoutError } from "../runtime/errors.ts";
import { MAX_EPOCH, MAX_EPOCH_LAG } from "../runtime/limits.ts";
import type { NumberOf } from "../runtime/number-kinds.ts";
import {
  ACTIVE,
  epochsBehind,
  holderOf,
  IDLE,
  isClaimed,
  phaseOf,
  STATUS,
  slotsInUse,
} from "./slot.ts";

const EPOCH_I64 = EPOCH_LOW / 2;
/** How often an advance looks for announcements that lag too far behind. */
const LAG_CHECK_MASK = 0xffff;

/** A value of the store's clock. */
export type Epoch = NumberOf<"epoch">;

/** An epoch as a message says it. One that ends all epochs would ruin the store of whoever takes it. */
export function epochFrom(value: number): Epoch {
  if (Number.isInteger(value) && value >= 0 && value < MAX_EPOCH) return value;
  throw new SituError("SITU_PROTOCOL", `${value} is no epoch`);
}

/** Sets the epoch of a store that nobody has open. */
export function raiseEpoch(control: Control, epoch: Epoch): void {
  Atomics.store(control.i64, EPOCH_I64, BigInt(epoch));
}

export class Epochs {
  readonly #control: Control;

  constructor(control: Control) {
    this.#control = control;
  }

  /** The low 32 bits: enough to announce, and to see that nothing has changed. */
  low(): number {
    return loadAcquire(this.#control.i32, EPOCH_LOW);
  }

  high(): number {
    return loadAcquire(this.#control.i32, EPOCH_HIGH);
  }

  current(): Epoch {
    return Number(Atomics.load(this.#control.i64, EPOCH_I64));
  }

  /** Moves on from `epoch` if nobody has done so yet. */
  advance(epoch: Epoch = this.current()): void {
    if ((epoch & LAG_CHECK_MASK) === 0) this.#checkLag(epoch);
    const from = BigInt(epoch);
    Atomics.compareExchange(this.#control.i64, EPOCH_I64, from, from + 1n);
  }

  /**
   * Moves up to `epoch`, if it is behind: another machine has come so far (docs/DESIGN.md §5). Not further
   * at once than announcements can lag behind: the rest comes with the next ones.
   */
  raiseTo(epoch: Epoch): void {
    for (;;) {
      const current = this.current();
      const next = Math.min(epoch, current + MAX_EPOCH_LAG / 2);
      if (next <= current || !this.isPast(current - MAX_EPOCH_LAG / 2)) return;
      const from = BigInt(current);
      if (Atomics.compareExchange(this.#control.i64, EPOCH_I64, from, BigInt(next)) === from)
        return;
    }
  }

  /** Whether every transaction that announced `epoch` or an earlier one has ended. */
  isPast(epoch: Epoch): boolean {
    return this.#lagging(epoch) < 0;
  }

  /** Who keeps `epoch` from being past, if anybody still does. */
  laggard(epoch: Epoch): Holder | undefined {
    const slot = this.#lagging(epoch);
    return slot < 0 ? undefined : holderOf(this.#control, slot);
  }

  #lagging(epoch: Epoch): number {
    const slots = slotsInUse(this.#control);
    for (let slot = 0; slot < slots; slot++) {
      const active = Atomics.load(this.#control.i32, this.#control.slotAt(slot) + ACTIVE);
      if (active !== 0 && epochsBehind(active, epoch | 0) >= 0) return slot;
    }
    return -1;
  }

  /** Announcements compare in a circle of 2^30 epochs: nobody may be left behind half of it. */
  #checkLag(epoch: Epoch): void {
    const { i32, geometry } = this.#control;
    for (let slot = 0; slot < geometry.slots; slot++) {
      if (!isClaimed(this.#control, slot)) continue;
      const at = this.#control.slotAt(slot);
      const active = Atomics.load(i32, at + ACTIVE);
      const status = Atomics.load(i32, at + STATUS);
      const announced = phaseOf(status) > 1 ? status : active;
      if (announced === IDLE || epochsBehind(announced, epoch | 0) < MAX_EPOCH_LAG) continue;
      const holder = holderOf(this.#control, slot);
      throw new TimeoutError(
        `process ${holder.pid} has kept a transaction open for ${MAX_EPOCH_LAG} epochs: end it`,
        holder,
      );
    }
  }
}
