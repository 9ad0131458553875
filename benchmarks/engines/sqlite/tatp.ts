// TATP on SQLite, with the statements of the specification (§3) put into one where SQL can.
import {
  AccessInfo,
  type AccessInfoRow,
  Subscriber,
  type SubscriberRow,
  type TatpStore,
} from "../../../workloads/tatp/store.ts";
import { columnNames } from "../tables.ts";
import type { Connection } from "./connection.ts";

type Values = readonly (number & string)[];

export function sqliteTatp(connection: Connection): TatpStore {
  const { db } = connection;
  const subscriberData = db
    .prepare(`SELECT ${columnNames(Subscriber)} FROM subscriber WHERE s_id = ?`)
    .raw();
  const accessData = db
    .prepare(`SELECT ${columnNames(AccessInfo)} FROM access_info WHERE s_id = ? AND ai_type = ?`)
    .raw();
  const destinations = db
    .prepare(
      `SELECT numberx FROM special_facility JOIN call_forwarding USING (s_id, sf_type)
       WHERE s_id = ? AND sf_type = ? AND is_active = 1 AND start_time <= ? AND end_time > ?`,
    )
    .pluck();
  const facilityData = db.prepare(
    "UPDATE special_facility SET data_a = ? WHERE s_id = ? AND sf_type = ?",
  );
  const subscriberBit = db.prepare("UPDATE subscriber SET bit_1 = ? WHERE s_id = ?");
  const location = db.prepare("UPDATE subscriber SET vlr_location = ? WHERE sub_nbr = ?");
  const insertForwarding = db.prepare(
    `INSERT INTO call_forwarding (s_id, sf_type, start_time, end_time, numberx)
     SELECT s_id, sf_type, ?, ?, ? FROM subscriber JOIN special_facility USING (s_id)
     WHERE sub_nbr = ? AND sf_type = ?
     ON CONFLICT DO NOTHING`,
  );
  const deleteForwarding = db.prepare(
    `DELETE FROM call_forwarding WHERE s_id = (SELECT s_id FROM subscriber WHERE sub_nbr = ?)
     AND sf_type = ? AND start_time = ?`,
  );

  return {
    getSubscriberData: connection.retried((subscriber) => {
      const values = subscriberData.get(subscriber);
      return values === undefined ? undefined : subscriberOf(values as Values);
    }),

    getNewDestination: connection.retried(
      (subscriber, facility, startTime, endTime) =>
        destinations.all(subscriber, facility, startTime, endTime) as string[],
    ),

    getAccessData: connection.retried((subscriber, accessType) => {
      const values = accessData.get(subscriber, accessType);
      return values === undefined ? undefined : accessOf(values as Values);
    }),

    updateSubscriberData: connection.writing(
      (subscriber: number, bit: boolean, facility: number, dataA: number) => {
        if (facilityData.run(dataA, subscriber, facility).changes === 0) return false;
        if (subscriberBit.run(bit ? 1 : 0, subscriber).changes === 1) return true;
        throw new Error(`facility ${facility} has no subscriber ${subscriber}`);
      },
    ),

    updateLocation: connection.retried(
      (subscriberNumber, to) => location.run(to, subscriberNumber).changes === 1,
    ),

    insertCallForwarding: connection.retried(
      (subscriberNumber, facility, startTime, endTime, number) =>
        insertForwarding.run(startTime, endTime, number, subscriberNumber, facility).changes === 1,
    ),

    deleteCallForwarding: connection.retried(
      (subscriberNumber, facility, startTime) =>
        deleteForwarding.run(subscriberNumber, facility, startTime).changes === 1,
    ),
  };
}

function accessOf(values: Values): AccessInfoRow {
  return {
    s_id: values[0],
    ai_type: values[1],
    data1: values[2],
    data2: values[3],
    data3: values[4],
    data4: values[5],
  };
}

function subscriberOf(values: Values): SubscriberRow {
  return {
    s_id: values[0],
    sub_nbr: values[1],
    bit_1: values[2] !== 0,
    bit_2: values[3] !== 0,
    bit_3: values[4] !== 0,
    bit_4: values[5] !== 0,
    bit_5: values[6] !== 0,
    bit_6: values[7] !== 0,
    bit_7: values[8] !== 0,
    bit_8: values[9] !== 0,
    bit_9: values[10] !== 0,
    bit_10: values[11] !== 0,
    hex_1: values[12],
    hex_2: values[13],
    hex_3: values[14],
    hex_4: values[15],
    hex_5: values[16],
    hex_6: values[17],
    hex_7: values[18],
    hex_8: values[19],
    hex_9: values[20],
    hex_10: values[21],
    byte2_1: values[22],
    byte2_2: values[23],
    byte2_3: values[24],
    byte2_4: values[25],
    byte2_5: values[26],
    byte2_6: values[27],
    byte2_7: values[28],
    byte2_8: values[29],
    byte2_9: values[30],
    byte2_10: values[31],
    msc_location: values[32],
    vlr_location: values[33],
  };
}
