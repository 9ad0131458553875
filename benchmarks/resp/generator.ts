// redis-benchmark as the load: it is the measure that Redis has of itself.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Target } from "./servers.ts";

const run = promisify(execFile);

export type Command = "get" | "set";

export interface Load {
  readonly command: Command;
  readonly clients: number;
  /** Requests that a client sends at once. */
  readonly pipeline: number;
  readonly requests: number;
}

const valueBytes = 32;

/** Requests per second, as redis-benchmark counts them. */
export async function generate({ port }: Target, load: Load): Promise<number> {
  const { command, clients, pipeline, requests } = load;
  const { stdout } = await run("redis-benchmark", [
    ...["-p", String(port), "-c", String(clients), "-P", String(pipeline)],
    ...["-n", String(requests), "-d", String(valueBytes), "-t", command, "--csv"],
  ]);
  const line = stdout.split("\n").find((each) => each.startsWith(`"${command.toUpperCase()}"`));
  const rate = Number(line?.split(",")[1]?.replaceAll('"', ""));
  if (!(rate > 0)) throw new Error(`redis-benchmark said: ${stdout.slice(0, 200)}`);
  return rate;
}

/** Several generators at the same time, which share the clients: their sum. */
export async function generateTogether(
  target: Target,
  load: Load,
  generators: number,
): Promise<number> {
  const share = {
    ...load,
    clients: load.clients / generators,
    requests: Math.ceil(load.requests / generators),
  };
  const rates = await Promise.all(
    Array.from({ length: generators }, () => generate(target, share)),
  );
  return rates.reduce((sum, rate) => sum + rate, 0);
}
