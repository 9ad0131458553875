/**
 * How memory servers become one memory. Each gives itself a name when it starts (its *instance*), and has nothing then. The
 * first compute server that comes asks all of them for their names and proposes a *formation*: a number, and who is in
 * it. The first server decides between proposals, for it takes one only; the others take what it has taken. All that
 * compute servers do later says the number of the formation (claim.ts, catalogue.ts).
 *
 * A server that was started again has another name and is in no formation. What it held is lost. With copies of it elsewhere, the
 * others go on without that server (membership.ts). Otherwise part of every table is gone, and nothing goes on as if it were
 * there: SITU_MEMORY_LOST, until all servers have been started again and form a new, empty memory.
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_FORM } from "../kinds.ts";
import type { Routine } from "../message.ts";
import { answer, JsonMessage, requestOf, textOf, wholeOf } from "./json-message.ts";
import type { MemoryServer } from "./memory-server.ts";

/** What all servers of a memory must have in common. */
export interface MemorySettings {
  /** Execution threads that there may be, of all compute servers. */
  readonly threads: number;
  readonly journalWords: number;
  readonly overflowWords: number;
  readonly longestTransactionMs: number;
  /** Servers that have each row. */
  readonly copies: number;
}

/** What a server says of itself. */
export interface FormationState {
  readonly instance: string;
  /** 0 if it is in none. */
  readonly formation: number;
  readonly instances: readonly string[];
  /** Who is a member of it (membership.ts). */
  readonly epoch: number;
  readonly alive: readonly NodeId[];
  readonly settings: MemorySettings;
}

/** The largest number of a formation: it is a word of messages. */
export const MAX_FORMATION = 2 ** 31 - 1;
const MAX_INSTANCE_BYTES = 64;

export class Formation {
  readonly #server: MemoryServer;
  readonly #instance: string;
  readonly #settings: MemorySettings;
  #instances: readonly string[] = [];

  constructor(server: MemoryServer, instance: string, settings: MemorySettings) {
    this.#server = server;
    this.#instance = instance;
    this.#settings = settings;
  }

  /** Takes the first formation that it is asked to be in, and says which it is in. */
  serve(incoming: Incoming): void {
    const { formation, instances } = requestOf(incoming);
    const wanted = wholeOf(formation, "formation", 0, MAX_FORMATION);
    if (wanted !== 0 && this.#server.formation === 0) {
      const { servers } = this.#server.options;
      const names = Array.isArray(instances) ? instances : [];
      wholeOf(names.length, "the number of instances", servers.length, servers.length);
      const checked = names.map((name) => textOf(name, "an instance", MAX_INSTANCE_BYTES));
      if (checked[servers.indexOf(this.#server.id)] === this.#instance) {
        this.#instances = checked;
        this.#server.formation = wanted;
      }
    }
    const said: FormationState = {
      instance: this.#instance,
      formation: this.#server.formation,
      instances: this.#instances,
      epoch: this.#server.members.epoch,
      alive: this.#server.members.alive,
      settings: this.#settings,
    };
    answer(incoming, said);
  }
}

export interface Formed {
  readonly formation: number;
  readonly settings: MemorySettings;
}

/** At a compute server: `proposal` is a number of its own, for a memory that has none yet. */
export function* formMemory(servers: readonly NodeId[], proposal: number): Routine<Formed> {
  const found = yield* ask(servers, 0, []);
  const [first, ...rest] = found;
  const { settings } = first;
  const other = found.findIndex(
    (each) => JSON.stringify(each.settings) !== JSON.stringify(settings),
  );
  if (other >= 0) {
    throw new SituError(
      "SITU_CONFIG",
      `memory servers ${servers[0]} and ${servers[other]} were started with different settings: give all of them the same`,
    );
  }
  const instances = found.map(({ instance }) => instance);
  if (first.formation === 0 && rest.some(({ formation }) => formation !== 0)) {
    throw lost([servers[0]]);
  }
  const [chosen] = first.formation === 0 ? yield* ask([servers[0]], proposal, instances) : [first];
  const changed = servers.filter((_, i) => chosen.instances[i] !== instances[i]);
  if (changed.length > 0) throw lost(changed);
  const answers = yield* ask(servers.slice(1), chosen.formation, instances);
  const strangers = servers.filter(
    (_, i) => i > 0 && answers[i - 1].formation !== chosen.formation,
  );
  if (strangers.length > 0) throw lost(strangers);
  return { formation: chosen.formation, settings };
}

/** What a server says of itself, and nothing else. */
export function* stateOf(server: NodeId): Routine<FormationState> {
  return (yield* ask([server], 0, []))[0];
}

function* ask(
  servers: readonly NodeId[],
  formation: number,
  instances: readonly string[],
): Routine<FormationState[]> {
  const messages = servers.map(
    (server) => new JsonMessage<FormationState>(server, NAM_FORM, { formation, instances }),
  );
  if (messages.length > 0) yield messages;
  return messages.map((message) => message.answer);
}

function lost(servers: readonly NodeId[]): SituError {
  const which =
    servers.length === 1 ? `server ${servers[0]} was` : `servers ${servers.join(", ")} were`;
  return new SituError(
    "SITU_MEMORY_LOST",
    `memory ${which} started again, and what was held there is lost: restart all memory servers, and load the data again`,
  );
}
