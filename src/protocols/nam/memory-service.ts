/**
 * What a memory server does when it is asked by message, and by itself from time to time. Nothing of it is part of a
 * transaction: threads come and go, tables are made, old versions are moved.
 */

import type { Incoming } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { NAM_MOVER_CELLS } from "../../runtime/limits.ts";
import {
  NAM_CATALOGUE,
  NAM_CLAIM,
  NAM_ENTER,
  NAM_EXTENTS,
  NAM_FORM,
  NAM_MEMBERS,
} from "../kinds.ts";
import { Catalogue } from "./catalogue.ts";
import { serveClaim } from "./claim.ts";
import { Entrance } from "./enter.ts";
import { serveExtents } from "./extents.ts";
import { Formation, type MemorySettings } from "./formation.ts";
import { ServerMembership } from "./membership.ts";
import type { MemoryServer } from "./memory-server.ts";

export class MemoryService {
  readonly server: MemoryServer;
  readonly #formation: Formation;
  readonly #entrance: Entrance;
  readonly #catalogue: Catalogue;
  readonly #membership: ServerMembership;

  constructor(server: MemoryServer, instance: string, settings: MemorySettings) {
    this.server = server;
    this.#formation = new Formation(server, instance, settings);
    this.#entrance = new Entrance(server);
    this.#catalogue = new Catalogue(server);
    this.#membership = new ServerMembership(server);
  }

  serve(incoming: Incoming): void {
    switch (incoming.kind) {
      case NAM_FORM:
        this.#formation.serve(incoming);
        return;
      case NAM_ENTER:
        this.#entrance.serve(incoming);
        return;
      case NAM_CLAIM:
        serveClaim(this.server, incoming);
        return;
      case NAM_EXTENTS:
        serveExtents(this.server, incoming, (id) => this.#catalogue.isReady(id));
        return;
      case NAM_CATALOGUE:
        this.#catalogue.serve(incoming);
        return;
      case NAM_MEMBERS:
        this.#membership.serve(incoming);
        return;
      default:
        throw new SituError(
          "SITU_UNSUPPORTED",
          `a memory server does not serve messages of kind ${incoming.kind}: its clients commit by verbs`,
        );
    }
  }

  /** Moves what was written since, if `wake` calls for it. */
  wakeBy(wake: () => void): void {
    this.server.mover.onNoted = wake;
  }

  moveNoted(nowMs: number): void {
    this.server.mover.moveNoted(nowMs);
  }

  /** Moves what could not be moved before, for the overflow region was full; to be called every now and then. */
  tick(nowMs: number): void {
    this.server.mover.round(nowMs, NAM_MOVER_CELLS);
  }
}
