/** All commands of the group "generic" that are here, and those about all keys. */

import type { Command } from "../../command.ts";
import { ALL_KEYS_COMMANDS } from "./all-keys.ts";
import { BASIC_COMMANDS } from "./basics.ts";
import { EXPIRY_COMMANDS } from "./expiry.ts";
import { OBJECT_COMMANDS } from "./object.ts";
import { RENAME_COMMANDS } from "./rename.ts";

export const KEY_COMMANDS: readonly Command[] = [
  ...BASIC_COMMANDS,
  ...RENAME_COMMANDS,
  ...EXPIRY_COMMANDS,
  ...ALL_KEYS_COMMANDS,
  ...OBJECT_COMMANDS,
];
