/** The entry of the threads' script. */

import { runWorker } from "./worker.ts";

await runWorker();
