/** `situ serve`: a store for Redis clients and for Prometheus. */

import { COMMON, command } from "../command.ts";
import {
  choice,
  flag,
  path,
  required,
  secret,
  size,
  sizeOrAuto,
  text,
  whole,
} from "../option-kinds.ts";

const MOST_CLIENTS = 1_000_000;
const MOST_REQUESTS = 1_000_000;

export const SERVE = command({
  summary: "serves a store to Redis clients, and its metrics to Prometheus",
  synopsis: "--path DIR [--port N] [--metrics-port N]",
  about: [
    "Any Redis client can connect; EXEC is a strictly serializable transaction. The keys are rows",
    "of ordinary tables, which other processes read and change at the same time without the socket.",
    "SIGINT and SIGTERM stop it: pending requests are answered first.",
    "",
    "It listens on the loopback address by default, and on an address that others can",
    "reach only with a password. Give the password in a file (--password-file), in SITU_PASSWORD, or",
    'in situ.config.json ("password"). There is no flag for it, because flags are visible in ps.',
  ],
  options: {
    path: required(path("DIR", "the store's folder; created if it does not exist")),
    host: text("ADDRESS", "the address to listen on (127.0.0.1)"),
    port: whole(0, 65535, "the port to listen on; 0 picks a free one (6379)"),
    socket: path("FILE", "a Unix socket to listen on as well"),
    threads: whole(1, 64, "threads that serve clients (1)"),
    passwordFile: path("FILE", "a file whose first line is the password for AUTH"),
    password: secret("the password for AUTH"),
    metricsPort: whole(0, 65535, "the port for /metrics, /healthz and /readyz (off)"),
    memory: sizeOrAuto(
      "the most memory, or auto; a smaller store grows to it (256MiB for a new one)",
    ),
    durability: choice(
      ["sync", "lazy", "none"],
      "when commits reach the disk (as the store was created, or lazy)",
    ),
    maxClients: whole(1, MOST_CLIENTS, "the most clients at the same time (10000)"),
    maxBulk: size("the longest argument of a request (1MiB)"),
    maxRequest: size("the longest request (8MiB)"),
    maxPipeline: whole(1, MOST_REQUESTS, "the most commands a client may queue with MULTI (65536)"),
    maxOutput: size("unread replies after which a client is disconnected (64MiB)"),
    showConfig: flag("prints the settings and where each comes from, and exits"),
    ...COMMON,
  },
  examples: [
    ["situ serve --path ./data", "then: redis-cli set greeting hello"],
    ["situ serve --path ./data --threads 2 --metrics-port 9121", "with two threads and metrics"],
    [
      "situ serve --path ./data --host 0.0.0.0 --password-file ./secret",
      "reachable from other machines",
    ],
  ],
});
