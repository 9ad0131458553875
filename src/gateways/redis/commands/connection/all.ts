/** All commands of the group "connection" that are here. */

import type { Command } from "../../command.ts";
import { AUTHENTICATION_COMMANDS } from "./authenticate.ts";
import { CONNECTION_BASIC_COMMANDS } from "./basics.ts";
import { CLIENT_COMMANDS } from "./client.ts";

export const CONNECTION_COMMANDS: readonly Command[] = [
  ...AUTHENTICATION_COMMANDS,
  ...CONNECTION_BASIC_COMMANDS,
  ...CLIENT_COMMANDS,
];
