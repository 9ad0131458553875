/**
 * The part of a node's service that makes copies of partitions: as the primary it gives rows to those who copy
 * (protocols/copying/source.ts), and as one that a configuration gives a partition it copies them
 * (protocols/copying/copying.ts). Both belong to the thread that keeps the node's copies.
 */

import type { ConfigurationId } from "../fabric/fabric.ts";
import { Copying, type CopyingOptions, type FillingReplica } from "../protocols/copying/copying.ts";
import { COPYING_HANDLERS } from "../protocols/copying/phases.ts";
import { CopySource, type KnownEnds } from "../protocols/copying/source.ts";
import type { Handler } from "../protocols/phases/registry.ts";
import type { ViewHolder } from "./view.ts";

/** Told which partitions are copied, as of a configuration, until they count as copies. */
export type TellFilled = (configurationId: ConfigurationId, partitions: readonly number[]) => void;

export interface CopiesOptions extends CopyingOptions {
  readonly view: ViewHolder;
  readonly replica: FillingReplica & KnownEnds;
  readonly hasReplicated: () => boolean;
}

/** Serves those who copy, by handlers that `handle` takes, and copies for this node. */
export function copiesOf(
  { view, hasReplicated, ...options }: CopiesOptions,
  handle: (handler: Handler<unknown>) => void,
): Copying {
  const { driver, executor, tables, backup, replica } = options;
  const { clock } = driver.endpoint;
  const source = new CopySource({ view, executor, tables, backup, clock, replica, hasReplicated });
  for (const { kind, serve } of COPYING_HANDLERS) {
    handle({ kind, serve: (_, incoming) => serve(source, incoming) });
  }
  return new Copying(options);
}
