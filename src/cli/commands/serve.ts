/** `situ serve`: a store for Redis clients and for Prometheus. */

import { COMMON, command } from "../command.ts";
import { choice, flag, path, required, secret, size, text, whole } from "../option-kinds.ts";

const MOST_CLIENTS = 1_000_000;
const MOST_REQUESTS = 1_000_000;

export const SERVE = command({
  summary: "opens a store to Redis clients, and its metrics to Prometheus",
  synopsis: "--path DIR [--port N] [--metrics-port N]",
  about: [
    "Any Redis client can connect; EXEC is a strictly serializable transaction. The keys are rows",
    "of ordinary tables, which other processes read and change at the same time without the socket.",
    "SIGINT and SIGTERM stop it: what has come is answered, then it leaves the store.",
    "",
    "It listens on the loopback address unless told otherwise, and on an address that others can",
    "reach only with a password. The password is in a file (--password-file), in SITU_PASSWORD, or",
    'in situ.config.json ("password"); there is no flag for it, as everybody sees flags in ps.',
  ],
  options: {
    path: required(path("DIR", "the folder of the store; it is made if it is not there")),
    host: text("ADDRESS", "where to listen (127.0.0.1)"),
    port: whole(0, 65535, "its port; 0 takes a free one (6379)"),
    socket: path("FILE", "a Unix socket to listen on as well"),
    threads: whole(1, 64, "threads that serve clients, each with the store open (1)"),
    passwordFile: path("FILE", "a file whose first line is the password for AUTH"),
    password: secret("the password for AUTH"),
    metricsPort: whole(0, 65535, "serves /metrics, /healthz and /readyz there (nowhere)"),
    memory: size("the most memory, for a store that is made now (256MiB)"),
    durability: choice(
      ["sync", "lazy", "none"],
      "when a commit is on disk (as the store is, or lazy)",
    ),
    maxClients: whole(1, MOST_CLIENTS, "clients at the same time (10000)"),
    maxBulk: size("the longest argument of a request (1MiB)"),
    maxRequest: size("the most bytes of one request that is not complete (8MiB)"),
    maxPipeline: whole(1, MOST_REQUESTS, "commands that a client may queue with MULTI (65536)"),
    maxOutput: size("replies that a client has not taken, before it is cut off (64MiB)"),
    showConfig: flag("shows the settings and where each is from, and does nothing else"),
    ...COMMON,
  },
  examples: [
    ["situ serve --path ./data", "then: redis-cli set greeting hello"],
    ["situ serve --path ./data --threads 2 --metrics-port 9121", "two threads, and metrics"],
    ["situ serve --path ./data --host 0.0.0.0 --password-file ./secret", "for other machines"],
  ],
});
