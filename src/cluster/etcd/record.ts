/**
 * What etcd holds of a cluster: one key, with the configuration as a whole, or the nodes that are forming
 * the cluster. It is only ever replaced by compare-and-swap of its revision. If the answer to a swap is
 * lost, the random `nonce` in the value says whether it was ours that counts.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_NODES } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { type Configuration, configurationOf, packConfiguration } from "../configuration.ts";
import { type EtcdGateway, NO_REVISION } from "./gateway.ts";

/** Nodes that have come together so far: a configuration with fewer nodes than it needs, and no placement. */
export type Forming = Omit<Configuration, "placement" | "manager">;

export interface ClusterRecord {
  /** Made with the cluster: another one of the same name has another identity. */
  readonly identity: string;
  readonly nonce: string;
  readonly forming?: Forming;
  readonly configuration?: Configuration;
}

export interface ReadRecord {
  readonly record: ClusterRecord | undefined;
  readonly revision: string;
}

export class EtcdRecord {
  readonly key: string;
  readonly gateway: EtcdGateway;

  constructor(gateway: EtcdGateway, cluster: string) {
    this.gateway = gateway;
    this.key = `/situ/${cluster}/configuration`;
  }

  async read(): Promise<ReadRecord> {
    const found = await this.gateway.get(this.key);
    if (found === undefined) return { record: undefined, revision: NO_REVISION };
    return { record: this.#recordOf(found.value), revision: found.revision };
  }

  /** Replaces the record that was read; says whether it did. */
  async replace({ revision }: ReadRecord, next: Omit<ClusterRecord, "nonce">): Promise<boolean> {
    const nonce = uniqueId();
    const { identity, forming, configuration } = next;
    const value = JSON.stringify({
      identity,
      nonce,
      ...(forming === undefined ? {} : { forming: forming }),
      ...(configuration === undefined ? {} : { configuration: packConfiguration(configuration) }),
    });
    const { isDone, isCertain } = await this.gateway.replace(this.key, value, revision);
    if (isDone || isCertain) return isDone;
    const { record } = await this.read();
    return record?.nonce === nonce;
  }

  #recordOf(text: string): ClusterRecord {
    const damaged = (why: string, cause?: unknown): SituError => {
      const what = `the key ${this.key} in etcd is damaged: ${why}`;
      const then = "restore etcd from a backup, or write back an earlier revision of the key";
      return new SituError("SITU_CONFIG", `${what}; ${then}`, { cause });
    };
    let given: Partial<Record<keyof ClusterRecord, unknown>>;
    try {
      given = (JSON.parse(text) ?? {}) as typeof given;
    } catch (cause) {
      throw damaged("its value is not JSON", cause);
    }
    const { identity, nonce, forming, configuration } = given;
    if (typeof identity !== "string" || typeof nonce !== "string")
      throw damaged("it names no cluster");
    if ((forming === undefined) === (configuration === undefined)) {
      throw damaged("it has no configuration, or two");
    }
    try {
      return forming === undefined
        ? { identity, nonce, configuration: configurationOf(configuration, "its configuration") }
        : { identity, nonce, forming: formingOf(forming) };
    } catch (cause) {
      throw damaged((cause as Error).message, cause);
    }
  }
}

function formingOf(given: unknown): Forming {
  const { backups } = (given ?? {}) as Record<string, unknown>;
  if (!Number.isInteger(backups) || (backups as number) < 0 || (backups as number) >= MAX_NODES) {
    throw new SituError("SITU_CONFIG", "its backups are no number");
  }
  // There are not as many nodes yet.
  const checked = configurationOf({ ...(given as object), backups: 0 }, "its nodes");
  return { ...checked, backups: backups as number };
}
