/**
 * The store of configurations of a simulated cluster, as etcd would be: one value that is compared and
 * swapped. What goes wrong with it: it is slow; it is gone for a while; a request reaches it and the answer
 * does not come back; a request reaches it long after its sender has given up.
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import type { Swapped } from "../../src/cluster/membership/membership-host.ts";
import type { Random } from "../../src/runtime/random.ts";
import { between, happens } from "../fabric/streams.ts";
import type { World } from "../fabric/world.ts";

/** Its client gives up after this time. */
const TIMEOUT_US = 500_000;
const USUAL_US = 5_000;
/** So long a request may be on its way. */
export const LATEST_REQUEST_US = 4 * TIMEOUT_US;

export class SimulatedStore {
  current: Configuration;
  isGone = false;
  isSlow = false;
  /** How often a request or an answer is lost, or late. */
  mishaps = 0;
  readonly #world: World;
  readonly #random: Random;

  constructor(world: World, first: Configuration) {
    this.#world = world;
    this.#random = world.random("store");
    this.current = first;
  }

  /** `done` is called once, by the caller's own client. */
  swap(previous: Configuration, next: Configuration, done: (outcome: Swapped) => void): void {
    this.#request(
      () => {
        const { configurationId } = this.current;
        if (configurationId !== previous.configurationId) return "refused";
        this.current = next;
        return "swapped";
      },
      (outcome) => done(outcome ?? "unknown"),
    );
  }

  read(done: (newest: Configuration | undefined) => void): void {
    this.#request(() => this.current, done);
  }

  #request<T>(serve: () => T, answer: (outcome: T | undefined) => void): void {
    const world = this.#world;
    let isOver = false;
    const end = (outcome: T | undefined): void => {
      if (isOver) return;
      isOver = true;
      answer(outcome);
    };
    world.at(world.nowUs + TIMEOUT_US, () => end(undefined));
    const random = this.#random;
    const isLate = happens(random, this.mishaps);
    const isLost = happens(random, this.mishaps);
    const wayUs = isLate ? between(random, 0, LATEST_REQUEST_US) : this.#wayUs();
    world.at(world.nowUs + wayUs, () => {
      if (this.isGone) return;
      const outcome = serve();
      if (!isLost) world.at(world.nowUs + this.#wayUs(), () => end(outcome));
    });
  }

  #wayUs(): number {
    return between(this.#random, 200, this.isSlow ? TIMEOUT_US / 2 : USUAL_US);
  }
}
