/**
 * TATP on a Situ store of this machine: each transaction runs to its end in one call. Its body is
 * made once and finds its parameters in variables; keys are lists that are filled anew each time.
 */

import type { Database, Transaction } from "situ";
import { START_TIMES, TYPES } from "./parameters.ts";
import {
  AccessInfo,
  CallForwarding,
  type CallForwardingRow,
  SpecialFacility,
  Subscriber,
  type TatpStore,
} from "./store.ts";

const byNumber = { index: "bySubNbr" } as const;

export function situTatp(db: Database): TatpStore {
  const access: [number, number] = [0, 0];
  const facility: [number, number] = [0, 0];
  const forwarding: [number, number, number] = [0, 0, 0];
  const bitChange = { bit_1: false };
  const dataChange = { data_a: 0 };
  const locationChange = { vlr_location: 0 };
  const forwarded: CallForwardingRow = {
    s_id: 0,
    sf_type: 0,
    start_time: 0,
    end_time: 0,
    numberx: "",
  };
  let subscriber = 0;
  let number = "";
  let type = 0;
  let startTime = 0;
  let endTime = 0;

  const getNewDestination = (tx: Transaction): string[] => {
    const numbers: string[] = [];
    if (tx.get(SpecialFacility, facility)?.is_active !== true) return numbers;
    forwarding[0] = facility[0];
    forwarding[1] = facility[1];
    for (let i = 0; i < START_TIMES.length && START_TIMES[i] <= startTime; i++) {
      forwarding[2] = START_TIMES[i];
      const row = tx.get(CallForwarding, forwarding);
      if (row !== undefined && row.end_time > endTime) numbers.push(row.numberx);
    }
    return numbers;
  };

  const updateSubscriberData = (tx: Transaction): boolean => {
    if (!tx.has(SpecialFacility, facility)) return false;
    tx.update(Subscriber, subscriber, bitChange);
    tx.update(SpecialFacility, facility, dataChange);
    return true;
  };

  const updateLocation = (tx: Transaction): boolean => {
    const found = tx.get(Subscriber, number, byNumber);
    if (found === undefined) return false;
    tx.update(Subscriber, found.s_id, locationChange);
    return true;
  };

  const insertCallForwarding = (tx: Transaction): boolean => {
    const found = tx.get(Subscriber, number, byNumber);
    if (found === undefined) return false;
    facility[0] = found.s_id;
    let hasFacility = false;
    for (let each = 1; each <= TYPES; each++) {
      facility[1] = each;
      if (tx.has(SpecialFacility, facility) && each === type) hasFacility = true;
    }
    if (!hasFacility) return false;
    forwarding[0] = found.s_id;
    forwarding[1] = type;
    forwarding[2] = startTime;
    if (tx.has(CallForwarding, forwarding)) return false;
    forwarded.s_id = found.s_id;
    tx.insert(CallForwarding, forwarded);
    return true;
  };

  const deleteCallForwarding = (tx: Transaction): boolean => {
    const found = tx.get(Subscriber, number, byNumber);
    if (found === undefined) return false;
    forwarding[0] = found.s_id;
    forwarding[1] = type;
    forwarding[2] = startTime;
    return tx.delete(CallForwarding, forwarding);
  };

  return {
    getSubscriberData: (of) => db.get(Subscriber, of),
    getAccessData(of, accessType) {
      access[0] = of;
      access[1] = accessType;
      return db.get(AccessInfo, access);
    },
    getNewDestination(of, facilityType, start, end) {
      facility[0] = of;
      facility[1] = facilityType;
      startTime = start;
      endTime = end;
      return db.transactSync(getNewDestination);
    },
    updateSubscriberData(of, bit, facilityType, dataA) {
      subscriber = of;
      facility[0] = of;
      facility[1] = facilityType;
      bitChange.bit_1 = bit;
      dataChange.data_a = dataA;
      return db.transactSync(updateSubscriberData);
    },
    updateLocation(subscriberNumber, location) {
      number = subscriberNumber;
      locationChange.vlr_location = location;
      return db.transactSync(updateLocation);
    },
    insertCallForwarding(subscriberNumber, facilityType, start, end, to) {
      number = subscriberNumber;
      type = facilityType;
      startTime = start;
      forwarded.sf_type = facilityType;
      forwarded.start_time = start;
      forwarded.end_time = end;
      forwarded.numberx = to;
      return db.transactSync(insertCallForwarding);
    },
    deleteCallForwarding(subscriberNumber, facilityType, start) {
      number = subscriberNumber;
      type = facilityType;
      startTime = start;
      return db.transactSync(deleteCallForwarding);
    },
  };
}
