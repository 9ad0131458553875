/**
 * The check of every kind of table (stores/kinds.ts): the same names, and the compiler refuses this
 * list while one is missing. `verify` runs a check for what it tells, `inspect` for its figures.
 */

import type { Address } from "../../memory/address.ts";
import type { TableKind } from "../../stores/kinds.ts";
import { TreeCheck, type TreeFigures } from "./btree.ts";
import { bucketsRules } from "./buckets.ts";
import type { Check, CheckedRows } from "./check.ts";
import { hopscotchRules } from "./hopscotch.ts";
import type { ObjectReader } from "./reader.ts";
import { robinhoodRules } from "./robinhood.ts";
import { ShardCheck, type ShardFigures } from "./shards.ts";

/** How a structure is shaped; which figures there are depends on its kind. */
export type Figures = ShardFigures | TreeFigures;

type CheckKind = <Row>(
  reader: ObjectReader,
  rows: CheckedRows<Row>,
  root: Address,
) => Check<Figures>;

export const STRUCTURE_CHECKS = {
  hopscotch: (reader, rows, root) => {
    const rules = hopscotchRules(rows.codec.fixedWords);
    return new ShardCheck(reader, rows, root, rules).run();
  },
  buckets: (reader, rows, root) => {
    const rules = bucketsRules(rows.codec.fixedWords, reader);
    return new ShardCheck(reader, rows, root, rules).run();
  },
  robinhood: (reader, rows, root) => {
    const rules = robinhoodRules(rows.codec.fixedWords);
    return new ShardCheck(reader, rows, root, rules).run();
  },
  btree: (reader, rows, root) => new TreeCheck(reader, rows, root).run(),
} satisfies Record<TableKind, CheckKind>;
