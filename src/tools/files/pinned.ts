/**
 * Files that stay readable although somebody may remove them: all of them are opened at the
 * beginning. What has been opened is seen as a folder of its own, in which nothing comes and goes;
 * only the last segment of a running log goes on growing.
 */

import type { StoreFile, StoreFiles } from "../../folder/files.ts";

export class PinnedFiles implements StoreFiles {
  readonly place: string;
  readonly #opened = new Map<string, StoreFile>();

  /** Opens the files of these names. ENOENT if one of them is gone. */
  constructor(files: StoreFiles, names: readonly string[]) {
    this.place = files.place;
    try {
      for (const name of names) this.#opened.set(name, files.open(name, true));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** What is opened here is closed by `close` alone. */
  open(name: string): StoreFile {
    const file = this.#opened.get(name);
    if (file === undefined) {
      throw Object.assign(new Error(`ENOENT: ${name} is not pinned`), { code: "ENOENT" });
    }
    return {
      name,
      write: refuse,
      read: (into, at) => file.read(into, at),
      sync: refuse,
      size: () => file.size(),
      truncate: refuse,
      close: () => {},
    };
  }

  has(name: string): boolean {
    return this.#opened.has(name);
  }

  list(folder: string): string[] {
    const start = `${folder}/`;
    const inside = [...this.#opened.keys()].filter((name) => name.startsWith(start));
    return inside.map((name) => name.slice(start.length)).sort();
  }

  create(): StoreFile {
    return refuse();
  }

  makeFolder(): void {
    refuse();
  }

  rename(): void {
    refuse();
  }

  remove(): void {
    refuse();
  }

  syncFolder(): void {
    refuse();
  }

  close(): void {
    for (const file of this.#opened.values()) file.close();
    this.#opened.clear();
  }
}

function refuse(): never {
  throw new Error("pinned files are only read");
}
