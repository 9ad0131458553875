/** All commands of the group "server" that are here, but those about all keys. */

import type { Command } from "../../command.ts";
import { COMMAND_COMMANDS } from "./command.ts";
import { CONFIG_COMMANDS } from "./config.ts";
import { INFO_COMMANDS } from "./info.ts";

export const SERVER_COMMANDS: readonly Command[] = [
  ...COMMAND_COMMANDS,
  ...CONFIG_COMMANDS,
  ...INFO_COMMANDS,
];
