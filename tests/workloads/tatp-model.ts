/** TATP in maps, as plainly as it can be said: what every engine's store must agree with. */

import { START_TIMES } from "../../workloads/tatp/parameters.ts";
import {
  AccessInfo,
  type AccessInfoRow,
  CallForwarding,
  SpecialFacility,
  Subscriber,
  type SubscriberRow,
  type TatpStore,
} from "../../workloads/tatp/store.ts";
import { ModelTables } from "./model-tables.ts";

export class TatpModel extends ModelTables implements TatpStore {
  getSubscriberData(subscriber: number): SubscriberRow | undefined {
    return this.get(Subscriber, subscriber) as SubscriberRow | undefined;
  }

  getNewDestination(
    subscriber: number,
    facility: number,
    startTime: number,
    endTime: number,
  ): string[] {
    if (this.get(SpecialFacility, subscriber, facility)?.is_active !== true) return [];
    const rows = START_TIMES.map((start) => this.get(CallForwarding, subscriber, facility, start));
    return rows
      .filter((row) => row !== undefined)
      .filter(({ start_time }) => (start_time as number) <= startTime)
      .filter(({ end_time }) => (end_time as number) > endTime)
      .map(({ numberx }) => numberx as string);
  }

  getAccessData(subscriber: number, accessType: number): AccessInfoRow | undefined {
    return this.get(AccessInfo, subscriber, accessType) as AccessInfoRow | undefined;
  }

  updateSubscriberData(subscriber: number, bit: boolean, facility: number, dataA: number): boolean {
    const special = this.get(SpecialFacility, subscriber, facility);
    if (special === undefined) return false;
    this.put(SpecialFacility, { ...special, data_a: dataA });
    this.put(Subscriber, { ...this.get(Subscriber, subscriber), bit_1: bit });
    return true;
  }

  updateLocation(number: string, location: number): boolean {
    const row = this.get(Subscriber, Number(number));
    if (row?.sub_nbr !== number) return false;
    this.put(Subscriber, { ...row, vlr_location: location });
    return true;
  }

  insertCallForwarding(
    number: string,
    facility: number,
    startTime: number,
    endTime: number,
    to: string,
  ): boolean {
    const s_id = Number(number);
    if (this.get(SpecialFacility, s_id, facility) === undefined) return false;
    if (this.get(CallForwarding, s_id, facility, startTime) !== undefined) return false;
    this.put(CallForwarding, {
      s_id,
      sf_type: facility,
      start_time: startTime,
      end_time: endTime,
      numberx: to,
    });
    return true;
  }

  deleteCallForwarding(number: string, facility: number, startTime: number): boolean {
    return this.delete(CallForwarding, Number(number), facility, startTime);
  }
}
