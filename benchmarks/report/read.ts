// Finds and reads the result of an earlier run. What is wrong with it is said with what to do.
import { existsSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { firstLine } from "../harness/peers.ts";
import { resultVersion, type SuiteResult } from "./result.ts";

export const resultFile = "results.json";

/** `place`: a results.json, a folder that has one, or the name of a folder in benchmarks/results. */
export async function readResult(place: string): Promise<SuiteResult> {
  const file = findResult(place);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    throw new TypeError(
      `${file} is no JSON (${firstLine(error)}); was its run stopped? Run \`npm run bench\` again.`,
    );
  }
  return checked(value, file);
}

function findResult(place: string): string {
  const candidates = [resolve(place), ...resultFolders().map((folder) => join(folder, place))];
  for (const candidate of candidates) {
    if (!existsSync(candidate)) continue;
    if (!statSync(candidate).isDirectory()) return candidate;
    const file = join(candidate, resultFile);
    if (existsSync(file)) return file;
  }
  throw new TypeError(
    `there is no result at "${place}": it wants a folder with a ${resultFile}, the file itself, or ` +
      "the name of a folder in benchmarks/results",
  );
}

/** Walks up, because this file runs from dist/ and results stand beside the sources. */
function resultFolders(): string[] {
  const folders: string[] = [];
  let folder = dirname(fileURLToPath(import.meta.url));
  for (;;) {
    folders.push(join(folder, "benchmarks", "results"));
    const parent = dirname(folder);
    if (parent === folder) return folders;
    folder = parent;
  }
}

/** As much of the shape as comparing relies on: the file may be anybody's. */
function checked(value: unknown, file: string): SuiteResult {
  if (!isObject(value) || !("version" in value)) {
    throw new TypeError(`${file} is no result of \`npm run bench\`: it has no version`);
  }
  if (value.version !== resultVersion) {
    throw new TypeError(
      `${file} has version ${String(value.version)}, and this is a Situ that reads version ` +
        `${resultVersion}: run the benchmark again with this one, or compare with the one that wrote it`,
    );
  }
  const isWhole =
    ["machine", "engines", "cells", "bars"].every((name) => Array.isArray(value[name])) &&
    typeof value.date === "string" &&
    (value.cells as unknown[]).every(
      (cell) =>
        isObject(cell) &&
        typeof cell.id === "string" &&
        typeof cell.title === "string" &&
        isObject(cell.load) &&
        Array.isArray(cell.entries) &&
        cell.entries.every(isEntry),
    );
  if (!isWhole) {
    throw new TypeError(
      `${file} lacks parts of a result, or they are of another kind; run \`npm run bench\` again`,
    );
  }
  return value as unknown as SuiteResult;
}

function isEntry(entry: unknown): boolean {
  if (!isObject(entry) || typeof entry.engine !== "string") return false;
  const { throughput, latency } = entry;
  const isSummary =
    isObject(throughput) &&
    [throughput.median, throughput.min, throughput.max].every((part) => typeof part === "number");
  const hasPercentiles = isObject(latency) && Array.isArray(latency.percentiles);
  return (throughput === undefined || isSummary) && (latency === undefined || hasPercentiles);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
