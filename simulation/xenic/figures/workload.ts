/**
 * A workload of Xenic's evaluation, as procedures that the coroutines run on rows. The tables have the paper's sizes; a row is put
 * into its three copies when a transaction is drawn that touches it for the first time, and its primary's NIC knows it from then
 * on: the 16 GB of a NIC hold all rows of each of these workloads (the paper's measurements are of warm caches).
 */

import type { Work } from "../../../src/protocols/xenic/coordinator.ts";
import type { HostTableShape } from "../../../src/protocols/xenic/host-table.ts";
import type { XenicMessage } from "../../../src/protocols/xenic/message.ts";
import type { XenicProcedure } from "../../../src/protocols/xenic/procedure.ts";
import type { Stream } from "../../../workloads/random/stream.ts";
import type { Charge } from "../model/burst-cores.ts";

export const SERVERS = 6;

/** The transactions that clients draw, for one run. */
export interface Drawing {
  /** The next one of a client at a server. */
  draw(server: number, client: number, stream: Stream): Work;
}

export interface FigureWorkload {
  readonly name: string;
  readonly shapes: readonly HostTableShape[];
  /** Threads that Table 3 has for 95 % of the peak: of Xenic's NIC, and of DrTM+H. */
  readonly threads: { readonly nic: number; readonly drtm: number };
  procedures(charge: Charge, isXenic: boolean): readonly XenicProcedure[];
  drawing(): Drawing;
  /** DrTM+H: what a thread of the host does, off the critical path, for a record that it applies. */
  applyUs(message: XenicMessage): number;
  /** A row before anybody has written it; undefined for one that is inserted. */
  initial(table: number): Int32Array | undefined;
  /** What a committed transaction adds to the sum of `counted` over all rows. */
  adds(work: Work, result: Int32Array): number;
  counted(table: number, value: Int32Array): number;
}

/** Row number `index` of a server. */
export function keyAt(server: number, index: number): number {
  return index * SERVERS + server;
}
