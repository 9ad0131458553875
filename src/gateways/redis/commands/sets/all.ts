/** All commands on sets. */

import type { Command } from "../../command.ts";
import { MEMBER_COMMANDS } from "./members.ts";
import { RANDOM_MEMBER_COMMANDS } from "./random.ts";
import { SEVERAL_SET_COMMANDS } from "./several.ts";

export const SET_COMMANDS: readonly Command[] = [
  ...MEMBER_COMMANDS,
  ...RANDOM_MEMBER_COMMANDS,
  ...SEVERAL_SET_COMMANDS,
];
