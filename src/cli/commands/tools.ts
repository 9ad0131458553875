/** What looks at stores as wholes and copies them: inspect, verify, backup, restore. */

import { COMMON, command } from "../command.ts";
import { flag, moment, path, required, text } from "../option-kinds.ts";

const STORE = required(path("DIR", "the folder of the store"));

export const INSPECT = command({
  summary: "says what is in a store, in a table, or in a file of its log",
  synopsis: "--path DIR [--table NAME | --file NAME]",
  about: [
    "Reads in a snapshot: others go on meanwhile. What is found damaged is told beside the rest.",
  ],
  options: {
    path: STORE,
    table: text("NAME", "a table: rows, the shape of its structures, memory"),
    file: text("NAME", "a file of the store, as log/0000000001.log"),
    records: flag("with --file: the records of the log, too"),
    ...COMMON,
  },
  examples: [
    ["situ inspect --path ./bank", "tables, memory, who has it open, log and checkpoints"],
    ["situ inspect --path ./bank --table account", "one table"],
    ["situ inspect --path ./bank --file log/0000000001.log --records --json", "a part of the log"],
  ],
});

export const VERIFY = command({
  summary: "checks every checksum on disk, every structure in memory, every index",
  synopsis: "--path DIR",
  about: ["Changes nothing, and others go on meanwhile. Exit code 3 if something is wrong."],
  options: { path: STORE, ...COMMON },
  examples: [["situ verify --path ./bank", "whether all is sound"]],
});

export const BACKUP = command({
  summary: "copies a store, running or not, to an empty folder",
  synopsis: "--path DIR --to DIR",
  about: ["The copy has all that was committed before, and is read again when it is there."],
  options: {
    path: STORE,
    to: required(path("DIR", "an empty folder, or one that is not there")),
    ...COMMON,
  },
  examples: [["situ backup --path ./bank --to /backups/monday", "a copy to fall back on"]],
});

export const RESTORE = command({
  summary: "makes a store from a backup, or of a point in the past of a store",
  synopsis: "--from DIR --path DIR [--at MOMENT]",
  about: [
    "The source is only read. A point in the past can be had if its log was kept (keepLogMs).",
  ],
  options: {
    from: required(path("DIR", "a backup, or the folder of a store")),
    path: required(path("DIR", "where the new store is to be: an empty folder")),
    at: moment("the store as of then, as 2026-11-15T18:30:00Z; without a zone it is UTC"),
    memoryDir: path("DIR", "where the new store's memory is to be (/dev/shm)"),
    ...COMMON,
  },
  examples: [
    ["situ restore --from /backups/monday --path ./bank", "a store from a backup"],
    ["situ restore --from ./bank --path ./before --at 2026-11-15T18:30:00Z", "as it was then"],
  ],
});
