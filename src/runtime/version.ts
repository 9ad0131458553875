/** The version of this package, as its package.json has it: above the bundle, or above the source. */

import { readFileSync } from "node:fs";

const PLACES = ["../package.json", "../../../package.json", "../../package.json"];

export function version(): string {
  for (const place of PLACES) {
    try {
      const text = readFileSync(new URL(place, import.meta.url), "utf8");
      const { name, version: found } = JSON.parse(text) as { name?: string; version?: string };
      if (name === "situ" && typeof found === "string") return found;
    } catch {
      // Not there: one of the others is.
    }
  }
  return "unknown";
}
