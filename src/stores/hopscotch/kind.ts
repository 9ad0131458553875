/** Hopscotch as a kind of table. */

import type { StoreKind } from "../kind.ts";
import { describeRemote } from "../remote/remote.ts";
import { dismantleShards } from "../shards/dismantle.ts";
import { RemoteShards } from "../shards/remote.ts";
import { seedAt } from "../shards/seed.ts";
import { Hopscotch } from "./hopscotch.ts";
import { Geometry } from "./layout.ts";
import { RemoteHopscotch } from "./remote.ts";

export const hopscotchKind: StoreKind = {
  ordered: false,
  overwritesInPlace: true,
  create: (tx, codec) => Hopscotch.create(tx, codec.fixedWords, tx.executor.newHashSeed()),
  open: (executor, codec, root) => new Hopscotch(executor, codec, root),
  dismantle: (tx, codec, root) => dismantleShards(tx, new Geometry(codec.fixedWords), root),
  remote: {
    describe: (executor, fixedWords, root) =>
      describeRemote("hopscotch", fixedWords, root, executor.memory, seedAt(executor, root)),
    open: (table, codec) => new RemoteShards(table, codec, new RemoteHopscotch(table, codec)),
  },
};
