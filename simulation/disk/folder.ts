/**
 * The names of a disk that may lose power: as they are, and as they are on disk. Creations, renames
 * and removals in a folder become lasting in their order, at the latest with `sync`; a rename is done
 * or not. A folder that is lost takes its files with it.
 */

import type { Random } from "../../src/runtime/random.ts";
import type { FileContent } from "./blocks.ts";

type NameChange =
  | { readonly kind: "link"; readonly name: string; readonly content: FileContent }
  | { readonly kind: "unlink"; readonly name: string }
  | { readonly kind: "rename"; readonly name: string; readonly to: string }
  | { readonly kind: "folder"; readonly name: string };

/** The folder of a name, "" for the place itself. */
export function folderOf(name: string): string {
  return name.includes("/") ? name.slice(0, name.lastIndexOf("/")) : "";
}

class NameTable {
  readonly files: Map<string, FileContent>;
  readonly folders: Set<string>;

  constructor(files: Iterable<[string, FileContent]> = [], folders: Iterable<string> = [""]) {
    this.files = new Map(files);
    this.folders = new Set(folders);
  }

  apply(change: NameChange): void {
    const { files } = this;
    if (change.kind === "folder") this.folders.add(change.name);
    else if (change.kind === "link") files.set(change.name, change.content);
    else if (change.kind === "unlink") files.delete(change.name);
    else {
      const content = files.get(change.name);
      files.delete(change.name);
      if (content !== undefined) files.set(change.to, content);
    }
  }
}

export class Names {
  readonly #now: NameTable;
  readonly #durable: NameTable;
  readonly #changes: NameChange[] = [];

  constructor(files: Iterable<[string, FileContent]> = [], folders: Iterable<string> = [""]) {
    this.#now = new NameTable(files, folders);
    this.#durable = new NameTable(this.#now.files, this.#now.folders);
  }

  get files(): ReadonlyMap<string, FileContent> {
    return this.#now.files;
  }

  hasFolder(folder: string): boolean {
    return this.#now.folders.has(folder);
  }

  change(change: NameChange): void {
    this.#now.apply(change);
    this.#changes.push(change);
  }

  sync(folder: string): void {
    const left: NameChange[] = [];
    for (const change of this.#changes) {
      if (folderOf(change.name) === folder) this.#durable.apply(change);
      else left.push(change);
    }
    this.#changes.splice(0, this.#changes.length, ...left);
  }

  /** All names as they are, with files that `copy` makes. */
  copied(copy: (content: FileContent) => FileContent): Names {
    return withCopies(this.#now, copy);
  }

  /** What is found when the power comes back: of each folder's changes some from the first on. */
  afterPowerLoss(random: Random, copy: (content: FileContent) => FileContent): Names {
    const found = new NameTable(this.#durable.files, this.#durable.folders);
    const perFolder = new Map<string, NameChange[]>();
    for (const change of this.#changes) {
      const folder = folderOf(change.name);
      perFolder.set(folder, [...(perFolder.get(folder) ?? []), change]);
    }
    for (const changes of perFolder.values()) {
      const kept = random.below(changes.length + 1);
      for (const change of changes.slice(0, kept)) found.apply(change);
    }
    for (const name of [...found.files.keys()]) {
      if (!found.folders.has(folderOf(name))) found.files.delete(name);
    }
    return withCopies(found, copy);
  }
}

function withCopies(
  { files, folders }: NameTable,
  copy: (from: FileContent) => FileContent,
): Names {
  const copies = new Map<string, FileContent>();
  for (const [name, content] of files) copies.set(name, copy(content));
  return new Names(copies, folders);
}
