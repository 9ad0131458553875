// TATP on PostgreSQL: each transaction is one statement.
import {
  AccessInfo,
  type AccessInfoRow,
  Subscriber,
  type SubscriberRow,
  type TatpStore,
} from "../../../workloads/tatp/store.ts";
import { columnNames } from "../tables.ts";
import type { Statement } from "./connection.ts";
import type { Database } from "./database.ts";

const getSubscriberData: Statement = {
  name: "get_subscriber_data",
  text: `SELECT ${columnNames(Subscriber)} FROM subscriber WHERE s_id = $1`,
};

const getNewDestination: Statement = {
  name: "get_new_destination",
  text: `SELECT cf.numberx FROM special_facility sf, call_forwarding cf
    WHERE sf.s_id = $1 AND sf.sf_type = $2 AND sf.is_active
    AND cf.s_id = $1 AND cf.sf_type = $2 AND cf.start_time <= $3 AND cf.end_time > $4`,
};

const getAccessData: Statement = {
  name: "get_access_data",
  text: `SELECT ${columnNames(AccessInfo)} FROM access_info WHERE s_id = $1 AND ai_type = $2`,
};

const updateSubscriberData: Statement = {
  name: "update_subscriber_data",
  text: `WITH facility AS (
      UPDATE special_facility SET data_a = $4 WHERE s_id = $1 AND sf_type = $3 RETURNING s_id
    )
    UPDATE subscriber SET bit_1 = $2 WHERE s_id = $1 AND EXISTS (SELECT FROM facility)`,
};

const updateLocation: Statement = {
  name: "update_location",
  text: "UPDATE subscriber SET vlr_location = $2 WHERE sub_nbr = $1",
};

const insertCallForwarding: Statement = {
  name: "insert_call_forwarding",
  text: `INSERT INTO call_forwarding
    SELECT s.s_id, $2, $3, $4, $5 FROM subscriber s, special_facility f
    WHERE s.sub_nbr = $1 AND f.s_id = s.s_id AND f.sf_type = $2
    ON CONFLICT DO NOTHING`,
};

const deleteCallForwarding: Statement = {
  name: "delete_call_forwarding",
  text: `DELETE FROM call_forwarding c USING subscriber s
    WHERE s.sub_nbr = $1 AND c.s_id = s.s_id AND c.sf_type = $2 AND c.start_time = $3`,
};

export function postgresTatp(database: Database): TatpStore {
  return {
    async getSubscriberData(subscriber) {
      const { rows } = await database.read(getSubscriberData, [subscriber]);
      return rows[0] as unknown as SubscriberRow | undefined;
    },

    async getNewDestination(subscriber, facility, startTime, endTime) {
      const values = [subscriber, facility, startTime, endTime];
      const { rows } = await database.read(getNewDestination, values);
      return rows.map(({ numberx }) => numberx as string);
    },

    async getAccessData(subscriber, accessType) {
      const { rows } = await database.read(getAccessData, [subscriber, accessType]);
      return rows[0] as unknown as AccessInfoRow | undefined;
    },

    async updateSubscriberData(subscriber, bit, facility, dataA) {
      const values = [subscriber, bit, facility, dataA];
      return (await database.write(updateSubscriberData, values)).rowCount === 1;
    },

    async updateLocation(subscriberNumber, location) {
      const values = [subscriberNumber, location];
      return (await database.write(updateLocation, values)).rowCount === 1;
    },

    async insertCallForwarding(subscriberNumber, facility, startTime, endTime, number) {
      const values = [subscriberNumber, facility, startTime, endTime, number];
      return (await database.write(insertCallForwarding, values)).rowCount === 1;
    },

    async deleteCallForwarding(subscriberNumber, facility, startTime) {
      const values = [subscriberNumber, facility, startTime];
      return (await database.write(deleteCallForwarding, values)).rowCount === 1;
    },
  };
}
