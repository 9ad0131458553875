/** Extents (NAM-DB §5.3): memory of a server that is given to a table, sized by hints, and taken back. Both sides of the messages. */

import type { Incoming, NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_NAME_BYTES,
  MAX_VERB_WORDS,
  NAM_MAX_CELLS,
  NAM_MAX_TABLES,
} from "../../runtime/limits.ts";
import { NAM_EXTENTS } from "../kinds.ts";
import type { Routine } from "../message.ts";
import { checkFormation } from "./claim.ts";
import { MAX_FORMATION } from "./formation.ts";
import { answer, JsonMessage, requestOf, textOf, wholeOf } from "./json-message.ts";
import type { MemoryServer } from "./memory-server.ts";

/** All that the extents of a table follow from. */
export interface TableShape {
  readonly name: string;
  readonly keyWords: number;
  readonly dataWords: number;
  readonly cells: number;
  readonly ring: number;
}

const MAX_RING = 64;

/** Throws SITU_PROTOCOL unless it is one. */
export function shapeOf(given: unknown): TableShape {
  const { name, keyWords, dataWords, cells, ring } = Object(given) as Record<string, unknown>;
  return {
    name: textOf(name, "name", MAX_NAME_BYTES),
    keyWords: wholeOf(keyWords, "keyWords", 1, MAX_VERB_WORDS / 4),
    dataWords: wholeOf(dataWords, "dataWords", 0, MAX_VERB_WORDS / 2),
    cells: wholeOf(cells, "cells", 1, NAM_MAX_CELLS),
    ring: wholeOf(ring, "ring", 1, MAX_RING),
  };
}

/** At a server. The extents of a table that is ready stay: others use it. */
export function serveExtents(
  server: MemoryServer,
  incoming: Incoming,
  isTableReady: (id: number) => boolean,
): void {
  const { what, formation, id, shape } = requestOf(incoming);
  checkFormation(server, wholeOf(formation, "formation", 0, MAX_FORMATION));
  const table = wholeOf(id, "id", 0, NAM_MAX_TABLES * server.options.servers.length);
  if (what === "allocate") server.allocate(table, shapeOf(shape));
  else if (what === "free") {
    if (isTableReady(table)) {
      server.guard.refused++;
      throw new SituError(
        "SITU_PERMISSION",
        `memory server ${server.id} does not free the extents of table ${table}, which is ready`,
      );
    }
    server.free(table);
  } else throw new SituError("SITU_PROTOCOL", "extents are allocated, or freed");
  answer(incoming, {});
}

/** The extents of a table at all servers. Throws the first error there was; some may have been allocated then. */
export function* allocate(
  servers: readonly NodeId[],
  formation: number,
  id: number,
  shape: TableShape,
): Routine<void> {
  yield* tellAll(servers, { what: "allocate", formation, id, shape });
}

export function* free(servers: readonly NodeId[], formation: number, id: number): Routine<void> {
  yield* tellAll(servers, { what: "free", formation, id });
}

function* tellAll(servers: readonly NodeId[], request: object): Routine<void> {
  const messages = servers.map((server) => new JsonMessage<object>(server, NAM_EXTENTS, request));
  yield messages;
  for (const message of messages) void message.answer;
}
