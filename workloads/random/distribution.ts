/** Which of so many items a draw gives; and the two simple ways: all alike, and some hotter. */

import type { Stream } from "./stream.ts";

export interface Distribution {
  /** Draws give 0 to items - 1. */
  readonly items: number;
  draw(stream: Stream): number;
}

export class Uniform implements Distribution {
  readonly items: number;

  constructor(items: number) {
    this.items = items;
  }

  draw(stream: Stream): number {
    return stream.below(this.items);
  }
}

/**
 * The first items get a part of all draws, the others the rest; alike among themselves. As YCSB's
 * HotspotIntegerGenerator, and H-Store's SmallBank: 90 % of the draws on 4 % of the items.
 */
export class Hotspot implements Distribution {
  readonly items: number;
  readonly hotItems: number;
  readonly #drawsPart: number;

  constructor(items: number, itemsPart: number, drawsPart: number) {
    this.items = items;
    this.hotItems = Math.floor(items * itemsPart);
    if (this.hotItems < 1 || this.hotItems >= items) {
      throw new RangeError(`${itemsPart} of ${items} items leaves no hot or no cold ones`);
    }
    this.#drawsPart = drawsPart;
  }

  draw(stream: Stream): number {
    if (stream.unit() < this.#drawsPart) return stream.below(this.hotItems);
    return this.hotItems + stream.below(this.items - this.hotItems);
  }
}
