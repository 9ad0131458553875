/** A NIC's link to the switch: packets wait for those before them, in each direction. */

import { Servers } from "../../fabric/machine.ts";
import type { LinkModel } from "./hardware.ts";

export class Link {
  bytesOut = 0;
  packetsOut = 0;
  readonly #model: LinkModel;
  readonly #out = new Servers(1);
  readonly #in = new Servers(1);

  constructor(model: LinkModel) {
    this.#model = model;
  }

  /** How many packets a payload needs at least. */
  packetsFor(payloadBytes: number): number {
    return Math.max(1, Math.ceil(payloadBytes / this.#model.payloadBytes));
  }

  /** When they have left. */
  leave(nowUs: number, packets: number, payloadBytes: number): number {
    const bytes = packets * this.#model.headerBytes + payloadBytes;
    this.bytesOut += bytes;
    this.packetsOut += packets;
    return this.#out.serve(nowUs, this.#timeOf(packets, bytes));
  }

  /** When they are there. */
  arrive(nowUs: number, packets: number, payloadBytes: number): number {
    const bytes = packets * this.#model.headerBytes + payloadBytes;
    return this.#in.serve(nowUs, this.#timeOf(packets, bytes));
  }

  #timeOf(packets: number, bytes: number): number {
    return Math.max(packets * this.#model.packetUs, bytes / this.#model.bytesPerUs);
  }
}
