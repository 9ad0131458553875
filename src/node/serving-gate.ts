/**
 * Whether a thread of a node may answer now, as shared memory says (cluster/membership/lease-gate.ts). It is
 * asked before something is read, so that nothing is served without a lease; and after it, before the answer
 * leaves: the thread may have stood still in between, and others may have begun to serve.
 */

import type { TellFilled } from "../cluster/copies.ts";
import type { LeaseGate } from "../cluster/membership/lease-gate.ts";
import type { ServiceOptions } from "../cluster/service.ts";
import type { ConfigurationId } from "../fabric/fabric.ts";
import { type LeaseClock, leaseClock } from "../fabric/lease-clock.ts";
import type { CurrentView } from "../protocols/cluster-view.ts";

export class ServingGate {
  readonly lease: LeaseGate;
  readonly #clock: LeaseClock = leaseClock();

  constructor(lease: LeaseGate) {
    this.lease = lease;
  }

  /** Whether a node whose view is of this configuration may serve. */
  mayServe(configurationId: ConfigurationId): boolean {
    return this.lease.mayServe(configurationId, this.#clock.nowMs());
  }

  /** Whether rows of all its partitions can be read. */
  isWhole(configurationId: ConfigurationId): boolean {
    return this.lease.isWhole(configurationId);
  }
}

/** What makes the service of a thread one that recovers, and that serves as the gate says. */
export function recoveringBy(
  gate: ServingGate,
  view: CurrentView,
  filled: TellFilled,
): Pick<ServiceOptions, "recovers" | "mayServe" | "isWhole" | "becameWhole" | "filled"> {
  return {
    recovers: true,
    filled,
    mayServe: () => gate.mayServe(view.current.configurationId),
    isWhole: () => gate.isWhole(view.current.configurationId),
    becameWhole: (configurationId, isWhole) => gate.lease.setWhole(configurationId, isWhole),
  };
}
