/** Leases of a simulated machine: a life of its process holds them, and loses all when it is killed. */

import type { Leases } from "../../src/engine/leases/leases.ts";

export class SimulatedLeases {
  /** Which life holds the lease of a slot. */
  readonly #holders = new Map<number, number>();

  of(life: number): Leases {
    const holders = this.#holders;
    const release = (slot: number): void => {
      if (holders.get(slot) === life) holders.delete(slot);
    };
    return {
      tryAcquire(slot) {
        if (holders.has(slot)) return false;
        holders.set(slot, life);
        return true;
      },
      release,
      close: () => this.died(life),
    };
  }

  died(life: number): void {
    for (const [slot, holder] of this.#holders) if (holder === life) this.#holders.delete(slot);
  }
}
