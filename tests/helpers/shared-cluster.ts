/** A cluster of real processes for several tests of a file. */

import { afterAll, onTestFailed } from "vitest";
import { type ClusterOptions, RealCluster } from "./cluster.ts";

/**
 * A cluster for several tests, one after the other: to start a node takes most of a second of processor time. Tests
 * use rows of their own. After one that failed, the next one gets a new cluster.
 */
export class SharedCluster {
  readonly #options: ClusterOptions;
  #cluster: RealCluster | undefined;

  constructor(options: ClusterOptions = {}) {
    this.#options = options;
    afterAll(() => this.#remove());
  }

  /** For a test that begins: all nodes run, and no client is left of the test before. */
  async forTest(): Promise<RealCluster> {
    onTestFailed(() => this.#remove());
    this.#cluster ??= await RealCluster.start(this.#options);
    await this.#cluster.closeClients();
    for (const node of this.#cluster.nodes) if (!node.isRunning) await node.start();
    return this.#cluster;
  }

  async #remove(): Promise<void> {
    const cluster = this.#cluster;
    this.#cluster = undefined;
    await cluster?.remove();
  }
}
