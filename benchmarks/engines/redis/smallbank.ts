// SmallBank on Redis: a balance is a value of its own, so that Redis can count with it. Scripts where
// a transaction decides by what it reads; they answer nothing where it is refused.
import {
  Checking,
  PENALTY_CENTS,
  Savings,
  type SmallBankStore,
} from "../../../workloads/smallbank/store.ts";
import { type RedisConnection, script } from "./connection.ts";
import { prefixOf } from "./layout.ts";

const transactSavings = script(`
if redis.call('GET', KEYS[1]) + ARGV[1] < 0 then return false end
redis.call('INCRBY', KEYS[1], ARGV[1])
return 1`);

const amalgamate = script(`
local from = redis.call('MGET', KEYS[1], KEYS[2])
redis.call('MSET', KEYS[1], 0, KEYS[2], 0)
redis.call('INCRBY', KEYS[3], from[1] + from[2])`);

const writeCheck = script(`
local from = redis.call('MGET', KEYS[1], KEYS[2])
local cents = tonumber(ARGV[1])
if from[1] + from[2] < cents then cents = cents + ${PENALTY_CENTS} end
redis.call('DECRBY', KEYS[2], cents)
return -cents`);

const sendPayment = script(`
if redis.call('GET', KEYS[1]) - ARGV[1] < 0 then return false end
redis.call('DECRBY', KEYS[1], ARGV[1])
redis.call('INCRBY', KEYS[2], ARGV[1])
return 1`);

export const smallBankScripts = [transactSavings, amalgamate, writeCheck, sendPayment];

const savings = prefixOf(Savings);
const checking = prefixOf(Checking);

export function redisSmallBank(redis: RedisConnection): SmallBankStore {
  return new RedisSmallBank(redis);
}

class RedisSmallBank implements SmallBankStore {
  readonly #redis: RedisConnection;

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async balance(customer: number): Promise<number> {
    const both = await this.#redis.gathered.mget(savings + customer, checking + customer);
    return Number(both[0]) + Number(both[1]);
  }

  async depositChecking(customer: number, cents: number): Promise<number> {
    await this.#redis.gathered.incrby(checking + customer, cents);
    return cents;
  }

  async transactSavings(customer: number, cents: number): Promise<number> {
    const { sha } = transactSavings;
    const done = await this.#redis.gathered.evalsha(sha, 1, savings + customer, cents);
    return done === null ? Number.NaN : cents;
  }

  async amalgamate(from: number, to: number): Promise<number> {
    await this.#redis.gathered.evalsha(
      amalgamate.sha,
      3,
      savings + from,
      checking + from,
      checking + to,
    );
    return 0;
  }

  async writeCheck(customer: number, cents: number): Promise<number> {
    const { sha } = writeCheck;
    const keys = [savings + customer, checking + customer] as const;
    return (await this.#redis.gathered.evalsha(sha, 2, ...keys, cents)) as number;
  }

  async sendPayment(from: number, to: number, cents: number): Promise<number> {
    const { sha } = sendPayment;
    const keys = [checking + from, checking + to] as const;
    const done = await this.#redis.gathered.evalsha(sha, 2, ...keys, cents);
    return done === null ? Number.NaN : 0;
  }
}
