/** The entry of the NIC worker's script. */

import { runNic } from "./nic-worker.ts";

await runNic();
