/** What looks at stores as wholes and copies them: inspect, verify, backup, restore. */

import { COMMON, command } from "../command.ts";
import { flag, moment, path, required, text, whole } from "../option-kinds.ts";

const STORE = required(path("DIR", "the store's folder"));

export const INSPECT = command({
  summary: "shows what is in a store, in a table, or in a log file",
  synopsis: "--path DIR [--table NAME | --file NAME]",
  about: ["Reads a snapshot, so nobody has to wait. Damage is reported beside the rest."],
  options: {
    path: STORE,
    table: text("NAME", "a table: its rows, structures and memory"),
    file: text("NAME", "a file of the store, such as log/0000000001.log"),
    records: flag("with --file: also prints the records of the log"),
    ...COMMON,
  },
  examples: [
    ["situ inspect --path ./bank", "tables, memory, processes, log and checkpoints"],
    ["situ inspect --path ./bank --table account", "one table"],
    [
      "situ inspect --path ./bank --file log/0000000001.log --records --json",
      "a log file with its records",
    ],
  ],
});

export const WATCH = command({
  summary: "prints what happens to the rows of a table, one JSON object a line",
  synopsis: "--path DIR --table NAME [--since POSITION]",
  about: [
    "Prints changes of all processes in the order of their commits, when they are on disk, until it is stopped.",
    "The first watch of a table has its changes recorded from then on, which makes the log larger.",
  ],
  options: {
    path: STORE,
    table: required(text("NAME", "the table")),
    since: text("POSITION", "now, start, or the position of a change, to go on after it (now)"),
    limit: whole(1, 1e12, "stops after so many changes"),
    stop: flag("stops recording the changes of the table, and prints nothing"),
    ...COMMON,
  },
  examples: [
    ["situ watch --path ./bank --table account", "follows a table"],
    ["situ watch --path ./bank --table account --since start", "with all that the log still has"],
  ],
});

export const VERIFY = command({
  summary: "checks every checksum on disk, every structure in memory, every index",
  synopsis: "--path DIR",
  about: ["Changes nothing, and nobody has to wait. Exits with code 3 if it finds faults."],
  options: { path: STORE, ...COMMON },
  examples: [["situ verify --path ./bank", "checks the store"]],
});

export const BACKUP = command({
  summary: "copies a store, running or not, to an empty folder",
  synopsis: "--path DIR --to DIR",
  about: [
    "The copy has everything committed before the backup began, and is verified by reading it back.",
  ],
  options: {
    path: STORE,
    to: required(path("DIR", "an empty folder, or one that does not exist")),
    ...COMMON,
  },
  examples: [["situ backup --path ./bank --to /backups/monday", "a backup"]],
});

export const RESTORE = command({
  summary: "creates a store from a backup, or from another store as of a point in time",
  synopsis: "--from DIR --path DIR [--at MOMENT]",
  about: [
    "The source is only read. Restoring to a point in time needs the log of that time (keepLogMs).",
  ],
  options: {
    from: required(path("DIR", "a backup, or a store's folder")),
    path: required(path("DIR", "where to create the store: an empty folder")),
    at: moment("the point in time, such as 2026-11-15T18:30:00Z; UTC unless it has a zone"),
    memoryDir: path("DIR", "where to create the store's memory (/dev/shm)"),
    ...COMMON,
  },
  examples: [
    ["situ restore --from /backups/monday --path ./bank", "a store from a backup"],
    [
      "situ restore --from ./bank --path ./before --at 2026-11-15T18:30:00Z",
      "the store as of that time",
    ],
  ],
});
