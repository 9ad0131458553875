/** All workloads on PostgreSQL, through the contract that the suite uses. */

import { postgresDriver } from "../../benchmarks/engines/postgres/driver.ts";
import { holdsForEngine } from "./engine-contract.ts";

holdsForEngine({
  driver: postgresDriver,
  inFlight: [16, 1],
  transactions: 400,
  folderOf: ({ host }) => String(host),
  isServer: true,
});
