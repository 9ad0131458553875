/** All commands of the group "string" that are here: bit operations are not. */

import type { Command } from "../../command.ts";
import { COUNTER_COMMANDS } from "./counters.ts";
import { GET_SET_COMMANDS } from "./get-set.ts";
import { LCS_COMMANDS } from "./lcs.ts";
import { RANGE_COMMANDS } from "./ranges.ts";

export const STRING_COMMANDS: readonly Command[] = [
  ...GET_SET_COMMANDS,
  ...COUNTER_COMMANDS,
  ...RANGE_COMMANDS,
  ...LCS_COMMANDS,
];
