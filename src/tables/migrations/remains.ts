/**
 * Freeing the structures that a migration, or an index for which there was no room, has left behind. Nobody reads or writes them any more: before
 * the first part is freed, all transactions that might are waited for, and all snapshots from before. Each
 * part is freed by a transaction, and the last one of a structure takes it off the list, so whoever finds
 * remains whose owner is dead goes on with them.
 */

import { limitHigh, limitLow } from "../../engine/tid.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, NO_ADDRESS } from "../../memory/address.ts";
import { pause, turn } from "../../runtime/clock.ts";
import { MIGRATION_POLL_MS } from "../../runtime/limits.ts";
import { readSchema, readSchemas, writeSchema } from "../catalogue.ts";
import { nobodyKeeps } from "../device/keeper-role.ts";
import { everyoneKnows } from "../everyone-knows.ts";
import { structuresOf } from "../indexes/forms.ts";
import { type RowValues, Structure } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type MigrationContext, transact } from "./context.ts";
import { isAlive, isOwn, ownerIn } from "./owner.ts";
import { Pace } from "./pace.ts";
import type { Remains } from "./stored.ts";

/** Whether the store has remains that are this executor's to free, or nobody's. */
export function hasRemains({ executor }: MigrationContext): boolean {
  return readSchemas(executor).some(({ schema }) =>
    schema.remains?.some(({ owner }) => isOwn(executor, owner) || !isAlive(executor, owner)),
  );
}

/** Frees all remains that are this executor's, or whose owner is dead. */
export async function clearRemains(context: MigrationContext): Promise<void> {
  const { executor } = context;
  for (const { schema, position } of readSchemas(executor)) {
    for (const remains of schema.remains ?? []) {
      if (!isOwn(executor, remains.owner)) {
        if (isAlive(executor, remains.owner) || !takeOver(context, position, remains)) continue;
      }
      await new Clearing(context, position, remains.build).run();
    }
  }
}

function takeOver(context: MigrationContext, position: number, remains: Remains): boolean {
  const owner = ownerIn(context.executor);
  return transact(context, "what a migration has left", (tx) => {
    const schema = readSchema(tx, position);
    const found = schema.remains?.find(({ build }) => build === remains.build);
    if (found?.owner.since !== remains.owner.since) return false;
    writeRemains(tx, position, { ...found, owner });
    return true;
  });
}

/** Replaces remains, or takes them off the list if nothing is left of them. */
function writeRemains(tx: Transaction, position: number, next: Remains): void {
  const schema = readSchema(tx, position);
  const isLeft = next.root !== undefined || next.schema.indexes.length > 0;
  const { remains: before = [], ...rest } = schema;
  const remains = before.flatMap((each) => {
    if (each.build !== next.build) return [each];
    return isLeft ? [next] : [];
  });
  writeSchema(tx, position, remains.length === 0 ? rest : { ...rest, remains });
}

class Clearing {
  readonly #context: MigrationContext;
  readonly #position: number;
  readonly #build: string;

  constructor(context: MigrationContext, position: number, build: string) {
    this.#context = context;
    this.#position = position;
    this.#build = build;
  }

  async run(): Promise<void> {
    const { executor, timeoutMs, check } = this.#context;
    await everyoneKnows(executor, timeoutMs, "freeing what a migration has left");
    const epoch = executor.mark() + 1;
    const { registry } = executor.versions;
    while (registry.hasBefore(limitHigh(epoch), limitLow(epoch))) {
      check();
      await pause(MIGRATION_POLL_MS);
      registry.releaseExpired();
    }
    // In the background, rows of tables on the device are moved without a look at the catalogue's generation.
    while (!nobodyKeeps(executor)) {
      check();
      await pause(MIGRATION_POLL_MS);
    }
    const pace = new Pace(executor);
    for (;;) {
      check();
      const isDone = transact(this.#context, "what a migration has left", (tx) => this.#free(tx));
      if (isDone) return;
      await turn();
      await pace.rest();
    }
  }

  /** Frees a part; true if nothing is left, or it is somebody else's by now. */
  #free(tx: Transaction): boolean {
    const remains = readSchema(tx, this.#position).remains?.find(
      ({ build }) => build === this.#build,
    );
    if (remains === undefined || !isOwn(this.#context.executor, remains.owner)) return true;
    const table = tableFromSchema({ ...remains.schema, indexes: [] });
    try {
      this.#freeSome(tx, remains, table);
    } catch (error) {
      tx.failHalfWay(error);
    }
    return false;
  }

  #freeSome(tx: Transaction, remains: Remains, table: Table): void {
    const [index] = remains.schema.indexes;
    if (index === undefined) {
      if (remains.root === undefined) return;
      if (!dismantle(tx, new Structure(table as Table<RowValues>), remains.root)) return;
      const { root: _, ...rest } = remains;
      writeRemains(tx, this.#position, rest);
      return;
    }
    const at = index.roots.findIndex((root) => root !== NO_ADDRESS);
    if (!dismantle(tx, structuresOf(table, index)[at], index.roots[at])) return;
    const roots = index.roots.map((root, i) => (i === at ? NO_ADDRESS : root));
    const others = remains.schema.indexes.slice(1);
    const isGone = roots.every((root) => root === NO_ADDRESS);
    const indexes = isGone ? others : [{ ...index, roots }, ...others];
    writeRemains(tx, this.#position, { ...remains, schema: { ...remains.schema, indexes } });
  }
}

function dismantle(
  tx: Transaction,
  structure: Structure<RowValues, unknown>,
  root: Address,
): boolean {
  return structure.kind.dismantle(tx, structure.codec, root);
}
