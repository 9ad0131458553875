/** The entry of the lease thread's script. */

import { runLeases } from "./lease-worker.ts";

await runLeases();
