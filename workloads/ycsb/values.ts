/**
 * The values of fields: 100 printable characters, as YCSB's are, but each can be told from all
 * others. A record begins with values that its number gives. What updates and inserts write comes
 * from a pool that is made before the run: no text is made in the loop that is measured, and the
 * check knows what can be where. Each place of the pool belongs to one field.
 */

import { Stream } from "../random/stream.ts";
import { FIELD_COUNT, FIELD_LENGTH, type FieldName, type YcsbRow } from "./store.ts";

export const fieldNames: readonly FieldName[] = [
  "field0",
  "field1",
  "field2",
  "field3",
  "field4",
  "field5",
  "field6",
  "field7",
  "field8",
  "field9",
];

/** Always the same rows and the same pool: the seed of a run does not change what is loaded. */
const VALUES_SEED = 0x79637362;
const POOL_LANE = 2 ** 31;
/** A hundred for each field: 100 KB, which stays in the cache as a random text of YCSB's would. */
const POOL_ROWS = 100;
export const POOL_SIZE = POOL_ROWS * FIELD_COUNT;

const ROW_LENGTH = FIELD_COUNT * FIELD_LENGTH;
const scratch = Buffer.alloc(ROW_LENGTH);

/** Field f of row r is at r * FIELD_COUNT + f. */
export function makePool(): readonly string[] {
  const pool: string[] = [];
  for (let row = 0; row < POOL_ROWS; row++) {
    fill(new Stream(VALUES_SEED, POOL_LANE + row));
    for (let field = 0; field < FIELD_COUNT; field++) pool.push(textOf(field));
  }
  return pool;
}

/** What the record of this number begins with. */
export function initialRow(number: number, key: string): YcsbRow {
  fill(new Stream(VALUES_SEED, number));
  return {
    key,
    field0: textOf(0),
    field1: textOf(1),
    field2: textOf(2),
    field3: textOf(3),
    field4: textOf(4),
    field5: textOf(5),
    field6: textOf(6),
    field7: textOf(7),
    field8: textOf(8),
    field9: textOf(9),
  };
}

/** A row of values out of the pool, beginning at one for field 0. */
export function pooledRow(pool: readonly string[], first: number, key: string): YcsbRow {
  return {
    key,
    field0: pool[first],
    field1: pool[first + 1],
    field2: pool[first + 2],
    field3: pool[first + 3],
    field4: pool[first + 4],
    field5: pool[first + 5],
    field6: pool[first + 6],
    field7: pool[first + 7],
    field8: pool[first + 8],
    field9: pool[first + 9],
  };
}

/** "0" to "o", 6 bits a character, 5 characters a draw. */
function fill(stream: Stream): void {
  for (let index = 0; index < ROW_LENGTH; index += 5) {
    const bits = stream.next();
    scratch[index] = 0x30 + (bits & 63);
    scratch[index + 1] = 0x30 + ((bits >>> 6) & 63);
    scratch[index + 2] = 0x30 + ((bits >>> 12) & 63);
    scratch[index + 3] = 0x30 + ((bits >>> 18) & 63);
    scratch[index + 4] = 0x30 + ((bits >>> 24) & 63);
  }
}

function textOf(field: number): string {
  return scratch.toString("latin1", field * FIELD_LENGTH, (field + 1) * FIELD_LENGTH);
}
