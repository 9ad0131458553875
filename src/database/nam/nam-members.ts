/**
 * What a compute server does about memory servers that die (protocols/nam/membership.ts). It asks all members now and then how they are. One
 * that has not answered several times in a row, or was started again, is given up: the others decide to go on without it,
 * what had begun is settled, and everybody enters the memory anew. Whoever is refused because the members have changed looks at once.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Driver } from "../../protocols/driver.ts";
import type { NamDirectory } from "../../protocols/nam/compute-thread.ts";
import type { Members } from "../../protocols/nam/members.ts";
import { changeMembers, type MembersState, membersStates } from "../../protocols/nam/membership.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_BEAT_MISSES, NAM_BEAT_MS, NAM_SERVER_MISSES } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";

export interface NamMembersOptions {
  readonly driver: Driver;
  readonly directory: NamDirectory & { readonly members: Members };
  readonly random: Random;
  /** Makes all tables known that these servers know: a journal may be about any. */
  refreshTables(servers: readonly NodeId[]): Promise<void>;
  /** The members are others: nothing can be done with threads of before. */
  moved(): Promise<void>;
}

/** To decide and to recover; tried again after that. */
const CHANGE_MS = NAM_BEAT_MS * NAM_BEAT_MISSES;

export class NamMembers {
  readonly #options: NamMembersOptions;
  readonly #misses = new Map<NodeId, number>();
  #looking: Promise<void> | undefined;

  constructor(options: NamMembersOptions) {
    this.#options = options;
  }

  /** Asks all members; to be called regularly. */
  round(): void {
    const { driver, directory } = this.#options;
    const { epoch, alive } = directory.members;
    for (const server of alive) {
      driver.run(
        membersStates(directory, [server]),
        NAM_BEAT_MS,
        ([state]) => {
          this.#misses.set(server, 0);
          if (state.epoch > epoch) void this.look();
        },
        (error) => this.#missed(server, error),
      );
    }
  }

  /** Finds out whether the members have changed, and goes on without those that do not answer. Does not throw. */
  look(): Promise<void> {
    this.#looking ??= this.#change().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  #missed(server: NodeId, error: unknown): void {
    if (!(error instanceof SituError) || error.code === "SITU_CLOSED") return;
    const isLost = error.code === "SITU_MEMORY_LOST";
    const misses = isLost ? NAM_SERVER_MISSES : (this.#misses.get(server) ?? 0) + 1;
    this.#misses.set(server, misses);
    if (misses >= NAM_SERVER_MISSES) void this.look();
  }

  async #change(): Promise<void> {
    const { directory, moved } = this.#options;
    const { members } = directory;
    const suspects = members.alive.filter(
      (server) => (this.#misses.get(server) ?? 0) >= NAM_SERVER_MISSES,
    );
    try {
      const state = await this.#start(suspects);
      members.trouble = undefined;
      if (state.epoch <= members.epoch) return;
      members.become(state.epoch, state.alive);
      this.#misses.clear();
      await moved();
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      // Another one has died, or somebody else is at it: the next round looks again.
      if (suspects.length > 0 && isFinal(error)) members.trouble = error;
    }
  }

  async #start(suspects: readonly NodeId[]): Promise<MembersState> {
    const { driver, directory, random, refreshTables } = this.#options;
    const changing = (): Promise<MembersState> =>
      driver.start(
        changeMembers(directory, suspects, (below) => random.below(below)),
        CHANGE_MS,
      );
    try {
      return await changing();
    } catch (error) {
      // A journal is about a table that this process does not know.
      if (!(error instanceof SituError) || error.code !== "SITU_UNKNOWN_TABLE") throw error;
      const { alive } = directory.members;
      await refreshTables(alive.filter((server) => !suspects.includes(server)));
      return await changing();
    }
  }
}

/** Too few are left, or not all rows. */
function isFinal({ code }: SituError): boolean {
  return code === "SITU_UNREACHABLE" || code === "SITU_MEMORY_LOST";
}
