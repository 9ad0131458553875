/** What the commands do: the entry of the bundle that the command line loads to run one. */

import type { CommandName } from "../commands.ts";
import { runBench } from "./bench.ts";
import { runClusterStatus } from "./cluster.ts";
import { runClusterDrain, runClusterRebalance, runClusterRemove } from "./cluster-changes.ts";
import type { Run } from "./context.ts";
import { runDemo } from "./demo.ts";
import { runTeller } from "./demo-teller.ts";
import { runDoctor } from "./doctor.ts";
import { runInspect } from "./inspect.ts";
import { runClean, runDestroy, runPs, runResize } from "./living.ts";
import { runNode } from "./node.ts";
import { runServe } from "./serve.ts";
import { runShell } from "./shell.ts";
import { runBackup, runRestore, runVerify } from "./tools.ts";
import { runDump, runLoad } from "./transfer.ts";
import { runWatch } from "./watch.ts";

export type Work = { readonly [Name in CommandName]: Run<Name> };

export const WORK: Work = {
  serve: runServe,
  demo: runDemo,
  shell: runShell,
  inspect: runInspect,
  watch: runWatch,
  verify: runVerify,
  backup: runBackup,
  restore: runRestore,
  dump: runDump,
  load: runLoad,
  resize: runResize,
  ps: runPs,
  destroy: runDestroy,
  clean: runClean,
  bench: runBench,
  doctor: runDoctor,
  node: runNode,
  "cluster status": runClusterStatus,
  "cluster drain": runClusterDrain,
  "cluster remove": runClusterRemove,
  "cluster rebalance": runClusterRebalance,
  "demo-teller": runTeller,
};
