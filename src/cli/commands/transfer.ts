/** Rows as text: dump and load. */

import { COMMON, command } from "../command.ts";
import { choice, path, required, size, text } from "../option-kinds.ts";
import { CONNECTION } from "./cluster.ts";

const CLUSTER = {
  ...CONNECTION,
  connect: text(
    "HOST:PORT",
    "instead of a store: a node of a cluster, or several with commas between",
  ),
};

const FORMATS = ["jsonl", "csv"] as const;

export const DUMP = command({
  summary: "writes tables as JSON lines or CSV",
  synopsis: "(--path DIR | --connect HOST:PORT) (--to DIR | --table NAME)",
  about: [
    "All rows are of one state; others go on writing. With --table and without --to, the rows of that table",
    "are printed.",
  ],
  options: {
    path: path("DIR", "the store's folder"),
    ...CLUSTER,
    to: path("DIR", "an empty folder, or one that does not exist: a file for each table"),
    table: text("NAME", "only this table"),
    format: choice(FORMATS, "jsonl, a JSON object on each line (the default), or csv"),
    ...COMMON,
  },
  examples: [
    ["situ dump --path ./shop --to ./shop-dump", "all tables, to a folder"],
    ["situ dump --path ./shop --table order --format csv > orders.csv", "one table"],
    ["situ dump --connect 10.0.0.1:7000 --cluster shop --to ./shop-dump", "a whole cluster"],
  ],
});

export const LOAD = command({
  summary: "loads tables from JSON lines or CSV",
  synopsis: "--from DIR (--path DIR | --connect HOST:PORT)",
  about: [
    "Loads what dump wrote; the store is created if it is not there. With --table, --from is a single file",
    "for a table of the store. After an interruption, the same command goes on where the load was; into a",
    "cluster it begins again: use --on-conflict skip or replace.",
  ],
  options: {
    from: required(path("DIR", "the folder of a dump, or with --table a file")),
    path: path("DIR", "the store's folder"),
    ...CLUSTER,
    table: text("NAME", "the table for the rows of a single file"),
    format: choice(FORMATS, "with --table: the format of the file (by its name, .csv or not)"),
    onConflict: choice(
      ["fail", "replace", "skip"],
      "what to do with a row whose key is in the table already (fail)",
    ),
    memoryBytes: size("for a store that is created: as in open"),
    memoryDir: path("DIR", "for a store that is created: where to create its memory (/dev/shm)"),
    ...COMMON,
  },
  examples: [
    ["situ load --from ./shop-dump --path ./shop2", "a dump into a new store"],
    ["situ load --from orders.csv --path ./shop --table order", "a file into a table"],
  ],
});
