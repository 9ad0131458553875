/**
 * TATP's numbers, from its specification: Telecom Application Transaction Processing Benchmark
 * Description, version 1.0, IBM, March 2009 (tatpbenchmark.sourceforge.net).
 */

import type { Share } from "../workload.ts";

/** The places of the transactions in the mix. */
export const GET_SUBSCRIBER_DATA = 0;
export const GET_NEW_DESTINATION = 1;
export const GET_ACCESS_DATA = 2;
export const UPDATE_SUBSCRIBER_DATA = 3;
export const UPDATE_LOCATION = 4;
export const INSERT_CALL_FORWARDING = 5;
export const DELETE_CALL_FORWARDING = 6;

/** The standard mix: 80 % read, 20 % write (its section on the transaction mix). */
export const tatpMix: readonly Share[] = [
  { name: "get subscriber data", percent: 35 },
  { name: "get new destination", percent: 10 },
  { name: "get access data", percent: 35 },
  { name: "update subscriber data", percent: 2 },
  { name: "update location", percent: 14 },
  { name: "insert call forwarding", percent: 2 },
  { name: "delete call forwarding", percent: 2 },
];

/** Access types and facility types are 1 to 4; a subscriber has 1 to 4 of each, all different. */
export const TYPES = 4;
/** The percentage of special facilities with is_active = 1. */
export const ACTIVE_PERCENT = 85;
/** A facility has 0 to 3 call forwardings: with each start time one at most. */
export const START_TIMES: readonly number[] = [0, 8, 16];
/** Populated rows end 1 to 8 hours after they start. */
export const LONGEST_HOURS = 8;
/** GET_NEW_DESTINATION and INSERT_CALL_FORWARDING take an end time of 1 to 24. */
export const HOURS = 24;
/** Digits of sub_nbr and numberx. */
export const NUMBER_DIGITS = 15;
/** hex_n is 0 to 15, byte2_n and data_n are 0 to 255, locations are 1 to 2^32 - 1. */
export const HEX_VALUES = 16;
export const BYTE_VALUES = 256;
export const LAST_LOCATION = 2 ** 32 - 1;

/**
 * The A of the non-uniform keys: about a twentieth of the subscribers get most of the transactions
 * (its section on the non-uniform key distribution).
 */
export function nonUniformA(subscribers: number): number {
  if (subscribers <= 1_000_000) return 65_535;
  return subscribers <= 10_000_000 ? 1_048_575 : 2_097_151;
}
