/** Files in memory, without faults: for tests of what is in the files, not of the disk. */

import type { StoreFile, StoreFiles } from "../../src/folder/files.ts";

function missing(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`ENOENT: ${name}`), { code: "ENOENT" });
}

interface Content {
  bytes: Uint8Array;
  length: number;
}

class MemoryFile implements StoreFile {
  readonly name: string;
  readonly #content: Content;
  #closed = false;

  constructor(name: string, content: Content) {
    this.name = name;
    this.#content = content;
  }

  write(parts: readonly Uint8Array[], at: number): number {
    this.#check();
    let end = at;
    for (const part of parts) end += part.length;
    this.#grow(end);
    let place = at;
    for (const part of parts) {
      this.#content.bytes.set(part, place);
      place += part.length;
    }
    return end - at;
  }

  read(into: Uint8Array, at: number): number {
    this.#check();
    const { bytes, length } = this.#content;
    const found = bytes.subarray(Math.min(at, length), Math.min(at + into.length, length));
    into.set(found);
    return found.length;
  }

  sync(): void {
    this.#check();
  }

  size(): number {
    return this.#content.length;
  }

  truncate(bytes: number): void {
    this.#grow(bytes);
    this.#content.bytes.fill(0, bytes);
    this.#content.length = bytes;
  }

  close(): void {
    this.#check();
    this.#closed = true;
  }

  #check(): void {
    if (this.#closed) throw new Error(`${this.name} is closed`);
  }

  #grow(bytes: number): void {
    const content = this.#content;
    if (bytes > content.bytes.length) {
      const larger = new Uint8Array(Math.max(bytes, 2 * content.bytes.length));
      larger.set(content.bytes);
      content.bytes = larger;
    }
    content.length = Math.max(content.length, bytes);
  }
}

export class MemoryFiles implements StoreFiles {
  readonly place = "memory";
  readonly #files = new Map<string, Content>();

  create(name: string, bytes: number): StoreFile {
    const content = { bytes: new Uint8Array(Math.max(bytes, 1024)), length: bytes };
    this.#files.set(name, content);
    return new MemoryFile(name, content);
  }

  open(name: string): StoreFile {
    return new MemoryFile(name, this.#content(name));
  }

  has(name: string): boolean {
    return this.#files.has(name);
  }

  list(folder: string): string[] {
    const prefix = `${folder}/`;
    return [...this.#files.keys()]
      .filter((name) => name.startsWith(prefix))
      .map((name) => name.slice(prefix.length))
      .sort();
  }

  makeFolder(): void {}

  rename(from: string, to: string): void {
    this.#files.set(to, this.#content(from));
    this.#files.delete(from);
  }

  remove(name: string): void {
    this.#content(name);
    this.#files.delete(name);
  }

  syncFolder(): void {}

  /** The bytes of a file, to look at and to change. */
  bytesOf(name: string): Uint8Array {
    const { bytes, length } = this.#content(name);
    return bytes.subarray(0, length);
  }

  #content(name: string): Content {
    const content = this.#files.get(name);
    if (content === undefined) throw missing(name);
    return content;
  }
}
