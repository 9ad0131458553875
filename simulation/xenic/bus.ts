/**
 * The bus between a NIC and its host: DMA transfers and messages both ways. This one has a time for each, and some chance, so that
 * transfers overtake each other. With a scale of 0 they take no time, for those who count the delays of messages.
 */

import type { Random } from "../../src/runtime/random.ts";
import type { Machine } from "../fabric/machine.ts";
import type { World } from "../fabric/world.ts";

export interface Bus {
  read(words: number, done: () => void): void;
  write(words: number, done: () => void): void;
  toHost(words: number, run: () => void): void;
  toNic(words: number, run: () => void): void;
}

const READ_US = 1.3;
const WRITE_US = 0.6;
const CROSSING_US = 1;

export class PlainBus implements Bus {
  readonly #world: World;
  readonly #machine: Machine;
  readonly #random: Random;
  readonly #scale: number;

  constructor(world: World, machine: Machine, scale = 1) {
    this.#scale = scale;
    this.#world = world;
    this.#machine = machine;
    this.#random = world.random(`bus-${machine.id}`);
  }

  read(_words: number, done: () => void): void {
    this.#later(READ_US, done);
  }

  write(_words: number, done: () => void): void {
    this.#later(WRITE_US, done);
  }

  toHost(_words: number, run: () => void): void {
    this.#later(CROSSING_US, run);
  }

  toNic(_words: number, run: () => void): void {
    this.#later(CROSSING_US, run);
  }

  #later(us: number, run: () => void): void {
    const chance = this.#random.below(1_000) / 1_000;
    this.#world.at(this.#world.nowUs + us * this.#scale * (1 + chance), run, this.#machine);
  }
}
