/** The files of this project, by their paths as in src/engine/run.ts. */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { projectRoot } from "../helpers/project-root.ts";
import type { Project } from "./document-rules.ts";

const root = projectRoot();

export const project: Project = {
  exists: (path) => existsSync(join(root, path)),
  text: (path) => readFileSync(join(root, path), "utf8"),
};

/** All files in a folder that end so; none if the folder is not there. */
export function filesIn(folder: string, ending: string): string[] {
  if (!project.exists(folder)) return [];
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .sort();
}
