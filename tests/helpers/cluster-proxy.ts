/** A stretch of network between a client and a node that loses a reply and then breaks. */

import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { ClusterClient } from "../../src/cluster/client.ts";
import { clientView } from "../../src/cluster/view.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { CLIENT } from "../../src/fabric/fabric.ts";
import { openTcp } from "../../src/fabric/tcp/endpoint.ts";
import type { Table } from "../../src/index.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { uniqueId } from "../../src/runtime/random.ts";
import type { RealCluster } from "./cluster.ts";

export class CuttingProxy {
  /** Connections that were cut with a reply on its way. */
  cuts = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isArmed = false;

  private constructor(port: number) {
    this.#server = createServer({ noDelay: true }, (near) => this.#accept(near, port));
  }

  static async start(port: number): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(port);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** A client that reaches each node through its proxy. A configuration would tell it shorter ways. */
  static async connect(
    cluster: RealCluster,
    proxies: readonly CuttingProxy[],
    tables: readonly Table[],
  ): Promise<RemoteDatabase> {
    const { configuration } = cluster;
    const nodes = new Map(proxies.map(({ port }, id) => [id, { host: "127.0.0.1", port }]));
    const { configurationId, cluster: name } = configuration;
    const endpoint = await openTcp({ self: CLIENT, nodes, configurationId, cluster: name });
    const driver = new Driver(endpoint);
    const client = new ClusterClient(uniqueId(), clientView(uniqueId(), configuration, "rpc"));
    const connection = { endpoint, driver, client, timeoutMs: 120_000, readsByVerb: false };
    const db = new RemoteDatabase(connection);
    await driver.start(client.meet(), 120_000);
    await db.openTables(tables);
    cluster.keep(db);
    return db;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The next thing that the node says does not arrive, and the connection is gone. */
  cutNextReply(): void {
    this.#isArmed = true;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket, port: number): void {
    const far = connect({ host: "127.0.0.1", port, noDelay: true });
    for (const socket of [near, far]) {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk) => {
      if (this.#isArmed) {
        this.#isArmed = false;
        this.cuts++;
        near.destroy();
      } else near.write(chunk);
    });
  }
}
