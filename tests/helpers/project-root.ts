import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder with package.json, from here or from the compiled copy of this file. */
export function projectRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

/** A file of the build: workers and processes run plain Node. */
export function compiled(path: string): string {
  return join(projectRoot(), "dist", path);
}
