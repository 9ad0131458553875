/** etcd's one key, in memory: for tests of what is done with it. */

import { EtcdGateway, NO_REVISION, type Revised } from "../../src/cluster/etcd/gateway.ts";

export class MemoryGateway extends EtcdGateway {
  readonly values = new Map<string, Revised>();
  /** Called before each swap: may throw, or change what is there. */
  before: (key: string, value: string) => void | Promise<void> = () => {};
  /** Called after each swap that has been done: an answer that is lost. */
  after: () => void = () => {};
  swaps = 0;
  #revision = 1;

  constructor() {
    super({ endpoints: ["http://memory:1"] });
  }

  override async get(key: string): Promise<Revised | undefined> {
    await Promise.resolve();
    return this.values.get(key);
  }

  override async replace(
    key: string,
    value: string,
    revision: string,
  ): Promise<{ isDone: boolean; isCertain: boolean }> {
    await this.before(key, value);
    const isDone = (this.values.get(key)?.revision ?? NO_REVISION) === revision;
    if (isDone) {
      this.set(key, value);
      this.after();
    }
    return { isDone, isCertain: true };
  }

  set(key: string, value: string): void {
    this.swaps++;
    this.values.set(key, { value, revision: String(++this.#revision) });
  }
}
