/**
 * The rules of the source that no file shows by itself: modules that nobody imports, modules that
 * import each other, and layers that reach past the one below them. All look at the whole graph.
 */

import { dirname, join, normalize } from "node:path/posix";
import { importsOf } from "./source-rules.ts";

/** What runs: the bundles of the package begin here. */
export const ENTRIES = [
  "src/index.ts",
  "src/log/main.ts",
  "src/tables/device/elements/element-main.ts",
  "src/node/nic-main.ts",
  "src/node/lease-main.ts",
  "src/gateways/thread-main.ts",
  "src/cli/main.ts",
  "src/cli/work/command-work.ts",
];

/** What is tested by itself and not yet part of what runs. An entry that is reached must go from here. */
export const AHEAD = ["src/protocols/xenic/local.ts", "src/protocols/xenic/recovery.ts"];

/** Path to text, as in src/engine/run.ts. */
export type Sources = ReadonlyMap<string, string>;

interface Edge {
  readonly to: string;
  /** Neither a type nor import(): the other module is run first. */
  readonly runsFirst: boolean;
}

function graphOf(sources: Sources): Map<string, Edge[]> {
  const graph = new Map<string, Edge[]>();
  for (const [path, text] of sources) {
    const edges = importsOf(path, text).filter(({ name }) => name.startsWith("."));
    graph.set(
      path,
      edges.map(({ name, kind }) => ({
        to: normalize(join(dirname(path), name)),
        runsFirst: kind === "value",
      })),
    );
  }
  return graph;
}

/** Modules that no entry reaches, be it for a type only; and those that are `ahead` without need. */
export function unreachedModules(
  sources: Sources,
  entries: readonly string[] = ENTRIES,
  ahead: readonly string[] = AHEAD,
): string[] {
  const graph = graphOf(sources);
  const reachedFrom = (starts: readonly string[]): Set<string> => {
    const reached = new Set<string>();
    const visit = (path: string): void => {
      if (reached.has(path)) return;
      reached.add(path);
      for (const { to } of graph.get(path) ?? []) visit(to);
    };
    starts.forEach(visit);
    return reached;
  };
  const missing = [...entries, ...ahead].filter((path) => !graph.has(path));
  const stale = ahead.filter((path) => {
    const others = ahead.filter((other) => other !== path);
    return graph.has(path) && reachedFrom([...entries, ...others]).has(path);
  });
  const all = reachedFrom([...entries, ...ahead]);
  return [
    ...missing.map((path) => `${path}: an entry that is not there`),
    ...stale.map((path) => `${path}: reached, so it is no longer ahead of what runs`),
    ...[...graph.keys()].filter((path) => !all.has(path)).map((path) => `${path}: unreached`),
  ];
}

/**
 * Modules that wait for each other when they are loaded: which of them runs first depends on who
 * is imported first, and a constant of the other may not be there yet.
 */
export function cyclesOfValues(sources: Sources): string[] {
  const graph = graphOf(sources);
  const finished = new Set<string>();
  const found: string[] = [];
  const visit = (path: string, trail: readonly string[]): void => {
    const seenAt = trail.indexOf(path);
    if (seenAt >= 0) {
      found.push([...trail.slice(seenAt), path].join(" → "));
      return;
    }
    if (finished.has(path)) return;
    for (const { to, runsFirst } of graph.get(path) ?? []) {
      if (runsFirst) visit(to, [...trail, path]);
    }
    finished.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found;
}

/**
 * What a layer may import apart from itself; layers that are not named here may import everything
 * below them. The doors (cli, gateways) know a database and its tables, not how they are made; the
 * cluster's messages know no memory.
 */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  cli: ["node", "gateways", "transfer", "database", "tools", "tables", "folder", "runtime"],
  gateways: ["database", "tables", "runtime"],
  transfer: ["database", "tables", "folder", "attach", "runtime"],
  node: ["database", "cluster", "protocols", "tables", "attach", "folder", "fabric", "runtime"],
  cluster: ["protocols", "tables", "fabric", "runtime"],
};

/**
 * Folder or file, and a layer that it imports although it may not. This list may only become
 * shorter: what is not needed any more is a complaint, too.
 */
export const EXCEPTIONS: readonly (readonly [from: string, to: string])[] = [
  // libc: gateways look whether a socket is in use.
  ["src/gateways/gateway-options.ts", "memory"],
  ["src/gateways/threads/worker-thread.ts", "memory"],
  // Pointers are values that a user sees.
  ["src/cli/work/shell/", "memory"],
  // Redis commands run on the stores themselves: no rows, no copies.
  ["src/gateways/redis/", "stores"],
  ["src/gateways/redis/", "engine"],
  ["src/gateways/redis/", "memory"],
  ["src/gateways/metrics/", "engine"],
  // Types of the settings that a thread gets, and of the executor that a node passes on.
  ["src/gateways/gateway-options.ts", "attach"],
  ["src/gateways/redis/", "attach"],
  ["src/node/", "engine"],
  ["src/cluster/", "engine"],
];

export function layersThatSkip(
  sources: Sources,
  mayImport = MAY_IMPORT,
  exceptions = EXCEPTIONS,
): string[] {
  const layerOf = (path: string): string => /^src\/([^/]+)\//.exec(path)?.[1] ?? "";
  const unused = new Set(exceptions);
  const complaints = new Set<string>();
  for (const [path, edges] of graphOf(sources)) {
    const layer = layerOf(path);
    const allowed = mayImport[layer];
    if (allowed === undefined) continue;
    for (const { to } of edges) {
      const target = layerOf(to);
      if (target === layer || allowed.includes(target)) continue;
      const exception = exceptions.find(([from, name]) => path.startsWith(from) && name === target);
      if (exception !== undefined) unused.delete(exception);
      else complaints.add(`${path}: ${layer} imports ${to}; it may import ${allowed.join(", ")}`);
    }
  }
  for (const [from, to] of unused) {
    complaints.add(`${from} imports ${to} no more: remove the exception from module-rules.ts`);
  }
  return [...complaints];
}
