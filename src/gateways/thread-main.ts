/** What the worker threads of the Redis gateway run. */

import { REDIS } from "./redis/protocol.ts";
import { runThread } from "./threads/run-thread.ts";

runThread(REDIS);
