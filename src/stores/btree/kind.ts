/** The B+-tree as a kind of table. */

import { assert } from "../../runtime/assert.ts";
import type { AnyCodec, StoreKind } from "../kind.ts";
import type { OrderedCodec } from "../store.ts";
import { BTree } from "./btree.ts";
import { dismantleTree } from "./dismantle.ts";
import { Geometry } from "./geometry.ts";

/** A tree is always given a codec that orders keys. */
export function orderedCodec<Row, Key>(codec: AnyCodec<Row, Key>): OrderedCodec<Row, Key> {
  assert("orderedWords" in codec, "a tree has a codec that orders keys");
  return codec as OrderedCodec<Row, Key>;
}

export const btreeKind: StoreKind = {
  ordered: true,
  overwritesInPlace: false,
  create: (tx, codec) => BTree.create(tx, orderedCodec(codec)),
  open: (executor, codec, root) => new BTree(executor, orderedCodec(codec), root),
  dismantle: (tx, codec, root) => dismantleTree(tx, new Geometry(orderedCodec(codec)), root),
};
