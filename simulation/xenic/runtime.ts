/**
 * What a server of Xenic runs on: the bus between its NIC and its host, and the way of messages. Without a model a message leaves and
 * is handled at once; models of hardware (model/) give each its time and place.
 */

import type { NodeId } from "../../src/fabric/fabric.ts";
import type { XenicMessage } from "../../src/protocols/xenic/message.ts";
import type { Bus } from "./bus.ts";

export interface Runtime extends Bus {
  /** `send` hands the message to the network; those of one turn to one node are one packet. */
  post(to: NodeId, message: XenicMessage, send: () => void): void;
  /** `deliver` hands a message that has come to the NIC's program. */
  receive(from: NodeId, message: XenicMessage, deliver: () => void): void;
  /** A timer has run out, at the NIC. */
  timer(run: () => void): void;
}

export class PlainRuntime implements Runtime {
  readonly read: Bus["read"];
  readonly write: Bus["write"];
  readonly toHost: Bus["toHost"];
  readonly toNic: Bus["toNic"];

  constructor(bus: Bus) {
    this.read = (words, done) => bus.read(words, done);
    this.write = (words, done) => bus.write(words, done);
    this.toHost = (words, run) => bus.toHost(words, run);
    this.toNic = (words, run) => bus.toNic(words, run);
  }

  post(_to: NodeId, _message: XenicMessage, send: () => void): void {
    send();
  }

  receive(_from: NodeId, _message: XenicMessage, deliver: () => void): void {
    deliver();
  }

  timer(run: () => void): void {
    run();
  }
}
