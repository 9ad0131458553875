/**
 * The catalogue (NAM-DB §5.3): which tables there are, with their schemas and the shapes of their extents. It is partitioned
 * by the hash of the name; the server of a name numbers its tables so that no two servers give the same number. Each server
 * counts the changes of its part in a word that is read by verb, so whoever has a copy knows when it is old.
 *
 * A table is made in three steps: it is *reserved*, which gives it a number; every server *allocates* its extents; it is
 * *ready*. Whoever opens a table that is not ready does what is left, because all steps can be done twice. If a
 * server has no room, the reservation is *forgotten* first and the extents are freed then: a number is not given twice, so
 * nobody can make that table ready any more. One who dies in between leaves extents that nobody uses.
 *
 * Before a table is used, all other members are told of it. If the server of a name is gone, the next member in its place has the entry.
 */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_NAME_BYTES, NAM_MAX_SCHEMA_BYTES, NAM_MAX_TABLES } from "../../runtime/limits.ts";
import { hashText } from "../../tables/partitions.ts";
import { NAM_CATALOGUE } from "../kinds.ts";
import type { Routine } from "../message.ts";
import { checkFormation } from "./claim.ts";
import { aliveOf, type NamDirectory } from "./compute-thread.ts";
import { allocate, free, shapeOf, type TableShape } from "./extents.ts";
import { MAX_FORMATION } from "./formation.ts";
import { answer, JsonMessage, requestOf, textOf, wholeOf } from "./json-message.ts";
import type { MemoryServer } from "./memory-server.ts";
import { CATALOGUE } from "./segments.ts";
import type { PairName } from "./verbs.ts";
import { ReadVerb } from "./verbs.ts";

export interface CatalogueEntry {
  readonly id: number;
  /** JSON, as other nodes keep it. */
  readonly schema: string;
  readonly shape: TableShape;
  readonly isReady: boolean;
}

/** The part of one server. */
export class Catalogue {
  readonly #server: MemoryServer;
  readonly #entries = new Map<string, CatalogueEntry>();
  #numbered = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  serve(incoming: Incoming): void {
    const request = requestOf(incoming);
    checkFormation(this.#server, wholeOf(request.formation, "formation", 0, MAX_FORMATION));
    switch (request.what) {
      case "reserve":
        answer(incoming, { entry: this.#reserve(request) });
        return;
      case "ready":
        answer(incoming, { entry: this.#ready(request) ?? null });
        return;
      case "forget":
        answer(incoming, { isForgotten: this.#forget(request) });
        return;
      case "know":
        this.#know(request);
        answer(incoming, {});
        return;
      case "list":
        answer(incoming, { entries: [...this.#entries.values()] });
        return;
      default:
        throw new SituError("SITU_PROTOCOL", "the catalogue does not know this request");
    }
  }

  /** Whether a table with this number is in use, as far as this server knows. */
  isReady(id: number): boolean {
    return [...this.#entries.values()].some((entry) => entry.id === id && entry.isReady);
  }

  #reserve({ schema, shape: given }: Record<string, unknown>): CatalogueEntry {
    const shape = shapeOf(given);
    const found = this.#entries.get(shape.name);
    if (found !== undefined) return found;
    if (this.#entries.size >= NAM_MAX_TABLES || this.#numbered >= NAM_MAX_TABLES) {
      throw new SituError(
        "SITU_FULL",
        `a memory server's catalogue has room for ${NAM_MAX_TABLES} tables`,
      );
    }
    const { servers } = this.#server.options;
    const entry = {
      id: this.#numbered++ * servers.length + servers.indexOf(this.#server.id),
      schema: textOf(schema, "schema", NAM_MAX_SCHEMA_BYTES),
      shape,
      isReady: false,
    };
    this.#entries.set(shape.name, entry);
    return entry;
  }

  #ready(request: Record<string, unknown>): CatalogueEntry | undefined {
    const { name, entry } = this.#entryOf(request);
    if (entry === undefined || entry.isReady) return entry;
    const ready = { ...entry, isReady: true };
    this.#entries.set(name, ready);
    this.#changed();
    return ready;
  }

  #forget(request: Record<string, unknown>): boolean {
    const { name, entry } = this.#entryOf(request);
    if (entry === undefined || entry.isReady) return false;
    this.#entries.delete(name);
    this.#changed();
    return true;
  }

  /** An entry of another server's. */
  #know({ entry: given }: Record<string, unknown>): void {
    const { id, schema, shape: givenShape } = Object(given) as Record<string, unknown>;
    const shape = shapeOf(givenShape);
    if (this.#entries.get(shape.name)?.isReady) return;
    const { servers } = this.#server.options;
    this.#entries.set(shape.name, {
      id: wholeOf(id, "id", 0, NAM_MAX_TABLES * servers.length),
      schema: textOf(schema, "schema", NAM_MAX_SCHEMA_BYTES),
      shape,
      isReady: true,
    });
    this.#changed();
  }

  #entryOf({ name, id }: Record<string, unknown>): {
    readonly name: string;
    readonly entry: CatalogueEntry | undefined;
  } {
    const text = textOf(name, "name", MAX_NAME_BYTES);
    const entry = this.#entries.get(text);
    return { name: text, entry: entry?.id === id ? entry : undefined };
  }

  #changed(): void {
    this.#server.region(CATALOGUE).i32[0]++;
  }
}

/** Finds a table by its name, or makes it. `shape` counts only for one who makes it. */
export function* openTable(
  directory: NamDirectory,
  schema: string,
  shape: TableShape,
): Routine<CatalogueEntry> {
  const { formation = 0 } = directory;
  const alive = aliveOf(directory);
  const to = serverOf(directory, shape.name);
  const entry = yield* makeTable(to, alive, formation, schema, shape);
  const others = alive.filter((server) => server !== to);
  const messages = others.map(
    (server) => new JsonMessage<object>(server, NAM_CATALOGUE, { what: "know", formation, entry }),
  );
  if (messages.length > 0) yield messages;
  for (const message of messages) void message.answer;
  return entry;
}

/** Where the entry of a name is: at its own server, or at the next member. */
function serverOf(directory: NamDirectory, name: string): NodeId {
  const { servers } = directory;
  const alive = aliveOf(directory);
  const first = (hashText(name) >>> 0) % servers.length;
  const inOrder = [...servers.slice(first), ...servers.slice(0, first)];
  return inOrder.find((server) => alive.includes(server)) as NodeId;
}

function* makeTable(
  to: NodeId,
  servers: readonly NodeId[],
  formation: number,
  schema: string,
  shape: TableShape,
): Routine<CatalogueEntry> {
  const { name } = shape;
  for (;;) {
    const asked = { what: "reserve", formation, schema, shape };
    const { entry } = yield* ask<{ readonly entry: CatalogueEntry }>(to, asked);
    if (entry.schema !== schema) throw otherSchema(name);
    if (entry.isReady) return entry;
    try {
      yield* allocate(servers, formation, entry.id, entry.shape);
    } catch (error) {
      if (error instanceof SituError && error.code === "SITU_FULL") {
        yield* giveUp(to, servers, formation, entry);
      }
      throw error;
    }
    const made = { what: "ready", formation, name, id: entry.id };
    const { entry: ready } = yield* ask<{ readonly entry: CatalogueEntry | null }>(to, made);
    if (ready !== null) return ready;
    // Another one found no room for it, and has forgotten it meanwhile.
    yield* free(servers, formation, entry.id);
  }
}

function* giveUp(
  to: NodeId,
  servers: readonly NodeId[],
  formation: number,
  { id, shape: { name } }: CatalogueEntry,
): Routine<void> {
  const request = { what: "forget", formation, name, id };
  const { isForgotten } = yield* ask<{ readonly isForgotten: boolean }>(to, request);
  if (isForgotten) yield* free(servers, formation, id);
}

/** All tables that are ready. */
export function* listTables(
  servers: readonly NodeId[],
  formation: number,
): Routine<CatalogueEntry[]> {
  const messages = servers.map(
    (server) =>
      new JsonMessage<{ readonly entries: readonly CatalogueEntry[] }>(server, NAM_CATALOGUE, {
        what: "list",
        formation,
      }),
  );
  yield messages;
  const found = new Map<number, CatalogueEntry>();
  for (const { answer: said } of messages) {
    for (const entry of said.entries) if (entry.isReady) found.set(entry.id, entry);
  }
  return [...found.values()];
}

/** How often each server's part has changed; one verb a server. */
export function* catalogueVersions(
  thread: PairName,
  servers: readonly NodeId[],
): Routine<readonly number[]> {
  const verbs = servers.map((server) => new ReadVerb(thread, server, CATALOGUE, 0, 1));
  yield verbs;
  for (const { error } of verbs) if (error !== undefined) throw error;
  return verbs.map(({ words }) => words[0]);
}

function* ask<Answer>(to: NodeId, request: object): Routine<Answer> {
  const message = new JsonMessage<Answer>(to, NAM_CATALOGUE, request);
  yield [message];
  return message.answer;
}

function otherSchema(name: string): SituError {
  return new SituError(
    "SITU_SCHEMA",
    `table ${name} of this cluster was made with another declaration: use the same one; memory servers do not migrate tables`,
  );
}
