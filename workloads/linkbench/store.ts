/** LinkBench's tables, and its transactions together with those of TAO. */

import { str, table, u8, u32, u53 } from "situ";
import type { Result } from "../workload.ts";

/** LinkBench's nodetable, without the type, of which there is one. */
export const LinkNode = table(
  "node",
  { id: u32(), version: u32(), time: u53(), data: str() },
  { key: "id" },
);

/** Its linktable. Links that are deleted are removed, not hidden (LinkBench's `expunge`). */
export const Link = table(
  "link",
  { id1: u32(), link_type: u8(), id2: u32(), time: u53(), version: u32(), data: str() },
  { key: ["id1", "link_type", "id2"], indexes: { byTime: { on: ["id1", "link_type", "time"] } } },
);

/** Its counttable. */
export const LinkCount = table(
  "link_count",
  { id1: u32(), link_type: u8(), links: u32() },
  { key: ["id1", "link_type"] },
);

/** A link of a list. */
export interface FoundLink {
  readonly id2: number;
  readonly time: number;
}

export interface LinkStore {
  /** Whether there is a node, and reads its data. */
  getNode(id: number): Result<boolean>;
  addNode(id: number, time: number, data: string): Result<void>;
  /** Raises the version. Whether there was one. */
  updateNode(id: number, time: number, data: string): Result<boolean>;
  /** Its links stay. Whether there was one. */
  deleteNode(id: number): Result<boolean>;
  /** Adds a link, or replaces it and raises its version; keeps the count. Whether it is new. */
  addLink(id1: number, type: number, id2: number, time: number, data: string): Result<boolean>;
  deleteLink(id1: number, type: number, id2: number): Result<boolean>;
  /** TAO's: 1 if a link has the new type now and had another, 0 if there is none, -1 if it replaced one. */
  changeType(id1: number, type: number, id2: number, newType: number): Result<number>;
  countLinks(id1: number, type: number): Result<number>;
  /** The links to some nodes. */
  getLinks(id1: number, type: number, ids: readonly number[]): Result<readonly FoundLink[]>;
  /** The newest links. */
  getList(id1: number, type: number, limit: number): Result<readonly FoundLink[]>;
  /** Those with times from `high` down to `low`. */
  getTimeRange(
    id1: number,
    type: number,
    high: number,
    low: number,
    limit: number,
  ): Result<readonly FoundLink[]>;
}
