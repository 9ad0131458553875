/** The categories of ACLs that a command belongs to, as COMMAND INFO shows them (acl.c). */

import type { Command } from "../../command.ts";

/** In the order of Redis's table. */
const ORDER = [
  "keyspace",
  "read",
  "write",
  "set",
  "hash",
  "string",
  "admin",
  "fast",
  "slow",
  "blocking",
  "dangerous",
  "connection",
  "transaction",
] as const;

type Category = (typeof ORDER)[number];

const BY_GROUP: Readonly<Record<Command["group"], Category | undefined>> = {
  connection: "connection",
  server: undefined,
  generic: "keyspace",
  string: "string",
  hash: "hash",
  set: "set",
  transactions: "transaction",
};

/** What neither the group nor the flags say. */
const MORE: Readonly<Record<string, readonly Category[]>> = {
  command: ["connection"],
  dbsize: ["keyspace"],
  flushall: ["keyspace", "dangerous"],
  flushdb: ["keyspace", "dangerous"],
  info: ["dangerous"],
  keys: ["dangerous"],
};

export function categoriesOf(command: Command, parent: Command | undefined): string[] {
  const { flags } = command;
  const has = new Set<Category | undefined>(MORE[parent?.name ?? command.name]);
  // A command that is only there for its subcommands has nothing of its own.
  if (command.subcommands === undefined || command.name === "command") {
    has.add(BY_GROUP[command.group]);
  }
  if (flags.includes("write")) has.add("write");
  if (flags.includes("readonly")) has.add("read");
  if (flags.includes("admin")) has.add("admin").add("dangerous");
  if (flags.includes("blocking")) has.add("blocking");
  has.add(flags.includes("fast") ? "fast" : "slow");
  return ORDER.filter((category) => has.has(category)).map((category) => `@${category}`);
}
