/**
 * Those who connect to this node, and the limit to their number. One too many is told
 * SITU_OVERLOADED; of a flood only so many at a time, the others are dropped by the operating
 * system's accept. To run out of file descriptors costs connections, never the process.
 */

import type { AddressInfo, Socket } from "node:net";
import { turn } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Responder } from "../exchange/responder.ts";
import { closed } from "./peer.ts";
import { type Accepting, listenAt } from "./sockets.ts";
import type { NodeAddress, TcpShared } from "./tcp-options.ts";
import { Visitor } from "./visitor.ts";

/** Beyond the limit, to be told that there are too many. */
const SURPLUS_SOCKETS = 64;

export class Listener {
  readonly #shared: TcpShared;
  readonly #responder: Responder;
  readonly #maxConnections: number;
  readonly #onClosed: ((connection: number) => void) | undefined;
  readonly #visitors = new Set<Visitor>();
  #accepting: Accepting | undefined;
  #lastConnection = 0;

  constructor(
    shared: TcpShared,
    responder: Responder,
    maxConnections: number,
    onClosed: ((connection: number) => void) | undefined,
  ) {
    this.#shared = shared;
    this.#responder = responder;
    this.#maxConnections = maxConnections;
    this.#onClosed = onClosed;
  }

  async listen(address: NodeAddress): Promise<void> {
    const { counters, tls: secure, handshakeTimeoutMs } = this.#shared;
    const refuse = (code: string): void => {
      counters.refused[code] = (counters.refused[code] ?? 0) + 1;
    };
    this.#accepting = await listenAt(address, {
      secure,
      handshakeTimeoutMs,
      maxSockets: this.#maxConnections + SURPLUS_SOCKETS,
      accepted: (socket) => {
        this.#accept(socket);
      },
      untrusted: (socket, why) => this.#accept(socket)?.link.refuse(why),
      dropped: () => {
        counters.overloaded++;
      },
      garbled: () => refuse("SITU_PROTOCOL"),
      failed: () => {
        counters.overloaded++;
      },
    });
  }

  address(): AddressInfo {
    const address = this.#accepting?.server.address();
    if (address === undefined || address === null || typeof address === "string") throw closed();
    return address;
  }

  /** Those who are being sent something get it, if they read; the others are cut off. */
  async close(): Promise<void> {
    const accepting = this.#accepting;
    this.#accepting = undefined;
    for (const visitor of [...this.#visitors]) visitor.link.finish(closed());
    if (accepting === undefined) return;
    const ended = new Promise<void>((resolve) => accepting.server.close(() => resolve()));
    await turn();
    for (const socket of accepting.sockets) if (socket.writableLength === 0) socket.destroy();
    await ended;
  }

  #accept(socket: Socket): Visitor | undefined {
    if (this.#accepting === undefined) {
      socket.destroy();
      return undefined;
    }
    const connection = ++this.#lastConnection;
    const visitor = new Visitor(this.#shared, socket, connection, this.#responder, (gone) =>
      this.#gone(gone),
    );
    this.#visitors.add(visitor);
    this.#shared.visitors = this.#visitors.size;
    if (this.#visitors.size <= this.#maxConnections) return visitor;
    visitor.link.refuse(
      new SituError("SITU_OVERLOADED", `the node has ${this.#maxConnections} connections already`),
    );
    return visitor;
  }

  #gone(visitor: Visitor): void {
    this.#visitors.delete(visitor);
    this.#shared.visitors = this.#visitors.size;
    if (!visitor.isReady) return;
    this.#shared.counters.connections--;
    this.#onClosed?.(visitor.from.connection);
  }
}
