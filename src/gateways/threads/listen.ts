/** Listening on an address or a Unix socket, with errors that say what to do. */

import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import { connect, type ListenOptions, type Server } from "node:net";
import { SituError } from "../../runtime/errors.ts";

/** Connections that wait to be accepted (Redis: tcp-backlog). */
const BACKLOG = 511;

/** Listens, and returns the port. */
export async function listen(server: Server, host: string, port: number): Promise<number> {
  await listening(server, { host, port }, `${host}:${port}`);
  return (server.address() as { port: number }).port;
}

function listening(server: Server, to: ListenOptions, where: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(cannotListen(where, error));
    server.once("error", fail);
    server.listen({ ...to, backlog: BACKLOG }, () => {
      server.removeListener("error", fail);
      // Such as that no more files can be opened: whoever is connected is served all the same.
      server.on("error", (error) => warnOnce(where, error));
      resolve();
    });
  });
}

/**
 * Listens on a Unix socket that only this user can reach. What a gateway that died has left there
 * is removed; one that answers is not.
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (isSocket(path)) {
    if (await answers(path)) {
      throw new SituError(
        "SITU_IN_USE",
        `cannot listen on ${path}: another process is listening there`,
      );
    }
    unlinkSync(path);
  }
  await listening(server, { path }, path);
  chmodSync(path, 0o700);
}

function isSocket(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", () => resolve(false));
  });
}

const warned = new Set<string>();

function warnOnce(where: string, error: NodeJS.ErrnoException): void {
  const text = `a client could not be accepted on ${where}: ${error.message}`;
  if (warned.has(text)) return;
  warned.add(text);
  process.emitWarning(text);
}

function cannotListen(where: string, error: NodeJS.ErrnoException): SituError {
  const why: Record<string, string> = {
    EADDRINUSE: "another process is listening there; choose another port",
    EACCES: "permission denied; choose a port above 1023, or another folder",
    EADDRNOTAVAIL: "this machine has no such address",
  };
  const text = why[error.code ?? ""] ?? error.message;
  const code = error.code === "EADDRINUSE" ? "SITU_IN_USE" : "SITU_CONFIG";
  return new SituError(code, `cannot listen on ${where}: ${text}`, { cause: error });
}
