/**
 * Whether a thread of a node may answer now, as shared memory says (cluster/membership/lease-gate.ts). It is
 * asked before something is read, so that nothing is served without a lease; and after it, before the answer
 * leaves: the thread may have stood still in between, and others may have begun to serve.
 */

import type { LeaseGate } from "../cluster/membership/lease-gate.ts";
import type { ConfigurationId } from "../fabric/fabric.ts";
import { type LeaseClock, leaseClock } from "../fabric/lease-clock.ts";

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

  /** Whether, in addition, rows of all its partitions can be read: verbs do not say of which. */
  mayRead(configurationId: ConfigurationId): boolean {
    return this.lease.isWhole && this.mayServe(configurationId);
  }
}
