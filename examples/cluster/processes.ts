/** The processes of the example: started here, ended here, and heard when they cannot start. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

/** What processes have said last on stderr: of interest only when one cannot start. */
const told = new WeakMap<ChildProcess, string>();
const TOLD_CHARACTERS = 2_000;

export function start(command: string, args: readonly string[]): ChildProcess {
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C is for the program that started them: it stops them in its own order.
    detached: true,
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    told.set(child, ((told.get(child) ?? "") + text).slice(-TOLD_CHARACTERS));
  });
  return child;
}

/** For one that has ended and should not have. */
export function ended(name: string, child: ChildProcess): Error {
  return new Error(`${name} has ended: ${(told.get(child) ?? "").trim()}`);
}

export function isRunning({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid !== undefined && exitCode === null && signalCode === null;
}

/** Ends a process, and says how it ended: 0 is as it should be. */
export async function stop(child: ChildProcess, signal: NodeJS.Signals): Promise<number | null> {
  if (isRunning(child)) {
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
  }
  return child.exitCode;
}

/** Below the ports of outgoing connections, one of which could take a port while its server is away. */
const FIRST_PORT = 10_000;
const PORTS = 22_000;

/** The ports must be known before anybody listens on them. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = FIRST_PORT + Math.floor(Math.random() * PORTS);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch {
    return false;
  }
  await once(server.close(), "close");
  return true;
}
