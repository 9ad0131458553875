/** Finds the command that a request names, without making a string of it. */

import type { Request } from "../resp/request.ts";
import type { Command } from "./command.ts";

export class Registered {
  readonly command: Command;
  /** Its own, for counters; a subcommand has its parent's. */
  readonly number: number;
  /** As errors and CLIENT LIST name it: "client|id". */
  readonly fullName: string;
  readonly name: Buffer;
  readonly runsInStore: boolean;
  /** Needs no transaction. */
  readonly isRead: boolean;
  readonly needsNoPassword: boolean;
  readonly run: Command["run"];
  readonly subcommands: readonly Registered[] | undefined;
  readonly #arity: number;

  constructor(command: Command, number: number, parent = "") {
    this.command = command;
    this.number = number;
    this.fullName = parent === "" ? command.name : `${parent}|${command.name}`;
    this.name = Buffer.from(command.name, "latin1");
    this.runsInStore = command.runs !== "session";
    this.isRead = command.runs === "read";
    this.needsNoPassword = command.flags.includes("no_auth");
    this.run = command.run;
    this.subcommands = command.subcommands?.map(
      (each) => new Registered(each, number, command.name),
    );
    this.#arity = command.arity;
  }

  takes(count: number): boolean {
    return this.#arity >= 0 ? count === this.#arity : count >= -this.#arity;
  }
}

/** Twice as many places as there will ever be commands, and a power of two. */
const PLACES = 1_024;

export class Registry {
  readonly all: readonly Registered[];
  readonly #places: (Registered | undefined)[] = new Array(PLACES).fill(undefined);

  constructor(commands: readonly Command[]) {
    this.all = commands.map((command, number) => new Registered(command, number));
    for (const each of this.all) {
      let place = hashOf(each.name, 0, each.name.length);
      while (this.#places[place] !== undefined) place = (place + 1) & (PLACES - 1);
      this.#places[place] = each;
    }
  }

  /** The command of a request, or undefined. */
  find(request: Request): Registered | undefined {
    const { bytes } = request;
    const start = request.starts[0];
    const end = request.ends[0];
    let place = hashOf(bytes, start, end);
    for (;;) {
      const found = this.#places[place];
      if (found === undefined || isNamed(found.name, bytes, start, end)) return found;
      place = (place + 1) & (PLACES - 1);
    }
  }
}

/** The subcommand that the request names, of a command that has some. */
export function subcommandOf(parent: Registered, request: Request): Registered | undefined {
  const { bytes, starts, ends } = request;
  return parent.subcommands!.find(({ name }) => isNamed(name, bytes, starts[1], ends[1]));
}

/** The same for both cases of a letter. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let i = start; i < end; i++) hash = (Math.imul(hash, 31) + (bytes[i] | 0x20)) | 0;
  return (hash ^ (hash >>> 10)) & (PLACES - 1);
}

function isNamed(name: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== name.length) return false;
  for (let i = 0; i < name.length; i++) {
    const code = bytes[start + i];
    if ((code >= 0x41 && code <= 0x5a ? code | 0x20 : code) !== name[i]) return false;
  }
  return true;
}
