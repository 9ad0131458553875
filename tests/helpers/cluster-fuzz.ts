/**
 * Garbage for the service of a node: real messages, as a small workload sends them, with some of
 * their words changed. They are served directly, so that whatever is thrown is seen here.
 */

import { SimulatedClient } from "../../simulation/cluster/client.ts";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { NodeService, type ServiceOptions } from "../../src/cluster/service.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { ADMINISTER_KIND, type Incoming, type Ticket } from "../../src/fabric/fabric.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import * as kinds from "../../src/protocols/kinds.ts";
import { COORDINATORS_PER_NODE } from "../../src/protocols/names.ts";
import { MESSAGES } from "../../src/protocols/phases/phases.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Table } from "../../src/tables/table.ts";

export interface Recorded {
  readonly kind: number;
  readonly words: Int32Array;
}

const NODES = 3;
const PASS_US = 20_000;
const TIMEOUT_MS = 60_000;
/** A node that takes part in nothing: what is sent in its name does not disturb the others. */
const STRANGER = 9;
export const STRANGER_COORDINATOR = STRANGER * COORDINATORS_PER_NODE;

/** Notes all that is served at a node. */
class RecordingService extends NodeService {
  readonly #heard: Recorded[];

  constructor(options: ServiceOptions, heard: Recorded[]) {
    super(options);
    this.#heard = heard;
  }

  override serve(incoming: Incoming): void {
    const { kind, body } = incoming;
    // Not what the driver serves to its own node: it has no frame, and comes with other words.
    this.#heard.push({ kind, words: body.views.i32.slice(body.at, body.end) });
    super.serve(incoming);
  }
}

export class FuzzedCluster {
  readonly fabric: SimulatedFabric;
  readonly nodes: readonly SimulatedNode[];
  readonly placement: ClusterPlacement;
  readonly recorded: Recorded[] = [];
  readonly codes = new Map<string, number>();
  replies = 0;
  readonly #configuration;
  #clients = 0;

  constructor(seed: number) {
    this.fabric = new SimulatedFabric({ seed });
    const members = Array.from({ length: NODES }, (_, id) => ({ id, host: "fuzzed", port: id }));
    this.#configuration = configurationOf({ nodes: members }, "test");
    this.placement = new ClusterPlacement(this.#configuration);
    this.nodes = members.map(({ id }) => {
      const makeService = (options: ServiceOptions): NodeService =>
        new RecordingService(options, this.recorded);
      return new SimulatedNode(this.fabric, id, this.#configuration, { makeService });
    });
  }

  async client(tables: readonly Table[]): Promise<RemoteDatabase> {
    const client = new SimulatedClient(this.fabric, {
      number: this.#clients++,
      configuration: this.#configuration,
      timeoutMs: TIMEOUT_MS,
    });
    await this.run(() => client.arrive(tables));
    return client.db;
  }

  async run<T>(program: () => Promise<T>): Promise<T> {
    let isOver = false;
    const running = program().finally(() => {
      isOver = true;
    });
    running.catch(() => {});
    if (await this.fabric.settle(() => isOver)) return running;
    throw new Error("the cluster is at rest, and the program is not over");
  }

  /** Serves some words at a node. Whatever is no SituError is thrown. */
  serve(node: number, kind: number, words: Int32Array, isFromNode: boolean): void {
    const incoming = new GarbageIncoming(kind, words, isFromNode ? STRANGER : -100, (code) => {
      if (code === undefined) this.replies++;
      else this.codes.set(code, (this.codes.get(code) ?? 0) + 1);
    });
    try {
      this.nodes[node].service.serve(incoming);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      incoming.fail(error);
      return;
    }
    incoming.served();
  }

  /** A while, but not until all is at rest: a COMMIT that was garbage is tried until its ABORT. */
  pass(): void {
    this.fabric.run(this.fabric.nowUs + PASS_US);
  }

  async close(): Promise<void> {
    this.fabric.run();
    for (const node of this.nodes) await node.close();
  }
}

class GarbageIncoming implements Incoming, Ticket {
  readonly from: Incoming["from"];
  readonly kind: number;
  readonly body: Reader;
  readonly isWanted = true;
  readonly #out = new Writer();
  readonly #ended: (code: string | undefined) => void;
  #isDeferred = false;

  constructor(kind: number, words: Int32Array, node: number, ended: (code?: string) => void) {
    this.from = { node, connection: 1 };
    this.kind = kind;
    const copy = new Writer();
    copy.words(words, 0, words.length);
    // Another message may follow in the same buffer: whoever reads too far sees it.
    for (let i = 0; i < 16; i++) copy.word(0x7fff_0000 + i);
    this.body = new Reader(copy.views).reset(copy.views, 0, words.length);
    this.#ended = ended;
  }

  reply(): Writer;
  reply(write: (out: Writer) => void): void;
  reply(write?: (out: Writer) => void): Writer | undefined {
    if (write === undefined) return this.#out;
    write(new Writer());
    this.#ended(undefined);
    return undefined;
  }

  defer(): Ticket {
    this.#isDeferred = true;
    return this;
  }

  fail(error: SituError): void {
    this.#ended(error.code);
  }

  served(): void {
    if (!this.#isDeferred) this.#ended(undefined);
  }
}

export const ALL_KINDS = MESSAGES.map(({ kind }) => kind).filter((kind) => kind < ADMINISTER_KIND);

const NAME_WORDS = 6;
const NAMED = new Set([kinds.READ_LOCK, kinds.LOCK, kinds.LOG, kinds.COMMIT, kinds.ABORT]);

/** Where the transaction's name begins in a message, if it has one. */
export function nameAt({ kind, words }: Recorded): number {
  return NAMED.has(kind) && words.length >= NAME_WORDS ? 0 : -1;
}

/** The same message of another transaction: of a coordinator that nobody else is. */
export function renamed(message: Recorded, sequence: number): Recorded {
  const at = nameAt(message);
  if (at < 0) return message;
  const words = message.words.slice();
  const wide = (index: number, value: number): void => {
    words.set(new Int32Array(new Float64Array([value]).buffer), index);
  };
  words[at] = STRANGER_COORDINATOR;
  wide(2, sequence);
  wide(4, 1);
  return { kind: message.kind, words };
}

const INTERESTING = [
  0,
  1,
  -1,
  2,
  3,
  7,
  16,
  255,
  256,
  1 << 16,
  0x7fff_ffff,
  -0x8000_0000,
  0x7ff0_0000,
];

/** Some words are others, gone, or twice. */
export function mutated(words: Int32Array, random: Random): Int32Array {
  const list = [...words];
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const at = random.below(list.length + 1);
    switch (random.below(8)) {
      case 0:
        list[at] = random.next() | 0;
        break;
      case 1:
      case 2:
        list[at] = INTERESTING[random.below(INTERESTING.length)];
        break;
      case 3:
        list[at] = (list[at] ?? 0) + random.below(5) - 2;
        break;
      case 4:
        list[at] = (list[at] ?? 0) ^ (1 << random.below(32));
        break;
      case 5:
        list.splice(at, 1 + random.below(3));
        break;
      case 6:
        list.splice(at, 0, ...list.slice(at, at + 1 + random.below(6)));
        break;
      default:
        list.length = at;
    }
  }
  return Int32Array.from(list);
}

/** Nothing but noise, of words that mean something at some places. */
export function noise(random: Random): Int32Array {
  return Int32Array.from({ length: random.below(40) }, () =>
    random.below(3) === 0
      ? INTERESTING[random.below(INTERESTING.length)]
      : random.below(2) === 0
        ? random.below(20)
        : random.next() | 0,
  );
}
