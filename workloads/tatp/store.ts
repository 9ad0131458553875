/**
 * TATP's four tables and seven transactions (Telecom Application Transaction Processing Benchmark
 * Description 1.0, IBM, 2009, §2 and §3). Numbers of subscribers begin at 1.
 */

import { bool, type InferRow, str, table, u8, u32 } from "situ";
import type { Result } from "../workload.ts";

export const subscriberFields = {
  s_id: u32(),
  /** s_id with leading zeros, 15 digits. */
  sub_nbr: str(15),
  bit_1: bool(),
  bit_2: bool(),
  bit_3: bool(),
  bit_4: bool(),
  bit_5: bool(),
  bit_6: bool(),
  bit_7: bool(),
  bit_8: bool(),
  bit_9: bool(),
  bit_10: bool(),
  hex_1: u8(),
  hex_2: u8(),
  hex_3: u8(),
  hex_4: u8(),
  hex_5: u8(),
  hex_6: u8(),
  hex_7: u8(),
  hex_8: u8(),
  hex_9: u8(),
  hex_10: u8(),
  byte2_1: u8(),
  byte2_2: u8(),
  byte2_3: u8(),
  byte2_4: u8(),
  byte2_5: u8(),
  byte2_6: u8(),
  byte2_7: u8(),
  byte2_8: u8(),
  byte2_9: u8(),
  byte2_10: u8(),
  msc_location: u32(),
  vlr_location: u32(),
};

export const Subscriber = table("subscriber", subscriberFields, {
  key: "s_id",
  indexes: { bySubNbr: { on: ["sub_nbr"], unique: true, kind: "hash" } },
});
export const AccessInfo = table(
  "access_info",
  { s_id: u32(), ai_type: u8(), data1: u8(), data2: u8(), data3: str(3), data4: str(5) },
  { key: ["s_id", "ai_type"] },
);
export const SpecialFacility = table(
  "special_facility",
  {
    s_id: u32(),
    sf_type: u8(),
    is_active: bool(),
    error_cntrl: u8(),
    data_a: u8(),
    data_b: str(5),
  },
  { key: ["s_id", "sf_type"] },
);
export const CallForwarding = table(
  "call_forwarding",
  { s_id: u32(), sf_type: u8(), start_time: u8(), end_time: u8(), numberx: str(15) },
  { key: ["s_id", "sf_type", "start_time"] },
);

export type SubscriberRow = InferRow<typeof Subscriber>;
export type AccessInfoRow = InferRow<typeof AccessInfo>;
export type CallForwardingRow = InferRow<typeof CallForwarding>;

/** False, undefined or an empty list: there was nothing to read or change. TATP expects some. */
export interface TatpStore {
  /** The whole row. */
  getSubscriberData(subscriber: number): Result<SubscriberRow | undefined>;
  /**
   * Numbers to forward to: of the active facility, those with start_time <= `startTime` and
   * end_time > `endTime`.
   */
  getNewDestination(
    subscriber: number,
    facility: number,
    startTime: number,
    endTime: number,
  ): Result<readonly string[]>;
  /** data1 to data4, as the whole row. */
  getAccessData(subscriber: number, accessType: number): Result<AccessInfoRow | undefined>;
  /** Sets bit_1 of the subscriber and data_a of the facility: both, or none if it does not exist. */
  updateSubscriberData(
    subscriber: number,
    bit: boolean,
    facility: number,
    dataA: number,
  ): Result<boolean>;
  updateLocation(subscriberNumber: string, location: number): Result<boolean>;
  /**
   * Finds the subscriber by number, reads which facilities it has, and inserts; false, nothing
   * changed, if it has no such facility or the row exists.
   */
  insertCallForwarding(
    subscriberNumber: string,
    facility: number,
    startTime: number,
    endTime: number,
    number: string,
  ): Result<boolean>;
  deleteCallForwarding(
    subscriberNumber: string,
    facility: number,
    startTime: number,
  ): Result<boolean>;
}
