// TPC-C's transactions as functions in PL/pgSQL, which is one round trip for each, as HammerDB and other
// drivers for PostgreSQL have them. Where several rows change alike, one statement changes them all.
//
// They run at READ COMMITTED, as HammerDB's do: nothing has to be run again then. That is enough, for
// whatever changes is read by the statement that changes it, the rest of what they read never changes,
// and the two that only read are STABLE, so all their statements see one snapshot (manual, 38.7). The
// conditions are checked after every run, as for all engines.
import type { Table } from "situ";
import {
  BAD_CREDIT,
  DISTRICTS,
  LEAST_STOCK,
  MOST_CUSTOMER_DATA,
  ORIGINAL,
  RATE_UNIT,
  RECENT_ORDERS,
  RESTOCK,
  SHOWN_CUSTOMER_DATA,
} from "../../../workloads/tpcc/parameters.ts";
import { Warehouse } from "../../../workloads/tpcc/tables.ts";
import type { PgClient } from "./module.ts";

export const tpccSettings = "-c default_transaction_isolation=read\\ committed";
/** The code of the error that rolls a New-Order back; a class of its own. */
export const rolledBackCode = "TP001";

export function isTpcc(tables: readonly Table[]): boolean {
  return tables.includes(Warehouse as Table);
}

export async function createTpccFunctions(client: PgClient): Promise<void> {
  // The specification's history has no key (clause 1.3.1), so nobody has to keep an index of it.
  await client.query("ALTER TABLE history DROP CONSTRAINT history_pkey");
  for (const sql of [newOrder, customerOf, payment, orderStatus, delivery, stockLevel]) {
    await client.query(sql);
  }
}

const distInfo = Array.from(
  { length: DISTRICTS },
  (_, index) => `WHEN ${index + 1} THEN s.s_dist_${String(index + 1).padStart(2, "0")}`,
).join(" ");
const unit = RATE_UNIT * RATE_UNIT;

const newOrder = `
CREATE OR REPLACE FUNCTION tpcc_new_order(
  w integer, d integer, c integer, entered bigint, items integer[], supplies integer[],
  quantities integer[],
  OUT order_id bigint, OUT total bigint, OUT discount bigint, OUT credit text,
  OUT originals bigint
) LANGUAGE plpgsql AS $$
DECLARE
  w_rate bigint;
  d_rate bigint;
  lines integer := array_length(items, 1);
  found_lines bigint;
BEGIN
  UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = w AND d_id = d
    RETURNING d_tax, d_next_o_id - 1 INTO d_rate, order_id;
  SELECT w_tax INTO w_rate FROM warehouse WHERE w_id = w;
  SELECT c_discount, c_credit INTO discount, credit FROM customer
    WHERE c_w_id = w AND c_d_id = d AND c_id = c;
  INSERT INTO orders VALUES (w, d, order_id, c, entered, NULL, lines, w = ALL (supplies));
  INSERT INTO new_order VALUES (w, d, order_id);
  WITH line AS (
    SELECT * FROM unnest(items, supplies, quantities) WITH ORDINALITY AS l(i, s, q, n)
  ), taken AS (
    UPDATE stock s SET
      s_quantity = s_quantity - q + CASE WHEN s_quantity - q >= ${LEAST_STOCK} THEN 0 ELSE ${RESTOCK} END,
      s_ytd = s_ytd + q, s_order_cnt = s_order_cnt + 1,
      s_remote_cnt = s_remote_cnt + CASE WHEN l.s = w THEN 0 ELSE 1 END
    FROM line l WHERE s.s_w_id = l.s AND s.s_i_id = l.i
    RETURNING l.n, l.i, l.s, l.q, s.s_data, CASE d ${distInfo} END AS info
  ), priced AS (
    SELECT t.*, t.q * i_price AS amount,
      i_data LIKE '%${ORIGINAL}%' AND s_data LIKE '%${ORIGINAL}%' AS is_original
    FROM taken t JOIN item ON i_id = t.i
  ), inserted AS (
    INSERT INTO order_line SELECT w, d, order_id, n, i, s, NULL, q, amount, info FROM priced
  )
  SELECT sum(amount), count(*) FILTER (WHERE is_original), count(*)
    INTO total, originals, found_lines FROM priced;
  IF found_lines < lines THEN
    RAISE EXCEPTION 'an item does not exist' USING ERRCODE = '${rolledBackCode}';
  END IF;
  total := (total * (${RATE_UNIT} - discount) * (${RATE_UNIT} + w_rate + d_rate) + ${unit / 2}) / ${unit};
END $$`;

const customerOf = `
CREATE OR REPLACE FUNCTION tpcc_customer(w integer, d integer, c integer, name text)
RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF c <> 0 THEN RETURN c; END IF;
  RETURN (SELECT (array_agg(c_id ORDER BY c_first))[(count(*) + 1) / 2] FROM customer
    WHERE c_w_id = w AND c_d_id = d AND c_last = name);
END $$`;

const payment = `
CREATE OR REPLACE FUNCTION tpcc_payment(
  w integer, d integer, cw integer, cd integer, number integer, name text, cents bigint,
  paid bigint, history_id bigint,
  OUT customer_id integer, OUT balance bigint, OUT credit text, OUT data text
) LANGUAGE plpgsql AS $$
DECLARE
  warehouse_name text;
  district_name text;
BEGIN
  UPDATE warehouse SET w_ytd = w_ytd + cents WHERE w_id = w RETURNING w_name INTO warehouse_name;
  UPDATE district SET d_ytd = d_ytd + cents WHERE d_w_id = w AND d_id = d
    RETURNING d_name INTO district_name;
  customer_id := tpcc_customer(cw, cd, number, name);
  UPDATE customer SET c_balance = c_balance - cents, c_ytd_payment = c_ytd_payment + cents,
    c_payment_cnt = c_payment_cnt + 1,
    c_data = CASE WHEN c_credit = '${BAD_CREDIT}' THEN left(
      concat(customer_id, ' ', cd, ' ', cw, ' ', d, ' ', w, ' ', cents, '|', c_data),
      ${MOST_CUSTOMER_DATA}) ELSE c_data END
    WHERE c_w_id = cw AND c_d_id = cd AND c_id = customer_id
    RETURNING c_balance, c_credit,
      CASE WHEN c_credit = '${BAD_CREDIT}' THEN left(c_data, ${SHOWN_CUSTOMER_DATA}) ELSE '' END
    INTO balance, credit, data;
  INSERT INTO history VALUES (history_id, customer_id, cd, cw, d, w, paid, cents,
    concat(warehouse_name, '    ', district_name));
END $$`;

const orderStatus = `
CREATE OR REPLACE FUNCTION tpcc_order_status(w integer, d integer, number integer, name text)
RETURNS TABLE (customer_id integer, balance bigint, order_id integer, entered bigint, carrier smallint,
  item bigint, supply integer, quantity smallint, amount bigint, delivered bigint)
LANGUAGE plpgsql STABLE AS $$
BEGIN
  customer_id := tpcc_customer(w, d, number, name);
  SELECT c_balance INTO balance FROM customer
    WHERE c_w_id = w AND c_d_id = d AND c_id = customer_id;
  SELECT o_id, o_entry_d, o_carrier_id INTO order_id, entered, carrier FROM orders
    WHERE o_w_id = w AND o_d_id = d AND o_c_id = customer_id ORDER BY o_id DESC LIMIT 1;
  RETURN QUERY SELECT customer_id, balance, order_id, entered, carrier,
    ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line
    WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = order_id ORDER BY ol_number;
END $$`;

const delivery = `
CREATE OR REPLACE FUNCTION tpcc_delivery(w integer, by_carrier integer, at_date bigint)
RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
  delivered integer[] := '{}';
  oldest integer;
  ordered_by integer;
  owed bigint;
BEGIN
  FOR d IN 1..${DISTRICTS} LOOP
    LOOP
      oldest := (SELECT no_o_id FROM new_order WHERE no_w_id = w AND no_d_id = d
        ORDER BY no_o_id LIMIT 1);
      EXIT WHEN oldest IS NULL;
      DELETE FROM new_order WHERE no_w_id = w AND no_d_id = d AND no_o_id = oldest;
      -- Another delivery may have been quicker.
      EXIT WHEN FOUND;
    END LOOP;
    delivered := delivered || coalesce(oldest, 0);
    CONTINUE WHEN oldest IS NULL;
    UPDATE orders SET o_carrier_id = by_carrier WHERE o_w_id = w AND o_d_id = d AND o_id = oldest
      RETURNING o_c_id INTO ordered_by;
    WITH line AS (
      UPDATE order_line SET ol_delivery_d = at_date
      WHERE ol_w_id = w AND ol_d_id = d AND ol_o_id = oldest RETURNING ol_amount
    ) SELECT sum(ol_amount) INTO owed FROM line;
    UPDATE customer SET c_balance = c_balance + owed, c_delivery_cnt = c_delivery_cnt + 1
      WHERE c_w_id = w AND c_d_id = d AND c_id = ordered_by;
  END LOOP;
  RETURN delivered;
END $$`;

const stockLevel = `
CREATE OR REPLACE FUNCTION tpcc_stock_level(w integer, d integer, threshold integer)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
  next_order bigint;
BEGIN
  SELECT d_next_o_id INTO next_order FROM district WHERE d_w_id = w AND d_id = d;
  RETURN (SELECT count(DISTINCT s_i_id) FROM order_line, stock
    WHERE ol_w_id = w AND ol_d_id = d
    AND ol_o_id >= next_order - ${RECENT_ORDERS} AND ol_o_id < next_order
    AND s_w_id = w AND s_i_id = ol_i_id AND s_quantity < threshold);
END $$`;
