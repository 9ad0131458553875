/** Where a cluster is, from the options of the commands about clusters. */

import { readFileSync } from "node:fs";
import type { ConnectOptions } from "../../database/remote/connect-options.ts";
import { UsageError } from "../failures.ts";
import type { OptionValues } from "./context.ts";

type Given = Omit<OptionValues<"cluster rebalance">, "timeout" | "json" | "config">;

export function connectionOf(values: Given, timeoutMs: number): ConnectOptions {
  const { connect, cluster, secretFile, secret, ca } = values;
  const given = secretFile === undefined ? (secret ?? process.env.SITU_SECRET) : read(secretFile);
  return {
    connect: connect.split(",").map((each) => each.trim()),
    cluster,
    timeoutMs,
    ...(given === undefined || given === "" ? {} : { secret: given }),
    ...(ca === undefined ? {} : { tls: { ca: read(ca) } }),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}
