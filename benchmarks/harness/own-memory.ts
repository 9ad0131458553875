// Processes with a /dev/shm of their own, as in a container.
import { spawnSync } from "node:child_process";

/** To put before a command and its arguments. */
export const OWN_MEMORY = [
  "unshare",
  "--mount",
  "sh",
  "-c",
  'mount -t tmpfs tmpfs /dev/shm && exec "$@"',
  "sh",
];

/** Why no process can be started with memory of its own; undefined if it can. */
export function whyNoOwnMemory(): string | undefined {
  const [command, ...args] = [...OWN_MEMORY, "true"];
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return undefined;
  return `no mount namespace can be made here: ${error?.message ?? stderr.trim()}`;
}
