/**
 * A busy machine is to let the lease thread go first (FaRM §6.5): a renewal that comes late makes others
 * take a node for dead that is not. Linux allows that to root, and to whoever has CAP_SYS_NICE; elsewhere
 * leases are kept as well as they can be.
 */

import { becomeRealTime } from "../memory/libc.ts";

/** Says whether this thread does go first from now on. */
export function goFirst(): boolean {
  return process.platform === "linux" && becomeRealTime();
}
