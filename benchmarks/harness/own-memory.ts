// Processes with a /dev/shm of their own, as in a container.
import { spawnSync } from "node:child_process";

/** To put before a command and its arguments. `size` is that of the file system, as `mount` takes it. */
export function ownMemory(size?: string): string[] {
  const options = size === undefined ? "" : `-o size=${size} `;
  return [
    "unshare",
    "--mount",
    "sh",
    "-c",
    `mount -t tmpfs ${options}tmpfs /dev/shm && exec "$@"`,
    "sh",
  ];
}

/** Why no process can be started with memory of its own; undefined if it can. */
export function whyNoOwnMemory(): string | undefined {
  const [command, ...args] = [...ownMemory(), "true"];
  const { status, error, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status === 0) return undefined;
  return `no mount namespace can be made here: ${error?.message ?? stderr.trim()}`;
}
