/**
 * The throughput of machines that all run transactions on each other, in a closed loop: each thread
 * has as many under way as the model says, and begins the next when one is over. In virtual time, so
 * the figures are those of the model of the hardware, and the same in every run.
 */

import type { Endpoint, Request } from "../../src/fabric/fabric.ts";
import { READ } from "../../src/fabric/verbs.ts";
import type { Reader, Writer } from "../../src/fabric/wire.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import type { Random } from "../../src/runtime/random.ts";
import { SimulatedFabric } from "../fabric/fabric.ts";
import type { Hardware } from "../fabric/hardware.ts";
import type { Mix } from "./mixes.ts";
import type { Protocol, Round, Sent } from "./scripts.ts";

const MESSAGE = 16;
/** How long it takes until all loops have begun, and how often one looks how far they are. */
const STAGGER_US = 50;
const SLICE_US = 5;
const FILLING = new Int32Array(1 << 12);

export interface Throughput {
  /** Millions of transactions per second and machine. */
  readonly mtps: number;
  readonly messagesPerTransaction: number;
  readonly verbsPerTransaction: number;
  readonly roundsPerTransaction: number;
  /** How busy the machines' cores and NICs were, from 0 to 1: the larger one is the bottleneck. */
  readonly coresBusy: number;
  readonly nicsBusy: number;
  readonly meanLatencyUs: number;
}

export interface Load {
  readonly hardware: Hardware;
  readonly protocol: Protocol;
  readonly mix: Mix;
  readonly machines: number;
  readonly seed: number;
  /** Transactions that each loop has behind it before the measurement, and those measured. */
  readonly warmUp: number;
  readonly measured: number;
  /** What verbs read; it is in no machine's model. */
  readonly memory: StoreMemory;
}

export function measure(load: Load): Throughput {
  const { hardware, machines, seed, memory } = load;
  const loops = hardware.host.count * hardware.coroutines;
  const fabric = new SimulatedFabric({ seed, hardware, trace: false });
  const counts = { transactions: 0, messages: 0, verbs: 0, rounds: 0, latencyUs: 0 };
  const endpoints = Array.from({ length: machines }, (_, self) =>
    fabric.endpoint({
      self,
      configurationId: 1,
      memory,
      service: (incoming) => {
        const replyWords = incoming.body.word();
        incoming.reply().words(FILLING, 0, replyWords);
      },
    }),
  );
  endpoints.forEach((endpoint, self) => {
    const random = fabric.random(`machine-${self}`);
    for (let i = 0; i < loops; i++) {
      const loop = new Loop(fabric, endpoint, load, random, counts);
      // Not all at once: what leaves in one turn goes in one packet, and would stay together.
      fabric.at(random.below(STAGGER_US * 1e3) / 1e3, () => loop.begin());
    }
  });
  const runFor = (transactions: number): void => {
    while (counts.transactions < transactions * loops * machines)
      fabric.run(fabric.nowUs + SLICE_US);
  };
  fabric.run(STAGGER_US);
  runFor(load.warmUp);
  const beganUs = fabric.nowUs;
  for (const name of Object.keys(counts) as (keyof typeof counts)[]) counts[name] = 0;
  const busy = (pick: "cores" | "nics"): number =>
    endpoints.reduce((sum, { id }) => sum + fabric.machine(id)[pick].busyUs, 0);
  const before = { cores: busy("cores"), nics: busy("nics") };
  runFor(load.measured);
  const measuredUs = fabric.nowUs - beganUs;
  const { transactions } = counts;
  const share = (pick: "cores" | "nics", count: number): number =>
    (busy(pick) - before[pick]) / (machines * count * measuredUs);
  return {
    mtps: transactions / machines / measuredUs,
    messagesPerTransaction: counts.messages / transactions,
    verbsPerTransaction: counts.verbs / transactions,
    roundsPerTransaction: counts.rounds / transactions,
    coresBusy: share("cores", hardware.host.count),
    nicsBusy: share("nics", hardware.nic.count),
    meanLatencyUs: counts.latencyUs / transactions,
  };
}

interface Counts {
  transactions: number;
  messages: number;
  verbs: number;
  rounds: number;
  latencyUs: number;
}

/** One transaction after the other. */
class Loop {
  readonly #fabric: SimulatedFabric;
  readonly #endpoint: Endpoint;
  readonly #load: Load;
  readonly #random: Random;
  readonly #counts: Counts;
  #rounds: Round[] = [];
  #round = 0;
  #open = 0;
  #beganUs = 0;

  constructor(
    fabric: SimulatedFabric,
    endpoint: Endpoint,
    load: Load,
    random: Random,
    counts: Counts,
  ) {
    this.#fabric = fabric;
    this.#endpoint = endpoint;
    this.#load = load;
    this.#random = random;
    this.#counts = counts;
  }

  begin(): void {
    const { protocol, mix, machines } = this.#load;
    const transaction = mix.next(this.#random);
    this.#rounds = protocol.rounds(transaction, this.#endpoint.self, machines, this.#random);
    this.#round = 0;
    this.#beganUs = this.#fabric.nowUs;
    this.#send();
  }

  #send(): void {
    const round = this.#rounds[this.#round];
    this.#counts.rounds++;
    this.#open = round.length;
    for (const sent of round) {
      if (sent.as === "verb") this.#counts.verbs++;
      else this.#counts.messages++;
      this.#endpoint.send(sent.to, new Scripted(sent, () => this.#replied()));
    }
  }

  #replied(): void {
    if (--this.#open > 0) return;
    if (++this.#round < this.#rounds.length) {
      this.#send();
      return;
    }
    this.#counts.transactions++;
    this.#counts.latencyUs += this.#fabric.nowUs - this.#beganUs;
    this.begin();
  }
}

const wordsOf = (bytes: number): number => Math.ceil(bytes / 4);

class Scripted implements Request {
  readonly kind: number;
  readonly #sent: Sent;
  readonly #done: () => void;

  constructor(sent: Sent, done: () => void) {
    this.kind = sent.as === "verb" ? READ : MESSAGE;
    this.#sent = sent;
    this.#done = done;
  }

  encode(out: Writer): void {
    if (this.kind === READ) {
      out.word(0);
      out.word(0);
      out.word(wordsOf(this.#sent.replyBytes));
    } else {
      out.word(wordsOf(this.#sent.replyBytes));
      out.words(FILLING, 0, Math.max(0, wordsOf(this.#sent.requestBytes) - 1));
    }
  }

  replied(reply: Reader): void {
    if (reply.left < wordsOf(this.#sent.replyBytes)) throw new Error("a reply is too short");
    this.#done();
  }

  failed(why: Error): void {
    throw why;
  }
}
