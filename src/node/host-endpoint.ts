/** The fabric as the host's thread sees it: all goes through the NIC worker, which has the sockets. */

import { freshCounters } from "../fabric/counters.ts";
import type { Clock, ConfigurationId, Endpoint, NodeId, Request } from "../fabric/fabric.ts";
import { realClock } from "../runtime/clock.ts";
import type { HostLink } from "./host-link.ts";

export class HostEndpoint implements Endpoint {
  readonly self: NodeId;
  readonly clock: Clock = realClock;
  /** All that the host sends is counted at the NIC as well. */
  readonly counters = freshCounters();
  readonly #link: HostLink;

  constructor(self: NodeId, link: HostLink) {
    this.self = self;
    this.#link = link;
  }

  get configurationId(): ConfigurationId {
    return this.#link.configurationId;
  }

  set configurationId(configurationId: ConfigurationId) {
    this.#link.configurationId = configurationId;
  }

  send(to: NodeId, request: Request): void {
    this.counters.requestsSent++;
    this.#link.send(to, 0, request);
  }

  async close(): Promise<void> {
    this.#link.close();
  }
}
