// redis-benchmark as the load: it is the measure that Redis has of itself.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Connection, request } from "./connection.ts";
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
/** Keys are drawn from so many: with one key for all, clients of two threads would queue for it. */
export const keys = 100_000;

/** Requests per second, as redis-benchmark counts them. */
export async function generate({ port }: Target, load: Load): Promise<number> {
  const { command, clients, pipeline, requests } = load;
  const { stdout } = await run("redis-benchmark", [
    ...["-p", String(port), "-c", String(clients), "-P", String(pipeline)],
    ...["-n", String(requests), "-d", String(valueBytes), "-r", String(keys)],
    ...["-t", command, "--csv"],
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

/** Each key once, so that a GET finds one. */
export async function loadKeys({ port }: Target): Promise<void> {
  const connection = await Connection.open(port);
  const value = "v".repeat(valueBytes);
  for (let first = 0; first < keys; first += 100) {
    const pairs = Array.from({ length: 100 }, (_, i) => [keyOf(first + i), value]).flat();
    await connection.ask(request("MSET", ...pairs), 1);
  }
  connection.close();
}

/** As redis-benchmark names them. */
function keyOf(i: number): string {
  return `key:${String(i).padStart(12, "0")}`;
}
