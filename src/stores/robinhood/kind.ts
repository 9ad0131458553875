/** Robin Hood hashing as a kind of table. Other nodes ask for its rows by message. */

import type { StoreKind } from "../kind.ts";
import { dismantleShards } from "../shards/dismantle.ts";
import { Geometry } from "./layout.ts";
import { Robinhood } from "./robinhood.ts";

export const robinhoodKind: StoreKind = {
  ordered: false,
  overwritesInPlace: true,
  create: (tx, codec) => Robinhood.create(tx, codec.fixedWords, tx.executor.newHashSeed()),
  open: (executor, codec, root) => new Robinhood(executor, codec, root),
  dismantle: (tx, codec, root) => dismantleShards(tx, new Geometry(codec.fixedWords), root),
};
