/** What the worker threads of the echo protocol run. */

import { runThread } from "../../src/gateways/threads/run-thread.ts";
import { ECHO } from "./echo-protocol.ts";

runThread(ECHO);
