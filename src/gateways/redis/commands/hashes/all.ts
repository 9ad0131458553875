/** All commands on hashes. */

import type { Command } from "../../command.ts";
import { HASH_READS } from "./read.ts";
import { HASH_WRITES } from "./write.ts";

export const HASH_COMMANDS: readonly Command[] = [...HASH_READS, ...HASH_WRITES];
