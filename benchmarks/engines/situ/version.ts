// The version of the Situ that is measured: the one that `import "situ"` leads to.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Beside the bundle, which lies in dist/. */
export const bundleFolder = dirname(fileURLToPath(import.meta.resolve("situ")));

export function situVersion(): string {
  const file = join(dirname(bundleFolder), "package.json");
  return (JSON.parse(readFileSync(file, "utf8")) as { version: string }).version;
}

/** What tables may grow to: rows have headers, tables have room, and a run inserts. */
export function memoryBytesFor(userBytes: number): number {
  return 256 * 2 ** 20 + 8 * userBytes;
}
