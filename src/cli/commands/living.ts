/** What one needs in the life of a store: resize, ps, destroy, clean. */

import { COMMON, command } from "../command.ts";
import { flag, path, required, sizeOrAuto } from "../option-kinds.ts";

const STORE = required(path("DIR", "the store's folder"));

export const RESIZE = command({
  summary: "makes a store larger or smaller, also while it is in use",
  synopsis: "--path DIR --memory SIZE",
  about: [
    "Others go on reading and writing. The size holds for all processes and after a restart; it is",
    "rounded up to whole regions. A store can become as small as what it holds allows: otherwise nothing",
    "changes, and the error names the smallest size that is possible now.",
  ],
  options: {
    path: STORE,
    memory: required(sizeOrAuto("the most memory for rows and indexes; auto: grows by itself")),
    ...COMMON,
  },
  examples: [
    ["situ resize --path ./bank --memory 1GiB", "room for 1 GiB"],
    [
      "situ resize --path ./bank --memory auto",
      "up to half of the machine's memory, as it is needed",
    ],
  ],
});

export const PS = command({
  summary: "shows which processes have a store open, and what they are doing",
  synopsis: "--path DIR",
  about: ["Looks without opening the store, so it also works when the store is stuck or full."],
  options: { path: STORE, ...COMMON },
  examples: [["situ ps --path ./bank", "processes and threads, since when, and what they do"]],
});

export const DESTROY = command({
  summary: "deletes a store that no process has open: its memory, log and checkpoints",
  synopsis: "--path DIR [--yes]",
  about: [
    "Asks first, unless --yes is given. Refuses while a process has the store open, and names it. The",
    "folder itself stays, with whatever else is in it.",
  ],
  options: { path: STORE, yes: flag("deletes without asking"), ...COMMON },
  examples: [["situ destroy --path ./bank --yes", "deletes the store"]],
});

export const CLEAN = command({
  summary: "finds memory of stores whose folder is gone, and removes it with --yes",
  synopsis: "[--memory-dir DIR] [--yes]",
  about: [
    "A store whose folder was deleted leaves its memory behind. Without --yes, nothing is removed. Memory",
    "that somebody has open, that belongs to another user, or that was made in another container is never",
    "removed. Memory without a log is only removed with --unlogged: if its folder was moved and not",
    "deleted, its rows are nowhere else.",
  ],
  options: {
    memoryDir: path("DIR", "where to look (/dev/shm)"),
    yes: flag("removes what it finds"),
    dryRun: flag("only shows what it finds, which is the default"),
    unlogged: flag("also removes memory of stores that had no log"),
    ...COMMON,
  },
  examples: [
    ["situ clean", "shows memory that nobody needs"],
    ["situ clean --yes", "removes it"],
  ],
});
