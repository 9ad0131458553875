// TATP on Redis. A number is looked up in the index of layout.ts; the keys that follow from it are
// known in the script only. The forwardings of a facility are one hash, start_time to
// "end_time number", so that all of them are read at once.
import {
  AccessInfo,
  type AccessInfoRow,
  CallForwarding,
  SpecialFacility,
  Subscriber,
  type SubscriberRow,
  type TatpStore,
} from "../../../workloads/tatp/store.ts";
import type { RowWriter } from "./bulk.ts";
import { answers, type RedisClient, type RedisConnection, script } from "./connection.ts";
import { encode, type Layout, prefixOf, type Row, RowLayout, scanKeys } from "./layout.ts";

const subscribers = prefixOf(Subscriber);
const facilities = prefixOf(SpecialFacility);
const forwardings = prefixOf(CallForwarding);
const numbers = `${Subscriber.indexes[0].name}:`;

const getNewDestination = script(`
if redis.call('HGET', KEYS[1], 'is_active') ~= '1' then return {} end
return redis.call('HGETALL', KEYS[2])`);

const updateSubscriberData = script(`
if redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], 'data_a', ARGV[2])
redis.call('HSET', KEYS[1], 'bit_1', ARGV[1])
return 1`);

const updateLocation = script(`
local id = redis.call('GET', KEYS[1])
if not id then return 0 end
redis.call('HSET', '${subscribers}' .. id, 'vlr_location', ARGV[1])
return 1`);

const insertCallForwarding = script(`
local id = redis.call('GET', KEYS[1])
if not id then return 0 end
local facility = id .. ':' .. ARGV[1]
if redis.call('EXISTS', '${facilities}' .. facility) == 0 then return 0 end
return redis.call('HSETNX', '${forwardings}' .. facility, ARGV[2], ARGV[3])`);

const deleteCallForwarding = script(`
local id = redis.call('GET', KEYS[1])
if not id then return 0 end
return redis.call('HDEL', '${forwardings}' .. id .. ':' .. ARGV[1], ARGV[2])`);

export const tatpScripts = [
  getNewDestination,
  updateSubscriberData,
  updateLocation,
  insertCallForwarding,
  deleteCallForwarding,
];

export class ForwardingLayout implements Layout {
  put(writer: RowWriter, row: Row): void {
    const { s_id, sf_type, start_time, end_time, numberx } = row;
    const key = `${forwardings}${s_id}:${sf_type}`;
    writer.hset(key, String(start_time), `${end_time} ${numberx}`);
  }

  async *rows(client: RedisClient): AsyncIterable<Row> {
    for await (const keys of scanKeys(client, forwardings)) {
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.hgetall(key);
      const replies = (await answers(pipeline)) as Record<string, string>[];
      for (let index = 0; index < keys.length; index++) {
        const [s_id, sf_type] = keys[index].slice(forwardings.length).split(":").map(Number);
        for (const [start, rest] of Object.entries(replies[index])) {
          const [end, numberx] = rest.split(" ");
          yield { s_id, sf_type, start_time: Number(start), end_time: Number(end), numberx };
        }
      }
    }
  }
}

export function redisTatp(redis: RedisConnection): TatpStore {
  return new RedisTatp(redis);
}

class RedisTatp implements TatpStore {
  readonly #redis: RedisConnection;
  readonly #subscribers = new RowLayout(Subscriber);

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async getSubscriberData(subscriber: number): Promise<SubscriberRow | undefined> {
    const values = await this.#redis.gathered.hvals(subscribers + subscriber);
    if (values.length === 0) return undefined;
    return this.#subscribers.decode({ s_id: subscriber }, values) as unknown as SubscriberRow;
  }

  async getNewDestination(
    subscriber: number,
    facility: number,
    startTime: number,
    endTime: number,
  ): Promise<readonly string[]> {
    const key = `${subscriber}:${facility}`;
    const found = (await this.#redis.gathered.evalsha(
      getNewDestination.sha,
      2,
      facilities + key,
      forwardings + key,
    )) as string[];
    const destinations: string[] = [];
    for (let index = 0; index < found.length; index += 2) {
      const text = found[index + 1];
      const space = text.indexOf(" ");
      if (Number(found[index]) <= startTime && Number(text.slice(0, space)) > endTime) {
        destinations.push(text.slice(space + 1));
      }
    }
    return destinations;
  }

  async getAccessData(subscriber: number, accessType: number): Promise<AccessInfoRow | undefined> {
    const key = `${prefixOf(AccessInfo)}${subscriber}:${accessType}`;
    const values = await this.#redis.gathered.hvals(key);
    if (values.length === 0) return undefined;
    return {
      s_id: subscriber,
      ai_type: accessType,
      data1: Number(values[0]),
      data2: Number(values[1]),
      data3: values[2],
      data4: values[3],
    };
  }

  async updateSubscriberData(
    subscriber: number,
    bit: boolean,
    facility: number,
    dataA: number,
  ): Promise<boolean> {
    const keys = [subscribers + subscriber, `${facilities}${subscriber}:${facility}`] as const;
    const { sha } = updateSubscriberData;
    return (await this.#redis.gathered.evalsha(sha, 2, ...keys, encode(bit), dataA)) === 1;
  }

  async updateLocation(subscriberNumber: string, location: number): Promise<boolean> {
    const key = numbers + subscriberNumber;
    return (await this.#redis.gathered.evalsha(updateLocation.sha, 1, key, location)) === 1;
  }

  async insertCallForwarding(
    subscriberNumber: string,
    facility: number,
    startTime: number,
    endTime: number,
    number: string,
  ): Promise<boolean> {
    const inserted = await this.#redis.gathered.evalsha(
      insertCallForwarding.sha,
      1,
      numbers + subscriberNumber,
      facility,
      startTime,
      `${endTime} ${number}`,
    );
    return inserted === 1;
  }

  async deleteCallForwarding(
    subscriberNumber: string,
    facility: number,
    startTime: number,
  ): Promise<boolean> {
    const key = numbers + subscriberNumber;
    const { sha } = deleteCallForwarding;
    return (await this.#redis.gathered.evalsha(sha, 1, key, facility, startTime)) === 1;
  }
}
