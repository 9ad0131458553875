/** All commands. Their places in this list are their numbers in the metrics. */

import type { Command } from "../command.ts";
import { CONNECTION_COMMANDS } from "./connection/all.ts";
import { HASH_COMMANDS } from "./hashes/all.ts";
import { KEY_COMMANDS } from "./keys/all.ts";
import { SERVER_COMMANDS } from "./server/all.ts";
import { SET_COMMANDS } from "./sets/all.ts";
import { STRING_COMMANDS } from "./strings/all.ts";
import { TRANSACTION_COMMANDS } from "./transactions.ts";

export const COMMANDS: readonly Command[] = [
  ...STRING_COMMANDS,
  ...KEY_COMMANDS,
  ...HASH_COMMANDS,
  ...SET_COMMANDS,
  ...TRANSACTION_COMMANDS,
  ...CONNECTION_COMMANDS,
  ...SERVER_COMMANDS,
];
