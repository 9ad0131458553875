/**
 * cluster.json in the folder of a node's store: of which cluster it is which node. It holds for one store,
 * which it names: a folder whose store was lost or deleted is not that node any more, for it would claim to
 * have rows that are gone. A store without a log is another one whenever its memory is.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Membership } from "../cluster/etcd/forming.ts";
import { readIdentity, writeJson } from "../folder/store-files.ts";
import { SituError } from "../runtime/errors.ts";

const NAME = "cluster.json";

interface Written extends Membership {
  readonly store: string;
}

export class MembershipFile {
  readonly #path: string;
  readonly #store: string;

  /** Of a store that this process has open. */
  constructor(path: string) {
    this.#path = path;
    const { id, logId, memoryId = "" } = readIdentity(path) ?? { id: "" };
    this.#store = logId === undefined ? `${id} ${memoryId}` : id;
  }

  load(): Membership | undefined {
    const file = join(this.#path, NAME);
    if (!existsSync(file)) return undefined;
    const { store, ...membership } = this.#read(file);
    if (store === this.#store) return membership;
    if (!membership.isMember) return undefined;
    const { id, cluster } = membership;
    const why = `${this.#path} was node ${id} of cluster ${cluster}, but its store was lost or replaced`;
    throw new SituError("SITU_CONFIG", `${why}; remove ${file} to start it as a new node`);
  }

  save(membership: Membership): void {
    writeJson(this.#path, NAME, { ...membership, store: this.#store });
  }

  #read(file: string): Written {
    try {
      const found = JSON.parse(readFileSync(file, "utf8")) as Partial<Written>;
      const { cluster, identity, id, instance, isMember, hasLeft, store } = found;
      const texts = [cluster, identity, instance, store];
      if (texts.every((each) => typeof each === "string") && Number.isInteger(id)) {
        const known = { cluster, identity, id, instance, store, isMember: isMember === true };
        return { ...known, ...(hasLeft === true ? { hasLeft } : {}) } as Written;
      }
    } catch (cause) {
      throw new SituError("SITU_CONFIG", `${file} cannot be read`, { cause });
    }
    throw new SituError("SITU_CONFIG", `${file} is damaged: bring it back from a backup`);
  }
}
