/** A stretch of network between a client and a node that can stall, and be cut. */

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class NetworkProxy {
  /** Connections that were made through it, ever. */
  connections = 0;
  /** Whether new connections are closed at once. */
  isClosed = false;
  targetPort: number;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isStalled = false;

  private constructor(targetPort: number) {
    this.targetPort = targetPort;
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  static async start(targetPort: number): Promise<NetworkProxy> {
    const proxy = new NetworkProxy(targetPort);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Nothing arrives any more, and nobody is told. */
  stall(): void {
    this.#isStalled = true;
    for (const socket of this.#sockets) socket.pause();
  }

  resume(): void {
    this.#isStalled = false;
    for (const socket of this.#sockets) socket.resume();
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket): void {
    this.connections++;
    if (this.isClosed) {
      near.destroy();
      return;
    }
    const far = connect({ host: "127.0.0.1", port: this.targetPort, noDelay: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ]) {
      this.#sockets.add(from);
      if (this.#isStalled) from.pause();
      from.on("data", (chunk) => to.write(chunk));
      from.on("error", () => {});
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
    if (this.#isStalled) for (const socket of [near, far]) socket.pause();
  }
}
