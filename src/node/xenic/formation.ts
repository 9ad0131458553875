/**
 * How fixed nodes become one cluster, once. Each start of a node has a name. Nodes tell each other theirs until each knows all; then
 * they are a *formation*, whose number all messages carry. What a node holds is gone when it ends, so nobody can take its
 * place, not even the same node started anew: it is told so (SITU_MEMORY_LOST), and the others refuse what would need it.
 * They go on looking after each other: who does not answer for a while cannot be reached, until it answers again.
 */

import { type Endpoint, type Incoming, MEMBERSHIP_KIND, type NodeId } from "../../fabric/fabric.ts";
import { every } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { XENIC_BEAT_MISSES, XENIC_BEAT_MS } from "../../runtime/limits.ts";
import { hashText } from "../../tables/partitions.ts";

/** Of a node that is in no formation yet; the number of none is as small. */
export const UNFORMED = 1;

interface Said {
  readonly instance: string;
  /** Names of the procedures that may run at the NIC: the same at all nodes, since they know them by number. */
  readonly procedures: readonly string[];
  readonly backups: number;
  readonly nodes: number;
}

export interface FormationListener {
  /** All nodes are known. */
  formed(configurationId: number): void;
  /** This node cannot be part of the cluster. */
  refused(error: SituError): void;
}

export class Formation {
  readonly #endpoint: Pick<Endpoint, "self" | "send">;
  readonly #others: readonly NodeId[];
  readonly #said: Said;
  readonly #listener: FormationListener;
  readonly #instances = new Map<NodeId, string>();
  readonly #missed = new Map<NodeId, number>();
  readonly #lost = new Set<NodeId>();
  readonly #beating: { cancel(): void };
  isFormed = false;

  constructor(
    endpoint: Pick<Endpoint, "self" | "send">,
    others: readonly NodeId[],
    said: Said,
    listener: FormationListener,
  ) {
    this.#endpoint = endpoint;
    this.#others = others;
    this.#said = said;
    this.#listener = listener;
    this.#instances.set(endpoint.self, said.instance);
    this.#beating = every(XENIC_BEAT_MS, () => this.#beat());
    this.#beat();
    this.#formIfAll();
  }

  /** Nodes that are not known yet. */
  get missing(): NodeId[] {
    return this.#others.filter((node) => !this.#instances.has(node));
  }

  /** Why a node cannot take part now; undefined if it can. */
  whyNot(node: NodeId): SituError | undefined {
    if (this.#lost.has(node)) return memoryLost(node);
    if ((this.#missed.get(node) ?? 0) < XENIC_BEAT_MISSES) return undefined;
    return new SituError(
      "SITU_UNREACHABLE",
      `node ${node} does not answer: until it does, nothing can be written, and rows whose primary it is cannot be read`,
    );
  }

  /** Another node tells its name. */
  serve(incoming: Incoming): void {
    const { node } = incoming.from;
    if (!this.#others.includes(node)) {
      throw new SituError("SITU_PERMISSION", "only nodes of the cluster form it");
    }
    const said = JSON.parse(incoming.body.text()) as Said;
    const error = this.#hear(node, said);
    if (error !== undefined) throw error;
    incoming.reply().text(JSON.stringify(this.#said));
  }

  close(): void {
    this.#beating.cancel();
  }

  #beat(): void {
    for (const node of this.#others) {
      this.#endpoint.send(node, {
        kind: MEMBERSHIP_KIND,
        encode: (out) => out.text(JSON.stringify(this.#said)),
        replied: (reply) => {
          this.#missed.set(node, 0);
          const error = this.#hear(node, JSON.parse(reply.text()) as Said);
          if (error !== undefined && !this.isFormed) this.#listener.refused(error);
        },
        failed: (error) => {
          const isTold = error.code === "SITU_MEMORY_LOST" || error.code === "SITU_CONFIG";
          if (isTold && !this.isFormed) this.#listener.refused(error);
          else if (this.isFormed) this.#missed.set(node, (this.#missed.get(node) ?? 0) + 1);
        },
      });
    }
  }

  /** Why it cannot be part of this cluster, if so. */
  #hear(node: NodeId, said: Said): SituError | undefined {
    const known = this.#instances.get(node);
    if (known !== undefined && known !== said.instance && this.isFormed) {
      this.#lost.add(node);
      return memoryLost(node);
    }
    const { procedures, backups, nodes } = this.#said;
    if (said.procedures.join() !== procedures.join()) {
      return different(
        node,
        `runs the procedures ${list(said.procedures)} at its NIC`,
        list(procedures),
      );
    }
    if (said.backups !== backups || said.nodes !== nodes) {
      const theirs = `has ${said.nodes} nodes and ${said.backups} backups in its file`;
      return different(node, theirs, `${nodes} and ${backups}`);
    }
    this.#instances.set(node, said.instance);
    this.#formIfAll();
    return undefined;
  }

  #formIfAll(): void {
    if (this.isFormed || this.missing.length > 0) return;
    this.isFormed = true;
    const names = [...this.#instances].sort(([a], [b]) => a - b).map(([, name]) => name);
    this.#listener.formed(UNFORMED + 1 + (hashText(names.join()) >>> 2));
  }
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "none" : names.join(", ");
}

function different(node: NodeId, theirs: string, ours: string): SituError {
  return new SituError(
    "SITU_CONFIG",
    `node ${node} ${theirs}, and this one ${ours}: start all with the same`,
  );
}

function memoryLost(node: NodeId): SituError {
  return new SituError(
    "SITU_MEMORY_LOST",
    `node ${node} was started anew, and what it held is lost: with the protocol "xenic" rows are in memory only. Stop all nodes of the cluster, start them again, and load the data`,
  );
}
