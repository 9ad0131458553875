// TATP on lmdb. A subscriber's number leads to its id through a second database. Transactions that
// only read do so within one turn, so all their gets see one snapshot.
import { START_TIMES, TYPES } from "../../../workloads/tatp/parameters.ts";
import {
  AccessInfo,
  CallForwarding,
  SpecialFacility,
  Subscriber,
  type TatpStore,
} from "../../../workloads/tatp/store.ts";
import { type LmdbTables, packThree, packTwo } from "./tables.ts";
import type { InTransaction } from "./transactions.ts";

export function lmdbTatp(tables: LmdbTables, inTransaction: InTransaction): TatpStore {
  const subscribers = tables.rows(Subscriber);
  const idOf = tables.index<number>(Subscriber, "sub_nbr");
  const access = tables.rows(AccessInfo);
  const facilities = tables.rows(SpecialFacility);
  const forwardings = tables.rows(CallForwarding);
  return {
    getSubscriberData: (subscriber) => subscribers.get(subscriber),

    getNewDestination(subscriber, facility, startTime, endTime) {
      const numbers: string[] = [];
      if (facilities.get(packTwo(subscriber, facility))?.is_active !== true) return numbers;
      for (let i = 0; i < START_TIMES.length && START_TIMES[i] <= startTime; i++) {
        const row = forwardings.get(packThree(subscriber, facility, START_TIMES[i]));
        if (row !== undefined && row.end_time > endTime) numbers.push(row.numberx);
      }
      return numbers;
    },

    getAccessData: (subscriber, accessType) => access.get(packTwo(subscriber, accessType)),

    updateSubscriberData: inTransaction((subscriber, bit, facility, dataA) => {
      const facilityKey = packTwo(subscriber, facility);
      const facilityRow = facilities.get(facilityKey);
      if (facilityRow === undefined) return false;
      const row = subscribers.get(subscriber);
      if (row === undefined) return false;
      row.bit_1 = bit;
      facilityRow.data_a = dataA;
      subscribers.putSync(subscriber, row);
      facilities.putSync(facilityKey, facilityRow);
      return true;
    }),

    updateLocation: inTransaction((subscriberNumber, location) => {
      const subscriber = idOf.get(subscriberNumber);
      if (subscriber === undefined) return false;
      const row = subscribers.get(subscriber);
      if (row === undefined) return false;
      row.vlr_location = location;
      subscribers.putSync(subscriber, row);
      return true;
    }),

    insertCallForwarding: inTransaction(
      (subscriberNumber, facility, startTime, endTime, numberx) => {
        const subscriber = idOf.get(subscriberNumber);
        if (subscriber === undefined) return false;
        let hasFacility = false;
        for (let type = 1; type <= TYPES; type++) {
          if (facilities.doesExist(packTwo(subscriber, type)) && type === facility) {
            hasFacility = true;
          }
        }
        if (!hasFacility) return false;
        const key = packThree(subscriber, facility, startTime);
        if (forwardings.doesExist(key)) return false;
        forwardings.putSync(key, {
          s_id: subscriber,
          sf_type: facility,
          start_time: startTime,
          end_time: endTime,
          numberx,
        });
        return true;
      },
    ),

    deleteCallForwarding: inTransaction((subscriberNumber, facility, startTime) => {
      const subscriber = idOf.get(subscriberNumber);
      if (subscriber === undefined) return false;
      return forwardings.removeSync(packThree(subscriber, facility, startTime));
    }),
  };
}
