/** What tries Situ out on this machine: demo, bench, doctor. */

import { COMMON, command } from "../command.ts";
import { choice, defaulted, path, required, whole } from "../option-kinds.ts";

export const DEMO = command({
  summary: "several processes move money in one store, one is killed, the sum holds",
  synopsis: "[--seconds N] [--tellers N]",
  about: ["Runs in a temporary store, which is removed afterwards."],
  options: {
    seconds: defaulted(4, whole(1, 60, "how long they work (4)")),
    tellers: defaulted(4, whole(2, 32, "processes that move money (4)")),
    accounts: defaulted(1_000, whole(10, 100_000, "accounts (1000)")),
    ...COMMON,
  },
  examples: [["situ demo", "four seconds, told as it happens"]],
});

/** One of the demo's processes. */
export const DEMO_TELLER = command({
  summary: "a process of the demo",
  synopsis: "--path DIR --teller N",
  about: [],
  options: {
    path: required(path("DIR", "the folder of the demo's store")),
    teller: required(whole(1, 32, "which one it is")),
    accounts: required(whole(10, 100_000, "accounts")),
    ...COMMON,
  },
  examples: [],
  isHidden: true,
});

export const BENCH = command({
  summary: "measures get, put, transfer and scan on this machine",
  synopsis: "[--seconds N] [--rows N]",
  about: [
    "One process, one thread, in a temporary store, which is gone afterwards: a first impression,",
    "no comparison. That is in the repository: `npm run bench` runs workloads, also on Situ's peers.",
  ],
  options: {
    seconds: defaulted(1, whole(1, 60, "how long each is measured (1)")),
    rows: defaulted(100_000, whole(1_000, 10_000_000, "rows of the table (100000)")),
    durability: defaulted(
      "none",
      choice(["sync", "lazy", "none"], "when a commit is on disk (none)"),
    ),
    path: path(
      "DIR",
      "where the temporary store's folder is made: the disk of its log (a temporary one)",
    ),
    ...COMMON,
  },
  examples: [
    ["situ bench", "in memory"],
    ["situ bench --durability sync --path .", "with every commit on this folder's disk"],
  ],
});

export const DOCTOR = command({
  summary: "looks whether this machine has what Situ needs, and says what to do",
  synopsis: "[--path DIR]",
  about: ["Exit code 1 if something is missing; warnings do not count."],
  options: {
    path: path("DIR", "also looks at this folder, where a store is or is to be"),
    ...COMMON,
  },
  examples: [
    ["situ doctor", "this machine"],
    ["situ doctor --path ./bank", "and this folder"],
  ],
});
