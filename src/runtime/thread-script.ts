/** Where the bundled scripts of threads are: beside the package's own, wherever this code runs from. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Seen from the bundle, from the compiled source, and from the source. */
const PLACES = [".", "../..", "../../dist"];

export function threadScript(name: string): string {
  for (const place of PLACES) {
    const file = fileURLToPath(new URL(`${place}/${name}`, import.meta.url));
    if (existsSync(file)) return file;
  }
  throw new Error(`${name} is not beside the package: was it built?`);
}
