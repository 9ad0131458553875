/**
 * A machine of a simulation: its NICs and cores, each kind a line at so many counters, and whether it
 * is slow or stopped. A machine whose model has no times costs nothing.
 */

import type { Event, EventOwner } from "./events.ts";
import type { CoreModel, Hardware } from "./hardware.ts";

/** One line before `count` counters: who comes first is served first. */
export class Servers {
  readonly #freeAtUs: Float64Array;
  busyUs = 0;

  constructor(count: number) {
    this.#freeAtUs = new Float64Array(count);
  }

  /** One who comes now and takes so long: when it is done. Ask in the order of time. */
  serve(nowUs: number, timeUs: number): number {
    const free = this.#freeAtUs;
    let first = 0;
    for (let i = 1; i < free.length; i++) if (free[i] < free[first]) first = i;
    const doneUs = Math.max(nowUs, free[first]) + timeUs;
    free[first] = doneUs;
    this.busyUs += timeUs;
    return doneUs;
  }
}

/** What a NIC sees of a packet. */
export interface NicLoad {
  readonly messageBytes: number;
  readonly verbBytes: number;
  readonly verbs: number;
  /** Of the verbs, requests that write. */
  readonly writes: number;
}

export interface Slowness {
  /** What happens at the machine comes later, by a random time within these bounds. */
  readonly minUs: number;
  readonly maxUs: number;
}

export class Machine implements EventOwner {
  readonly id: number;
  readonly hardware: Hardware;
  readonly nics: Servers;
  /** For what comes: the same, unless the model has an engine for each direction. */
  readonly nicsIn: Servers;
  readonly cores: Servers;
  readonly nicCores: Servers;
  isStopped = false;
  slowness: Slowness | undefined;
  /** What would have happened while it was stopped. */
  readonly waiting: Event[] = [];
  /** Whether what happens here may settle promises. A node says it itself: SimulatedFabric.promised. */
  hasPrograms = true;

  constructor(id: number, hardware: Hardware) {
    this.id = id;
    this.hardware = hardware;
    this.nics = new Servers(hardware.nic.count);
    this.nicsIn = hardware.nic.isDuplex === true ? new Servers(hardware.nic.count) : this.nics;
    this.cores = new Servers(hardware.host.count);
    this.nicCores = new Servers(hardware.nicCores.count);
  }

  /** A packet passes the NIC. */
  passNic(nowUs: number, load: NicLoad, isComing: boolean): number {
    const { nic } = this.hardware;
    const { messageBytes, verbBytes, verbs, writes } = load;
    let timeUs = 0;
    if (messageBytes > 0) timeUs += Math.max(nic.messageUs, messageBytes / nic.bytesPerUs);
    if (verbs > 0) {
      const writesUs =
        isComing && nic.writeUs !== undefined ? writes * (nic.writeUs - nic.verbUs) : 0;
      const bytesUs = verbBytes / nic.bytesPerUs;
      timeUs += Math.max(verbs * nic.verbUs + writesUs, bytesUs) * nic.cacheMisses;
    }
    if (timeUs === 0) return nowUs;
    return (isComing ? this.nicsIn : this.nics).serve(nowUs, timeUs);
  }

  coresAt(place: "host" | "nic"): Servers {
    return place === "host" ? this.cores : this.nicCores;
  }

  modelAt(place: "host" | "nic"): CoreModel {
    return place === "host" ? this.hardware.host : this.hardware.nicCores;
  }
}
