/**
 * Which memory servers there are, and where copies lie. A table has as many ranges as servers were configured. The copies of range r are
 * at servers r, r + 1, … of the configured order, and what a server holds of a table lies on *shelves*: shelf k
 * of server s is its copy of range s - k. So the place of a copy never changes, whoever is gone:
 *
 *            shelf 0    shelf 1            with two copies of each range
 *   server 0   range 0    range 2
 *   server 1   range 1    range 0          if server 0 is gone, range 0 is served from here
 *   server 2   range 2    range 1
 *
 * The first copy whose server is a member is the *primary*: records are read and locked there. The others are written by
 * commits and read by nobody, until the primary is gone. The vector of timestamps has the copies of range 0.
 *
 * Members only become fewer (membership.ts): a server that comes back has lost its memory. So a primary that is a member
 * stays the primary.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { assert } from "../../runtime/assert.ts";
import type { SituError } from "../../runtime/errors.ts";

export interface CopyPlace {
  readonly server: NodeId;
  readonly shelf: number;
}

export class Members {
  /** As configured, whether they are there or not. */
  readonly servers: readonly NodeId[];
  readonly copies: number;
  /** Why nothing goes on, at a compute server that knows: too many are gone. */
  trouble: SituError | undefined;
  #epoch = 1;
  #alive: readonly NodeId[];
  #copiesOf: (readonly CopyPlace[])[] = [];

  constructor(servers: readonly NodeId[], copies = 1) {
    assert(copies >= 1 && copies <= servers.length, "each copy is at a server of its own");
    this.servers = servers;
    this.copies = copies;
    this.#alive = servers;
  }

  /** Counts the changes. */
  get epoch(): number {
    return this.#epoch;
  }

  get alive(): readonly NodeId[] {
    return this.#alive;
  }

  /** So many have to agree on who is a member. */
  get majority(): number {
    return Math.floor(this.servers.length / 2) + 1;
  }

  become(epoch: number, alive: readonly NodeId[]): void {
    this.trouble = undefined;
    this.#epoch = epoch;
    this.#alive = alive;
    this.#copiesOf = [];
  }

  has(server: NodeId): boolean {
    return this.#alive.includes(server);
  }

  /** Where a range is now: the primary comes first. Empty if all of its copies are gone. */
  copiesOf(range: number): readonly CopyPlace[] {
    this.#copiesOf[range] ??= this.#chainOf(range).filter(({ server }) => this.has(server));
    return this.#copiesOf[range];
  }

  /** The range that lies on a shelf of a server. */
  rangeOf(server: NodeId, shelf: number): number {
    const { length } = this.servers;
    return (this.servers.indexOf(server) - shelf + length) % length;
  }

  /** Whether there is a copy of everything among these. */
  isWhole(servers: readonly NodeId[]): boolean {
    return this.servers.every((_, range) =>
      this.#chainOf(range).some(({ server }) => servers.includes(server)),
    );
  }

  #chainOf(range: number): CopyPlace[] {
    return Array.from({ length: this.copies }, (_, shelf) => ({
      server: this.servers[(range + shelf) % this.servers.length],
      shelf,
    }));
  }
}
