/** All commands. Their places in this list are their numbers in the metrics. */

import type { Command } from "../command.ts";
import { AUTHENTICATION_COMMANDS } from "./connection/authenticate.ts";
import { CONNECTION_BASIC_COMMANDS } from "./connection/basics.ts";
import { CLIENT_COMMANDS } from "./connection/client.ts";
import { HASH_READS } from "./hashes/read.ts";
import { HASH_WRITES } from "./hashes/write.ts";
import { ALL_KEYS_COMMANDS } from "./keys/all-keys-commands.ts";
import { BASIC_COMMANDS } from "./keys/basics.ts";
import { EXPIRY_COMMANDS } from "./keys/expiry.ts";
import { OBJECT_COMMANDS } from "./keys/object.ts";
import { RENAME_COMMANDS } from "./keys/rename.ts";
import { COMMAND_COMMANDS } from "./server/command.ts";
import { CONFIG_COMMANDS } from "./server/config.ts";
import { INFO_COMMANDS } from "./server/info.ts";
import { MEMBER_COMMANDS } from "./sets/members.ts";
import { RANDOM_MEMBER_COMMANDS } from "./sets/random.ts";
import { SEVERAL_SET_COMMANDS } from "./sets/several.ts";
import { COUNTER_COMMANDS } from "./strings/counters.ts";
import { GET_SET_COMMANDS } from "./strings/get-set.ts";
import { LCS_COMMANDS } from "./strings/lcs.ts";
import { RANGE_COMMANDS } from "./strings/ranges.ts";
import { TRANSACTION_COMMANDS } from "./transactions.ts";

export const COMMANDS: readonly Command[] = [
  ...GET_SET_COMMANDS,
  ...COUNTER_COMMANDS,
  ...RANGE_COMMANDS,
  ...LCS_COMMANDS,
  ...BASIC_COMMANDS,
  ...RENAME_COMMANDS,
  ...EXPIRY_COMMANDS,
  ...ALL_KEYS_COMMANDS,
  ...OBJECT_COMMANDS,
  ...HASH_READS,
  ...HASH_WRITES,
  ...MEMBER_COMMANDS,
  ...RANDOM_MEMBER_COMMANDS,
  ...SEVERAL_SET_COMMANDS,
  ...TRANSACTION_COMMANDS,
  ...AUTHENTICATION_COMMANDS,
  ...CONNECTION_BASIC_COMMANDS,
  ...CLIENT_COMMANDS,
  ...COMMAND_COMMANDS,
  ...CONFIG_COMMANDS,
  ...INFO_COMMANDS,
];
