/**
 * TATP on Situ with many transactions in flight: on a store of this machine, or on a cluster. Reads
 * that do not wait for each other are issued together, which is one message to each node.
 */

import type { AsyncTransaction, Database, RemoteDatabase } from "situ";
import { ClusterSubscriber, SubscriberNumber } from "./cluster-tables.ts";
import { START_TIMES, TYPES } from "./parameters.ts";
import {
  AccessInfo,
  CallForwarding,
  type CallForwardingRow,
  SpecialFacility,
  Subscriber,
  type TatpStore,
} from "./store.ts";

/** Where the subscribers are, and how one is found by number. */
interface Subscribers {
  readonly table: typeof Subscriber | typeof ClusterSubscriber;
  find(tx: AsyncTransaction, number: string): Promise<{ readonly s_id: number } | undefined>;
}

const byNumber = { index: "bySubNbr" } as const;
const types = Array.from({ length: TYPES }, (_, index) => index + 1);

export function situTatpAsync(db: Database): TatpStore {
  return tatpOn(db, {
    table: Subscriber,
    find: (tx, number) => tx.get(Subscriber, number, byNumber),
  });
}

/** Opened with the tables of cluster-tables.ts. */
export function clusterTatp(db: RemoteDatabase): TatpStore {
  // The two kinds of database have no common type; what is used of them here is the same.
  return tatpOn(db as unknown as Database, {
    table: ClusterSubscriber,
    find: (tx, number) => tx.get(SubscriberNumber, number),
  });
}

function tatpOn(db: Database, { table: ofSubscribers, find }: Subscribers): TatpStore {
  // One is the other with an index, which no call below needs.
  const subscribers = ofSubscribers as typeof ClusterSubscriber;
  return {
    getSubscriberData: (subscriber) => db.get(subscribers, subscriber),
    getAccessData: (subscriber, accessType) => db.get(AccessInfo, [subscriber, accessType]),

    getNewDestination: (subscriber, facility, startTime, endTime) =>
      db.transact(async (tx) => {
        const keys: [number, number, number][] = [];
        for (const start of START_TIMES) {
          if (start <= startTime) keys.push([subscriber, facility, start]);
        }
        const [special, rows] = await Promise.all([
          tx.get(SpecialFacility, [subscriber, facility]),
          tx.getMany(CallForwarding, keys),
        ]);
        return special?.is_active === true ? numbersOf(rows, endTime) : [];
      }),

    updateSubscriberData: (subscriber, bit, facility, dataA) =>
      db.transact(async (tx) => {
        if (!(await tx.has(SpecialFacility, [subscriber, facility]))) return false;
        void tx.update(subscribers, subscriber, { bit_1: bit });
        void tx.update(SpecialFacility, [subscriber, facility], { data_a: dataA });
        return true;
      }),

    updateLocation: (number, location) =>
      db.transact(async (tx) => {
        const found = await find(tx, number);
        if (found === undefined) return false;
        void tx.update(subscribers, found.s_id, { vlr_location: location });
        return true;
      }),

    insertCallForwarding: (number, facility, startTime, endTime, to) =>
      db.transact(async (tx) => {
        const found = await find(tx, number);
        if (found === undefined) return false;
        const { s_id } = found;
        const [isTaken, ...has] = await Promise.all([
          tx.has(CallForwarding, [s_id, facility, startTime]),
          ...types.map((type) => tx.has(SpecialFacility, [s_id, type])),
        ]);
        if (isTaken || !has[facility - 1]) return false;
        void tx.insert(CallForwarding, {
          s_id,
          sf_type: facility,
          start_time: startTime,
          end_time: endTime,
          numberx: to,
        });
        return true;
      }),

    deleteCallForwarding: (number, facility, startTime) =>
      db.transact(async (tx) => {
        const found = await find(tx, number);
        if (found === undefined) return false;
        return tx.delete(CallForwarding, [found.s_id, facility, startTime]);
      }),
  };
}

function numbersOf(rows: readonly (CallForwardingRow | undefined)[], endTime: number): string[] {
  const numbers: string[] = [];
  for (const row of rows)
    if (row !== undefined && row.end_time > endTime) numbers.push(row.numberx);
  return numbers;
}
