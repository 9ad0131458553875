/**
 * Cores that run a polling loop (Xenic §4.3.2): each takes a burst of what has come, handles all of it, and then sends what
 * the handlers have to send. So outputs of a busy core leave together, those of an idle one at once: how much is
 * aggregated follows from the load.
 *
 * A handler runs when its burst begins; what it sends leaves when the burst ends, which is after the time of all inputs and outputs.
 */

import type { Machine } from "../../fabric/machine.ts";
import type { World } from "../../fabric/world.ts";

/** What the handlers of a burst want: run at its end. It says how much core time it takes. */
export interface Output {
  readonly coreUs: number;
  leave(): void;
}

export interface BurstSink {
  /** The handlers of a burst have run: what is to leave. */
  outputsOf(core: number): readonly Output[];
}

/** What handlers compute beside the protocol: they add to it, and the core that runs them pays. */
export interface Charge {
  us: number;
}

interface Input {
  readonly coreUs: number;
  readonly run: () => void;
}

interface Core {
  readonly number: number;
  inputs: Input[];
  isBusy: boolean;
}

export class BurstCores {
  /** The core whose handlers run, or undefined. */
  current: number | undefined;
  busyUs = 0;
  readonly #world: World;
  readonly #machine: Machine;
  readonly #cores: readonly Core[];
  readonly #burst: number;
  readonly #sink: BurstSink;
  readonly #charge: Charge;
  #next = 0;

  constructor(
    world: World,
    machine: Machine,
    model: { readonly cores: number; readonly burst: number },
    sink: BurstSink,
    charge: Charge,
  ) {
    this.#charge = charge;
    this.#world = world;
    this.#machine = machine;
    this.#burst = model.burst;
    this.#sink = sink;
    this.#cores = Array.from({ length: model.cores }, (_, number) => ({
      number,
      inputs: [],
      isBusy: false,
    }));
  }

  get count(): number {
    return this.#cores.length;
  }

  /** Flows are spread over cores by the NIC's hardware: in turn. */
  nextCore(): number {
    this.#next = (this.#next + 1) % this.#cores.length;
    return this.#next;
  }

  /** Something for a core to handle. */
  give(core: number, coreUs: number, run: () => void): void {
    const to = this.#cores[core];
    to.inputs.push({ coreUs, run });
    if (to.isBusy) return;
    to.isBusy = true;
    this.#world.at(this.#world.nowUs, () => this.#turn(to), this.#machine);
  }

  #turn(core: Core): void {
    const inputs =
      core.inputs.length <= this.#burst ? core.inputs : core.inputs.slice(0, this.#burst);
    core.inputs = core.inputs.length <= this.#burst ? [] : core.inputs.slice(this.#burst);
    if (inputs.length === 0) {
      core.isBusy = false;
      return;
    }
    let coreUs = 0;
    this.#charge.us = 0;
    this.current = core.number;
    for (const input of inputs) {
      coreUs += input.coreUs;
      input.run();
    }
    this.current = undefined;
    coreUs += this.#charge.us;
    const outputs = this.#sink.outputsOf(core.number);
    for (const output of outputs) coreUs += output.coreUs;
    this.busyUs += coreUs;
    const end = (): void => {
      for (const output of outputs) output.leave();
      this.#turn(core);
    };
    this.#world.at(this.#world.nowUs + coreUs, end, this.#machine);
  }
}
