/**
 * The gateway and a real redis-server side by side: the same random commands go to both, over raw
 * sockets, and the bytes of the replies must be the same. What is random or depends on the time is
 * compared as far as it can be; a step says how.
 */

import { startRedisServer } from "../../../benchmarks/harness/redis-server.ts";
import type { Gateway } from "../../../src/gateways/gateway-options.ts";
import { DEFAULT_SETTINGS } from "../../../src/gateways/redis/settings.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { Random } from "../../../src/runtime/random.ts";
import { MIB, seed, type TemporaryStores } from "../../helpers/store.ts";
import { parseReplies, type Reply } from "../resp/parse-replies.ts";
import { type Argument, RawClient } from "./raw-client.ts";

/**
 * exact: the same bytes. unordered: the same elements in any order. near: whole numbers that differ
 * by at most two seconds, in the unit of the command. kind: only what form the reply has.
 */
export type Comparison = "exact" | "unordered" | "near" | "kind";

export interface Step {
  readonly args: readonly Argument[];
  readonly comparison: Comparison;
}

/** Makes the next step of a random sequence. */
export type Generator = (dice: Dice) => Step;

const NEAR = 2_000n;
/** Steps that are shown before one that failed. */
const SHOWN = 25;

export function step(...args: Argument[]): Step {
  return { args, comparison: "exact" };
}

/** Random choices, the same for the same seed. */
export class Dice {
  readonly #random: Random;

  constructor(from: number) {
    this.#random = new Random(from);
  }

  below(limit: number): number {
    return this.#random.below(limit);
  }

  one<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)];
  }

  /** True once in `times`. */
  rarely(times: number): boolean {
    return this.below(times) === 0;
  }

  /** From 1 to `most` of them, also the same one twice. */
  some<T>(choices: readonly T[], most: number): T[] {
    return Array.from({ length: 1 + this.below(most) }, () => this.one(choices));
  }

  /** A word in any case, as clients may write options. */
  word(text: string): string {
    return this.rarely(3) ? text.toLowerCase() : text;
  }
}

export class SideBySide {
  readonly gateway: Gateway;
  readonly redisPort: number;
  readonly #stop: () => Promise<void>;

  private constructor(gateway: Gateway, redisPort: number, stop: () => Promise<void>) {
    this.gateway = gateway;
    this.redisPort = redisPort;
    this.#stop = stop;
  }

  /** Stopped and removed after the test. */
  static async start(stores: TemporaryStores): Promise<SideBySide> {
    const redis = await startRedisServer();
    if (!redis.available) throw new Error(redis.missing);
    stores.later(() => redis.value.stop());
    const options = { path: stores.folder(), port: 0, memoryBytes: 64 * MIB } as const;
    const gateway = await serve({ ...options, durability: "none" });
    stores.later(() => gateway.close());
    const both = new SideBySide(gateway, redis.value.port, () => redis.value.stop());
    const settings = await RawClient.connect(redis.value.port);
    const { hashMaxPackedEntries, hashMaxPackedValue, setMaxIntsetEntries } = DEFAULT_SETTINGS;
    await settings.sendAll([
      ["config", "set", "hash-max-listpack-entries", hashMaxPackedEntries],
      ["config", "set", "hash-max-listpack-value", hashMaxPackedValue],
      ["config", "set", "set-max-intset-entries", setMaxIntsetEntries],
    ]);
    settings.close();
    return both;
  }

  /**
   * Sends `count` steps of the generator to both, in pipelines and in MULTI blocks of random length,
   * and throws if a reply differs.
   */
  async compare(generate: Generator, count: number, protocol: 2 | 3, from = seed): Promise<void> {
    const dice = new Dice(from * 4 + protocol);
    const clients = [
      await RawClient.connect(this.redisPort),
      await RawClient.connect(this.gateway.port),
    ] as const;
    const history: Step[] = [];
    try {
      for (const client of clients) {
        await client.sendAll([["hello", protocol], ["flushall"]]);
      }
      for (let sent = 0; sent < count; ) {
        const steps = pipeline(generate, dice);
        sent += steps.length;
        history.push(...steps);
        const requests = steps.map(({ args }) => args);
        const [redis, situ] = await Promise.all(clients.map((client) => client.sendAll(requests)));
        steps.forEach((each, i) => {
          if (isSame(each, redis[i], situ[i])) return;
          const before = history.slice(0, history.length - steps.length + i + 1);
          throw new Error(difference(before, redis[i], situ[i], from, protocol));
        });
      }
    } finally {
      for (const client of clients) client.close();
    }
  }

  /** Ends both before the test is over. */
  async stop(): Promise<void> {
    await this.gateway.close();
    await this.#stop();
  }
}

function pipeline(generate: Generator, dice: Dice): Step[] {
  const length = dice.rarely(3) ? 1 : 1 + dice.below(12);
  const steps = Array.from({ length }, () => generate(dice));
  if (!dice.rarely(5)) return steps;
  // Inside of EXEC's reply nothing is compared but bytes.
  const exact = steps.filter(({ comparison }) => comparison === "exact");
  return [step("multi"), ...exact, step(dice.rarely(10) ? "discard" : "exec")];
}

function isSame({ comparison }: Step, redis: Buffer, situ: Buffer): boolean {
  if (redis.equals(situ)) return true;
  if (comparison === "exact") return false;
  const [expected] = parseReplies(redis);
  const [found] = parseReplies(situ);
  if (comparison === "unordered") return sorted(expected) === sorted(found);
  if (comparison === "kind") return Object.keys(expected)[0] === Object.keys(found)[0];
  if (!("integer" in expected) || !("integer" in found)) return false;
  const apart = expected.integer - found.integer;
  // −1 and −2 have a meaning of their own.
  const areTimes = expected.integer >= 0n && found.integer >= 0n;
  return areTimes && apart <= NEAR && apart >= -NEAR;
}

/** Texts for replies that have the same elements; those of a map stay in pairs. */
function sorted(reply: Reply): string {
  if ("array" in reply) return `array ${reply.array.map(shown).sort().join()}`;
  if ("set" in reply) return `set ${reply.set.map(shown).sort().join()}`;
  if ("map" in reply)
    return `map ${reply.map
      .map((pair) => pair.map(shown).join())
      .sort()
      .join()}`;
  return shown(reply);
}

function shown(reply: Reply): string {
  return JSON.stringify(reply, (_, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
}

function difference(
  history: readonly Step[],
  redis: Buffer,
  situ: Buffer,
  from: number,
  protocol: number,
): string {
  const show = ({ args }: Step): string =>
    args
      .map((arg) =>
        JSON.stringify(typeof arg === "object" ? Buffer.from(arg).toString("latin1") : String(arg)),
      )
      .join(" ");
  return [
    `another reply than Redis's in RESP${protocol}, SITU_SEED=${from}, step ${history.length}:`,
    ...history.slice(-SHOWN).map(show),
    `redis: ${JSON.stringify(redis.toString("latin1"))}`,
    `situ:  ${JSON.stringify(situ.toString("latin1"))}`,
  ].join("\n");
}
