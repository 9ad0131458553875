/**
 * The socket of the lease thread: datagrams, written into buffers that are made once. The addresses of
 * the nodes are looked up once for each configuration, so that a slow name server delays no renewal.
 */

import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { isIPv6 } from "node:net";
import type { NodeAddress } from "../cluster/configuration.ts";
import type { LeaseDatagrams } from "../cluster/membership/lease-datagrams.ts";
import type { LeaseMessage } from "../cluster/membership/leases.ts";
import type { NodeId } from "../fabric/fabric.ts";
import { MAX_LEASE_MESSAGE_BYTES, MAX_LEASE_MESSAGES } from "../runtime/limits.ts";

interface Place {
  readonly address: string;
  readonly port: number;
}

export class LeaseSocket {
  readonly #datagrams: LeaseDatagrams;
  readonly #socket: Socket;
  readonly #family: 4 | 6;
  readonly #free = Array.from({ length: MAX_LEASE_MESSAGES }, () =>
    Buffer.alloc(MAX_LEASE_MESSAGE_BYTES),
  );
  #places = new Map<NodeId, Place>();

  private constructor(datagrams: LeaseDatagrams, socket: Socket, family: 4 | 6) {
    this.#datagrams = datagrams;
    this.#socket = socket;
    this.#family = family;
  }

  static async open(
    datagrams: LeaseDatagrams,
    listen: { readonly host: string; readonly port: number },
    received: (message: LeaseMessage) => void,
  ): Promise<LeaseSocket> {
    const { address } = await lookup(listen.host);
    const family = isIPv6(address) ? 6 : 4;
    const socket = createSocket(family === 6 ? "udp6" : "udp4");
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject);
      socket.bind({ address, port: listen.port, exclusive: true }, () => {
        socket.off("error", reject);
        resolve();
      });
    });
    // What cannot be sent is lost; leases are made for that.
    socket.on("error", () => {});
    socket.on("message", (bytes) => {
      const message = datagrams.decode(bytes);
      if (message !== undefined) received(message);
    });
    return new LeaseSocket(datagrams, socket, family);
  }

  get port(): number {
    return this.#socket.address().port;
  }

  /** The nodes that can be sent to from now on; one whose name is not known yet is added when it is. */
  know(nodes: readonly NodeAddress[]): void {
    const places = new Map<NodeId, Place>();
    const before = this.#places;
    this.#places = places;
    for (const { id, host, port } of nodes) {
      // Until the name has been looked up, as far as it was known before.
      const known = before.get(id);
      if (known !== undefined) places.set(id, { ...known, port });
      lookup(host, { family: this.#family }).then(
        ({ address }) => places.set(id, { address, port }),
        () => {},
      );
    }
  }

  send(to: NodeId, message: LeaseMessage): void {
    const place = this.#places.get(to);
    const buffer = place && this.#free.pop();
    if (place === undefined || buffer === undefined) return;
    const length = this.#datagrams.encode(buffer, to, message);
    if (length === 0) {
      this.#free.push(buffer);
      return;
    }
    this.#socket.send(buffer, 0, length, place.port, place.address, () => this.#free.push(buffer));
  }

  close(): void {
    this.#socket.close();
  }
}
