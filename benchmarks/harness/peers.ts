// The peers have a package.json of their own in benchmarks/peers: better-sqlite3 may compile for
// a minute, which `npm ci` of Situ must not wait for. A peer that cannot be loaded is a value
// with the reason, so that the report can say what was not compared.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export type Peer<T> =
  | { readonly available: true; readonly version: string; readonly value: T }
  | { readonly available: false; readonly missing: string };

export const peersFolder = findPeersFolder();
const requirePeer = createRequire(join(peersFolder, "package.json"));

/** The caller describes the little of the package that it uses as `T`. */
export function loadPeer<T>(name: string): Peer<T> {
  try {
    const value = requirePeer(name) as T;
    return { available: true, version: versionOf(name), value };
  } catch (error) {
    return missingPeer(`${name}: ${firstLine(error)}`);
  }
}

/** The same for one who was told that it is there: a worker of an engine that was started. */
export function needPeer<T>(name: string): T {
  const peer = loadPeer<T>(name);
  if (!peer.available) throw new Error(peer.missing);
  return peer.value;
}

export function missingPeer<T>(missing: string): Peer<T> {
  return { available: false, missing };
}

/** Opens what was loaded, if it was. */
export function mapPeer<T, U>(peer: Peer<T>, open: (value: T) => U): Peer<U> {
  return peer.available ? { ...peer, value: open(peer.value) } : peer;
}

export function describePeer(name: string, peer: Peer<unknown>, settings: string): string {
  return peer.available
    ? `${name} ${peer.version}: ${settings}`
    : `${name}: MISSING, ${peer.missing}`;
}

export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0];
}

function versionOf(name: string): string {
  // Not through require: `exports` of some packages hide their package.json.
  const file = join(peersFolder, "node_modules", name, "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

/** Walks up, because this file runs from dist/ and only the sources have the peers beside them. */
function findPeersFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    const candidate = join(folder, "benchmarks", "peers");
    if (existsSync(join(candidate, "package.json"))) return candidate;
    const parent = dirname(folder);
    if (parent === folder) throw new Error("benchmarks/peers/package.json was not found");
    folder = parent;
  }
}
