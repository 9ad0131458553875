/**
 * How a client learns of a later configuration. Nobody tells it: it asks when something is the matter, that is,
 * when a request is lost or refused. It asks a few members at a time, and where none answers the addresses that
 * it was opened with; one asks for all who wait. While all is well, it asks nothing.
 *
 * A later configuration replaces the view whole, in one turn: the number in all frames, the addresses, where
 * data lies. Numbers only grow, so whichever node answers, the client never goes back.
 */

import type { ClusterClient } from "../../cluster/client.ts";
import { Describe, type Description } from "../../cluster/describe.ts";
import { View } from "../../cluster/view.ts";
import { CLIENT, type ConfigurationId, DESCRIBE_KIND, type NodeId } from "../../fabric/fabric.ts";
import type { NodeAddress } from "../../fabric/tcp/tcp-options.ts";
import type { Driver } from "../../protocols/driver.ts";
import { OPEN_TABLE } from "../../protocols/kinds.ts";
import { isLost, once } from "../../protocols/message.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { sleep } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  FOLLOW_ANSWER_MS,
  FOLLOW_ASKED,
  FOLLOW_FOR_MS,
  FOLLOW_MAX_MS,
  FOLLOW_MIN_MS,
  FOLLOW_SILENT_LOOKS,
} from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";

export interface FollowerOptions {
  readonly client: ClusterClient;
  readonly driver: Driver;
  readonly random: Random;
  /** Changes the addresses of the endpoint. */
  setNodes(nodes: ReadonlyMap<NodeId, NodeAddress>): void;
  /** Asks the addresses that the client was opened with. */
  askSeeds(): Promise<Description>;
}

export class Follower {
  readonly #options: FollowerOptions;
  readonly #waiting = new Set<() => void>();
  #hintedMs = Number.NEGATIVE_INFINITY;
  #isFollowing = false;
  #isClosed = false;
  /** What was lost last, and is not answered yet. */
  #trouble: SituError | undefined;

  constructor(options: FollowerOptions) {
    this.#options = options;
    options.driver.troubled = ({ kind }, why) => {
      // A node that does not know the tables yet may be away for long; but one that refuses them has moved on.
      const isMeeting = kind === OPEN_TABLE && why.code !== "SITU_STALE_CONFIGURATION";
      if (kind === DESCRIBE_KIND || isMeeting || !isPassing(why)) return;
      this.#trouble = why;
      this.#hint();
    };
  }

  get #view(): View {
    return this.#options.client.view.current;
  }

  /** Why something may take so long just now, if it is known. */
  get trouble(): SituError | undefined {
    return this.#isFollowing ? this.#trouble : undefined;
  }

  /** Returns when there is a later configuration than this one, or after some time. */
  async later(than: ConfigurationId, patienceMs: number): Promise<void> {
    if (this.#view.configurationId > than || this.#isClosed) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#waiting.delete(end);
        resolve();
      };
      const timer = this.#options.driver.endpoint.clock.after(patienceMs, end);
      this.#waiting.add(end);
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#waiting) end();
  }

  #hint(): void {
    this.#hintedMs = this.#options.driver.endpoint.clock.nowMs();
    if (this.#isFollowing || this.#isClosed) return;
    this.#isFollowing = true;
    this.#follow().catch((error: unknown) => passOver(error, "looking for a later configuration"));
  }

  async #follow(): Promise<void> {
    const { clock } = this.#options.driver.endpoint;
    let pauseMs = FOLLOW_MIN_MS;
    let silentLooks = 0;
    try {
      while (!this.#isClosed && clock.nowMs() - this.#hintedMs <= FOLLOW_FOR_MS) {
        silentLooks = (await this.#look()) ? 0 : silentLooks + 1;
        if (silentLooks >= FOLLOW_SILENT_LOOKS && !this.#isClosed) await this.#askSeeds();
        await sleep(pauseMs, clock);
        pauseMs = Math.min(2 * pauseMs, FOLLOW_MAX_MS);
      }
    } finally {
      this.#isFollowing = false;
    }
  }

  /** Asks some members; returns when one has answered, or none does. Answers that come later count, too. */
  #look(): Promise<boolean> {
    const { driver, random } = this.#options;
    const left = [...this.#view.nodes];
    const asked: NodeId[] = [];
    while (asked.length < FOLLOW_ASKED && left.length > 0) {
      asked.push(...left.splice(random.below(left.length), 1));
    }
    const answers = asked.map(async (node) => {
      const message = new Describe(node);
      await driver.start(once(message), FOLLOW_ANSWER_MS);
      if (message.description === undefined) throw message.error;
      this.#heard(message.description);
    });
    return Promise.any(answers).then(
      () => true,
      () => false,
    );
  }

  async #askSeeds(): Promise<void> {
    try {
      this.#heard(await this.#options.askSeeds());
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
    }
  }

  #heard({ configuration, protocol }: Description): void {
    const { client, driver, setNodes } = this.#options;
    const { configurationId, nodes } = configuration;
    if (configurationId <= this.#view.configurationId || this.#isClosed) return;
    driver.endpoint.configurationId = configurationId;
    client.adopt(new View({ self: CLIENT, instance: client.id, configuration, protocol }));
    setNodes(new Map(nodes.map(({ id, host, port }) => [id, { host, port }])));
    // What was the matter before is not any more, unless it is seen again.
    this.#hintedMs = Number.NEGATIVE_INFINITY;
    this.#trouble = undefined;
    for (const end of [...this.#waiting]) end();
  }
}

/** Whether an error may be over when the configuration has changed, and says that nothing was done. */
export function isPassing(error: unknown): error is SituError {
  return error instanceof SituError && (isLost(error) || error.code === "SITU_STALE_CONFIGURATION");
}
