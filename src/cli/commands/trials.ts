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
    path: required(path("DIR", "the demo's store")),
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
    "A first impression: one process and one thread, in a temporary store that is removed afterwards.",
    "In the repository, `npm run bench` runs workloads and compares Situ with other stores.",
  ],
  options: {
    seconds: defaulted(1, whole(1, 60, "how long to measure each (1)")),
    rows: defaulted(100_000, whole(1_000, 10_000_000, "rows of the table (100000)")),
    durability: defaulted(
      "none",
      choice(["sync", "lazy", "none"], "when commits reach the disk (none)"),
    ),
    path: path("DIR", "where to create the temporary store (the system's temporary folder)"),
    ...COMMON,
  },
  examples: [
    ["situ bench", "in memory"],
    ["situ bench --durability sync --path .", "with every commit synced to this folder's disk"],
  ],
});

export const DOCTOR = command({
  summary: "checks whether this machine has what Situ needs, and says what to do",
  synopsis: "[--path DIR]",
  about: ["Exits with code 1 if a check fails; warnings do not count."],
  options: {
    path: path("DIR", "also checks this folder of a store, existing or planned"),
    ...COMMON,
  },
  examples: [
    ["situ doctor", "this machine"],
    ["situ doctor --path ./bank", "this machine and this folder"],
  ],
});
