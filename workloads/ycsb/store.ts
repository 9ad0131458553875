/**
 * YCSB's operations: those of its DB class (Cooper et al., SoCC 2010; core/src/main/java/site/ycsb/
 * DB.java), with one table and whole rows. `readModifyWrite` is a transaction here: both steps or none.
 */

import { type InferRow, str, table } from "situ";
import type { Result } from "../workload.ts";

/** fieldcount=10, fieldlength=100: CoreWorkload's defaults, a row of 1 KB. */
export const FIELD_COUNT = 10;
export const FIELD_LENGTH = 100;

const fields = {
  /** "user" and the hash of the record's number. */
  key: str(24),
  field0: str(FIELD_LENGTH),
  field1: str(FIELD_LENGTH),
  field2: str(FIELD_LENGTH),
  field3: str(FIELD_LENGTH),
  field4: str(FIELD_LENGTH),
  field5: str(FIELD_LENGTH),
  field6: str(FIELD_LENGTH),
  field7: str(FIELD_LENGTH),
  field8: str(FIELD_LENGTH),
  field9: str(FIELD_LENGTH),
};

/** For A to D and F, which ask for single keys. */
export const UserTable = table("usertable", fields, { key: "key" });
/** For E, which scans. */
export const OrderedUserTable = table("usertable_ordered", fields, { key: "key", ordered: true });

export type YcsbTable = typeof UserTable | typeof OrderedUserTable;
export type YcsbRow = InferRow<typeof UserTable>;
export type FieldName = Exclude<keyof YcsbRow, "key">;

export interface YcsbStore {
  /** The whole row, with all ten fields as strings. */
  read(key: string): Result<YcsbRow | undefined>;
  /** Replaces one field; says whether the row was there. */
  update(key: string, field: FieldName, value: string): Result<boolean>;
  insert(row: YcsbRow): Result<void>;
  /** Whole rows in the order of keys, from `key` or the next one on. */
  scan(key: string, count: number): Result<readonly YcsbRow[]>;
  /** Reads the whole row and replaces one of its fields, in one transaction. */
  readModifyWrite(key: string, field: FieldName, value: string): Result<YcsbRow | undefined>;
}
