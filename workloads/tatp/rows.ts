/** What TATP's tables hold at the beginning: always the same for the same number of subscribers. */

import { Stream } from "../random/stream.ts";
import type { InitialRow } from "../workload.ts";
import {
  ACTIVE_PERCENT,
  BYTE_VALUES,
  HEX_VALUES,
  LAST_LOCATION,
  LONGEST_HOURS,
  NUMBER_DIGITS,
  START_TIMES,
  TYPES,
} from "./parameters.ts";
import {
  AccessInfo,
  CallForwarding,
  SpecialFacility,
  Subscriber,
  type SubscriberRow,
} from "./store.ts";

const SEED = 0x7a79;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const types = Array.from({ length: TYPES }, (_, index) => index + 1);

/**
 * sub_nbr: the subscriber's id with leading zeros. Joined and not padded: what padStart gives V8 keeps
 * as two pieces, and whoever reads its characters, in any engine, would pay for that.
 */
export function numberOf(subscriber: number): string {
  const digits = String(subscriber);
  return ["0".repeat(NUMBER_DIGITS - digits.length), digits].join("");
}

export function* initialRows(subscribers: number): Iterable<InitialRow> {
  const stream = new Stream(SEED, 0);
  for (let s_id = 1; s_id <= subscribers; s_id++) {
    yield { table: Subscriber, row: subscriberRow(s_id, stream) };
    for (const ai_type of some(types, 1, stream)) {
      const data1 = stream.below(BYTE_VALUES);
      const data2 = stream.below(BYTE_VALUES);
      const data3 = letters(3, stream);
      const data4 = letters(5, stream);
      yield { table: AccessInfo, row: { s_id, ai_type, data1, data2, data3, data4 } };
    }
    for (const sf_type of some(types, 1, stream)) {
      const is_active = stream.below(100) < ACTIVE_PERCENT;
      const error_cntrl = stream.below(BYTE_VALUES);
      const data_a = stream.below(BYTE_VALUES);
      const data_b = letters(5, stream);
      const facility = { s_id, sf_type, is_active, error_cntrl, data_a, data_b };
      yield { table: SpecialFacility, row: facility };
      for (const start_time of some(START_TIMES, 0, stream)) {
        const end_time = start_time + 1 + stream.below(LONGEST_HOURS);
        const numberx = digits(stream);
        const forwarding = { s_id, sf_type, start_time, end_time, numberx };
        yield { table: CallForwarding, row: forwarding };
      }
    }
  }
}

export function initialForwardings(subscribers: number): number {
  let forwardings = 0;
  for (const { table } of initialRows(subscribers)) if (table === CallForwarding) forwardings++;
  return forwardings;
}

/** From `fewest` to all of the values, each number of them equally likely, in random order. */
function some(values: readonly number[], fewest: number, stream: Stream): number[] {
  const shuffled = [...values];
  const count = fewest + stream.below(values.length - fewest + 1);
  for (let index = 0; index < count; index++) {
    const other = index + stream.below(values.length - index);
    [shuffled[index], shuffled[other]] = [shuffled[other], shuffled[index]];
  }
  return shuffled.slice(0, count);
}

function letters(count: number, stream: Stream): string {
  let text = "";
  while (text.length < count) text += LETTERS[stream.below(LETTERS.length)];
  return text;
}

function digits(stream: Stream): string {
  let text = "";
  while (text.length < NUMBER_DIGITS) text += stream.below(10);
  return text;
}

function subscriberRow(s_id: number, stream: Stream): SubscriberRow {
  const bit = (): boolean => stream.below(2) === 1;
  const hex = (): number => stream.below(HEX_VALUES);
  const byte = (): number => stream.below(BYTE_VALUES);
  const location = (): number => 1 + stream.below(LAST_LOCATION);
  return {
    s_id,
    sub_nbr: numberOf(s_id),
    bit_1: bit(),
    bit_2: bit(),
    bit_3: bit(),
    bit_4: bit(),
    bit_5: bit(),
    bit_6: bit(),
    bit_7: bit(),
    bit_8: bit(),
    bit_9: bit(),
    bit_10: bit(),
    hex_1: hex(),
    hex_2: hex(),
    hex_3: hex(),
    hex_4: hex(),
    hex_5: hex(),
    hex_6: hex(),
    hex_7: hex(),
    hex_8: hex(),
    hex_9: hex(),
    hex_10: hex(),
    byte2_1: byte(),
    byte2_2: byte(),
    byte2_3: byte(),
    byte2_4: byte(),
    byte2_5: byte(),
    byte2_6: byte(),
    byte2_7: byte(),
    byte2_8: byte(),
    byte2_9: byte(),
    byte2_10: byte(),
    msc_location: location(),
    vlr_location: location(),
  };
}
