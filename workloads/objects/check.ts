/**
 * What must hold after a run on objects: each key is there once, the counts of all objects together
 * are as many as sessions have counted (a lost update is missing in the sum, one done twice is too
 * many), and each object has the text that belongs to its stamp.
 */

import type { Table } from "situ";
import type { ReadRows, Tally } from "../workload.ts";
import type { ObjectRow } from "./store.ts";
import type { Texts } from "./texts.ts";

export async function checkObjects(
  table: Table,
  keys: number,
  texts: Texts,
  read: ReadRows,
  tally: Tally,
): Promise<string[]> {
  const seen = new Uint8Array(keys);
  let rows = 0;
  let sum = 0;
  let strangers = 0;
  let torn = 0;
  let example = "";
  for await (const found of read(table)) {
    const { key, count, stamp, text } = found as unknown as ObjectRow;
    rows++;
    sum += count;
    if (!(key >= 0 && key < keys) || seen[key] > 0) strangers++;
    else seen[key] = 1;
    const expected = stamp === 0 ? texts.initial(key) : texts.written(stamp);
    if (text === expected && (count === 0 || stamp !== 0)) continue;
    torn++;
    example = `key ${key} with count ${count}, stamp ${stamp} and text ${text}`;
  }
  const problems: string[] = [];
  const { counted = 0, wrong = 0 } = tally;
  if (rows !== keys) problems.push(`${rows} objects where there should be ${keys}`);
  if (strangers > 0) problems.push(`${strangers} objects have keys that nobody wrote, or twice`);
  if (sum !== counted) problems.push(`objects count ${sum} writes, sessions have done ${counted}`);
  if (torn > 0) problems.push(`${torn} objects are not as one transaction wrote them: ${example}`);
  if (wrong > 0) problems.push(`${wrong} transactions read something else than whole objects`);
  return problems;
}
