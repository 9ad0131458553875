/** All commands by their names, in the order of help. */

import type { Command } from "./command.ts";
import {
  CLUSTER_DRAIN,
  CLUSTER_REBALANCE,
  CLUSTER_REMOVE,
  CLUSTER_STATUS,
} from "./commands/cluster.ts";
import { CLEAN, DESTROY, PS, RESIZE } from "./commands/living.ts";
import { NODE } from "./commands/node.ts";
import { SERVE } from "./commands/serve.ts";
import { SHELL } from "./commands/shell.ts";
import { BACKUP, INSPECT, RESTORE, VERIFY, WATCH } from "./commands/tools.ts";
import { DUMP, LOAD } from "./commands/transfer.ts";
import { BENCH, DEMO, DEMO_TELLER, DOCTOR } from "./commands/trials.ts";

export const COMMANDS = {
  serve: SERVE,
  demo: DEMO,
  shell: SHELL,
  inspect: INSPECT,
  watch: WATCH,
  verify: VERIFY,
  backup: BACKUP,
  restore: RESTORE,
  dump: DUMP,
  load: LOAD,
  resize: RESIZE,
  ps: PS,
  destroy: DESTROY,
  clean: CLEAN,
  bench: BENCH,
  doctor: DOCTOR,
  node: NODE,
  "cluster status": CLUSTER_STATUS,
  "cluster drain": CLUSTER_DRAIN,
  "cluster remove": CLUSTER_REMOVE,
  "cluster rebalance": CLUSTER_REBALANCE,
  "demo-teller": DEMO_TELLER,
} as const satisfies Readonly<Record<string, Command>>;

export type CommandName = keyof typeof COMMANDS;

export const COMMAND_NAMES = Object.keys(COMMANDS) as readonly CommandName[];

/** Those for people. */
export const SHOWN_NAMES = COMMAND_NAMES.filter(
  (name) => (COMMANDS[name] as Command).isHidden !== true,
);
