/**
 * A stream of TATP's transactions. Subscribers are drawn non-uniformly, as the specification has it:
 * ((random(0, A) | random(1, P)) % P) + 1, which prefers numbers with many bits set.
 */

import { Stream } from "../random/stream.ts";
import {
  DONE,
  type Outcome,
  REFUSED,
  type Result,
  type Session,
  type SessionOptions,
  type Tally,
} from "../workload.ts";
import {
  BYTE_VALUES,
  DELETE_CALL_FORWARDING,
  GET_ACCESS_DATA,
  GET_NEW_DESTINATION,
  GET_SUBSCRIBER_DATA,
  HOURS,
  INSERT_CALL_FORWARDING,
  LAST_LOCATION,
  nonUniformA,
  START_TIMES,
  TYPES,
  tatpMix,
  UPDATE_LOCATION,
  UPDATE_SUBSCRIBER_DATA,
} from "./parameters.ts";
import type { TatpStore } from "./store.ts";

/** For each percent, the kind of transaction that it belongs to. */
const kinds = Uint8Array.from(tatpMix.flatMap(({ percent }, kind) => Array(percent).fill(kind)));

/**
 * `numbers[s]` is the number of subscriber s. What the specification expects to fail is REFUSED; a
 * subscriber who is not found is "missing" in the tally, and a problem.
 */
export class TatpSession implements Session {
  drawn = GET_SUBSCRIBER_DATA;
  readonly #store: TatpStore;
  readonly #stream: Stream;
  readonly #numbers: readonly string[];
  readonly #subscribers: number;
  /** A + 1: `below` takes the number of choices. */
  readonly #spread: number;
  #inserted = 0;
  #deleted = 0;
  #missing = 0;
  /** Bound once: a function for each transaction would be measured with it. */
  readonly #found = (row: unknown): Outcome => (row === undefined ? REFUSED : DONE);
  readonly #must = (result: unknown): Outcome => this.#mustHave(result);
  readonly #some = (numbers: readonly string[]): Outcome => (numbers.length > 0 ? DONE : REFUSED);
  readonly #done = (isDone: boolean): Outcome => (isDone ? DONE : REFUSED);
  readonly #insert = (isDone: boolean): Outcome => this.#endInsert(isDone);
  readonly #delete = (isDone: boolean): Outcome => this.#endDelete(isDone);

  constructor(store: TatpStore, numbers: readonly string[], { seed, lane }: SessionOptions) {
    this.#store = store;
    this.#numbers = numbers;
    this.#subscribers = numbers.length - 1;
    this.#spread = nonUniformA(this.#subscribers) + 1;
    this.#stream = new Stream(seed, lane);
  }

  next(): Result<Outcome> {
    const stream = this.#stream;
    const store = this.#store;
    const kind = kinds[stream.below(100)];
    this.drawn = kind;
    const subscriber = this.#subscriber();
    switch (kind) {
      case GET_SUBSCRIBER_DATA: {
        const row = store.getSubscriberData(subscriber);
        return row instanceof Promise ? row.then(this.#must) : this.#mustHave(row);
      }
      case GET_ACCESS_DATA: {
        const row = store.getAccessData(subscriber, 1 + stream.below(TYPES));
        return row instanceof Promise ? row.then(this.#found) : this.#found(row);
      }
      case GET_NEW_DESTINATION: {
        const facility = 1 + stream.below(TYPES);
        const endTime = 1 + stream.below(HOURS);
        const found = store.getNewDestination(subscriber, facility, this.#startTime(), endTime);
        return found instanceof Promise ? found.then(this.#some) : this.#some(found);
      }
      case UPDATE_LOCATION: {
        const location = 1 + stream.below(LAST_LOCATION);
        const isDone = store.updateLocation(this.#numbers[subscriber], location);
        return isDone instanceof Promise ? isDone.then(this.#must) : this.#mustHave(isDone);
      }
      case UPDATE_SUBSCRIBER_DATA: {
        const bit = stream.below(2) === 1;
        const facility = 1 + stream.below(TYPES);
        const dataA = stream.below(BYTE_VALUES);
        const isDone = store.updateSubscriberData(subscriber, bit, facility, dataA);
        return isDone instanceof Promise ? isDone.then(this.#done) : this.#done(isDone);
      }
      case INSERT_CALL_FORWARDING: {
        const isDone = store.insertCallForwarding(
          this.#numbers[subscriber],
          1 + stream.below(TYPES),
          this.#startTime(),
          1 + stream.below(HOURS),
          this.#numbers[1 + stream.below(this.#subscribers)],
        );
        return isDone instanceof Promise ? isDone.then(this.#insert) : this.#endInsert(isDone);
      }
      case DELETE_CALL_FORWARDING: {
        const facility = 1 + stream.below(TYPES);
        const number = this.#numbers[subscriber];
        const isDone = store.deleteCallForwarding(number, facility, this.#startTime());
        return isDone instanceof Promise ? isDone.then(this.#delete) : this.#endDelete(isDone);
      }
      default:
        throw new RangeError(`TATP has no transaction ${kind}`);
    }
  }

  tally(): Tally {
    return { inserted: this.#inserted, deleted: this.#deleted, missing: this.#missing };
  }

  #subscriber(): number {
    const stream = this.#stream;
    const subscribers = this.#subscribers;
    return ((stream.below(this.#spread) | (1 + stream.below(subscribers))) % subscribers) + 1;
  }

  #startTime(): number {
    return START_TIMES[this.#stream.below(START_TIMES.length)];
  }

  /** A row, or true: every subscriber is there. */
  #mustHave(result: unknown): Outcome {
    if (result !== undefined && result !== false) return DONE;
    this.#missing++;
    return REFUSED;
  }

  #endInsert(isDone: boolean): Outcome {
    if (!isDone) return REFUSED;
    this.#inserted++;
    return DONE;
  }

  #endDelete(isDone: boolean): Outcome {
    if (!isDone) return REFUSED;
    this.#deleted++;
    return DONE;
  }
}
