/**
 * Giving a table another schema: its successor is announced, filled, and put in its place (stored.ts tells
 * the states, and what holds in each). One process, the owner, does the work, and notes in the catalogue
 * how far it is; the others wait for it. If it dies, or fails and so gives the work up, one of them becomes the
 * owner and goes on.
 */

import { Transaction } from "../../engine/transaction.ts";
import type { Address } from "../../memory/address.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { nowMs, sleep, turn } from "../../runtime/clock.ts";
import { SituError, type SituErrorCode } from "../../runtime/errors.ts";
import {
  MIGRATION_NOTE_MS,
  MIGRATION_POLL_MS,
  MIGRATION_RANGE_ROWS,
  MIGRATION_RANGES,
} from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { BatchRunner, type FillPlace, keyBatches } from "../backfill.ts";
import { readSchemas, readTable, writeSchema } from "../catalogue.ts";
import { movedChanges } from "../changes/watched-changes.ts";
import { announceChange, everyoneKnows } from "../everyone-knows.ts";
import { structuresOf } from "../indexes/forms.ts";
import { StoredTable } from "../indexes/stored-table.ts";
import { type RowValues, Structure } from "../indexes/structure.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import type { StoredSchema } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import type { CopyTarget } from "./action.ts";
import { type MigrationContext, transact } from "./context.ts";
import { givenUp, isAlive, isOwn, ownerIn } from "./owner.ts";
import { Pace } from "./pace.ts";
import { FOLLOWED } from "./row-mode.ts";
import type { BuiltSchema, CopyRange, Remains, StoredProgress, StoredSuccessor } from "./stored.ts";
import { placedStore, Successor } from "./successor.ts";

/** Errors that mean that the rows do not allow the new schema, or that there is no room for it. */
const REFUSALS: readonly SituErrorCode[] = [
  "SITU_UNIQUE",
  "SITU_TOO_LARGE",
  "SITU_TYPE",
  "SITU_FULL",
];

/** Announces the successor; false if the table has changed since the plan was made. */
export function announceSuccessor(
  context: MigrationContext,
  planned: CatalogueTable,
  { schema: wanted, sources }: CopyTarget,
  total: number,
): boolean {
  const { executor } = context;
  const table = tableFromSchema(wanted);
  const structure = new Structure(table as Table<RowValues>);
  const owner = ownerIn(executor);
  const build = uniqueId();
  const range = rangeOf(context, planned, total);
  return transact(context, subjectOf(planned), (tx) => {
    const { schema } = readTable(tx, planned.position);
    if (JSON.stringify(schema) !== JSON.stringify(planned.schema)) return false;
    const built: BuiltSchema = {
      ...wanted,
      indexes: wanted.indexes.map((index) => ({
        ...index,
        state: "ready",
        roots: structuresOf(table, index).map((part) => part.create(tx)),
        build,
      })),
    };
    const root = structure.create(tx);
    const progress = { rows: 0, total };
    const successor: StoredSuccessor = {
      state: "announced",
      build,
      owner,
      schema: built,
      root,
      sources,
      progress,
      range,
    };
    writeSchema(tx, planned.position, { ...schema, successor });
    return true;
  });
}

/** How a table is copied: in up to so many ranges, each of at least so many rows. */
function rangeOf(context: MigrationContext, planned: CatalogueTable, total: number): CopyRange {
  const { rows } = rowsOf(context, planned);
  const end = placedStore(rows)?.places ?? 1;
  let ranges = 1;
  while (ranges < MIGRATION_RANGES && total >= 2 * ranges * MIGRATION_RANGE_ROWS) ranges *= 2;
  if (end === 1 || ranges === 1) return { upTo: 0, announcedTo: 1, end: 1, step: 1 };
  return { upTo: 0, announcedTo: end / ranges, end, step: end / ranges };
}

function rowsOf({ executor }: MigrationContext, { schema, root }: CatalogueTable): StoredTable {
  return new StoredTable(executor, tableFromSchema(schema), root, []);
}

/** About how many rows a table has, letting the event loop turn while they are counted. */
export async function countRows(
  context: MigrationContext,
  planned: CatalogueTable,
): Promise<number> {
  const { rows } = rowsOf(context, planned);
  const cursor = rows.cursor({ from: undefined, to: undefined }, false);
  const source = context.source();
  let count = 0;
  try {
    for (;;) {
      const more = source.run((tx) => cursor.skip(tx), undefined);
      if (more === 0) return count;
      count += more;
      await turn();
    }
  } finally {
    source.release();
  }
}

function subjectOf({ schema }: CatalogueTable): string {
  return `the migration of table ${schema.name}`;
}

/** Does what is left to be done for the successor of a table, or waits for the one who does. */
export async function finishSuccessor(context: MigrationContext, position: number): Promise<void> {
  await new TableCopy(context, position).run();
}

class TableCopy {
  readonly #context: MigrationContext;
  readonly #position: number;
  readonly #pace: Pace;

  constructor(context: MigrationContext, position: number) {
    this.#context = context;
    this.#position = position;
    this.#pace = new Pace(context.executor);
  }

  async run(): Promise<void> {
    try {
      await this.#finish();
    } catch (error) {
      this.#giveUp();
      throw error;
    }
  }

  async #finish(): Promise<void> {
    const { executor, timeoutMs, check } = this.#context;
    for (;;) {
      check();
      const found = readSchemas(executor)[this.#position];
      const { successor } = found.schema;
      if (successor === undefined) return;
      if (!isOwn(executor, successor.owner)) {
        await this.#waitFor(found, successor);
        continue;
      }
      await everyoneKnows(executor, timeoutMs, subjectOf(found));
      if (successor.state === "announced") this.#moveRange(successor);
      else if (successor.state === "switching") this.#replace(successor);
      else if (await this.#fill(found, successor)) this.#moveOn(successor);
    }
  }

  async #waitFor(found: CatalogueTable, successor: StoredSuccessor): Promise<void> {
    this.#tell(found.schema.name, successor, successor.progress);
    if (isAlive(this.#context.executor, successor.owner)) await sleep(MIGRATION_POLL_MS);
    else this.#write(successor, (now) => ({ ...now, owner: ownerIn(this.#context.executor) }));
  }

  /** One who fails goes on with other things, and the others are not to wait for it. */
  #giveUp(): void {
    const { executor } = this.#context;
    try {
      const { successor } = readSchemas(executor)[this.#position].schema;
      if (successor === undefined || !isOwn(executor, successor.owner)) return;
      this.#write(successor, (now) => ({ ...now, owner: givenUp(now.owner) }));
    } catch (error) {
      passOver(error, "giving up a migration");
    }
  }

  #tell(table: string, { owner }: StoredSuccessor, { rows, total }: StoredProgress): void {
    this.#context.onProgress({ table, pid: owner.pid, rows, total: Math.max(rows, total) });
  }

  /** Changes the successor, if it is still the same attempt in the same state. */
  #write(expected: StoredSuccessor, change: (now: StoredSuccessor) => StoredSuccessor): boolean {
    return transact(this.#context, "a migration", (tx) => {
      const { schema } = readTable(tx, this.#position);
      const { successor } = schema;
      const isSame =
        successor?.build === expected.build &&
        successor.state === expected.state &&
        successor.owner.since === expected.owner.since &&
        successor.owner.slot === expected.owner.slot;
      if (isSame) writeSchema(tx, this.#position, { ...schema, successor: change(successor) });
      return isSame;
    });
  }

  /** All rows of the range are copied: the next one, or the end. */
  #moveOn(successor: StoredSuccessor): void {
    if (successor.range.upTo < successor.range.end) this.#moveRange(successor);
    else this.#write(successor, (now) => ({ ...now, state: "switching" }));
  }

  #moveRange(successor: StoredSuccessor): void {
    const { upTo: place, announcedTo: upTo, end, step } = successor.range;
    this.#write(successor, ({ progress: { rows, total }, ...now }) => ({
      ...now,
      state: "building",
      progress: { rows, total, ...(end === 1 ? {} : { place }) },
      range: { upTo, announcedTo: Math.min(end, upTo + step), end, step },
    }));
  }

  /** Copies the rows of the range; false if that is no longer this executor's business. */
  async #fill(found: CatalogueTable, stored: StoredSuccessor): Promise<boolean> {
    const { executor, timeoutMs, source, check } = this.#context;
    const old = rowsOf(this.#context, found);
    const successor = new Successor(executor, old.table, old.rows, stored);
    const tx = new Transaction(executor);
    tx.subject = subjectOf(found);
    const batches = new BatchRunner(executor, tx, timeoutMs, (keys) => {
      if (!this.#isFilling(tx, stored)) return false;
      for (const key of keys) {
        const row = old.rows.read(tx, key);
        if (row !== undefined) successor.copy(tx, row);
      }
      return true;
    });
    const { upTo, end } = stored.range;
    const isBehind = (place: FillPlace): boolean =>
      end > 1 && typeof place === "number" && place >= upTo;
    const { total } = stored.progress;
    let { rows } = stored.progress;
    let notedMs = nowMs();
    try {
      for await (const { keys, place } of keyBatches(old, source, stored.progress.place)) {
        check();
        // A shard may be part of two ranges.
        const own = keys.filter((key) => successor.modeOf(key) === FOLLOWED);
        if (own.length > 0 && !batches.run(own)) return false;
        successor.maintain();
        rows += own.length;
        if (place !== undefined && isBehind(place)) break;
        if (place !== undefined && nowMs() - notedMs > MIGRATION_NOTE_MS) {
          const progress = { rows, total, place };
          if (!this.#write(stored, (now) => ({ ...now, progress }))) return false;
          this.#tell(found.schema.name, stored, progress);
          notedMs = nowMs();
        }
        await this.#pace.rest();
      }
      const isAll = upTo === end;
      const progress = { rows, total: isAll ? rows : total, ...(end > 1 && { place: upTo }) };
      this.#tell(found.schema.name, stored, progress);
      return this.#write(stored, (now) => ({ ...now, progress }));
    } catch (error) {
      if (!(error instanceof SituError) || !REFUSALS.includes(error.code)) throw error;
      if (this.#takeOut(stored)) throw notMigrated(found, error);
      return false;
    }
  }

  #isFilling(tx: Transaction, { build }: StoredSuccessor): boolean {
    const { successor } = readTable(tx, this.#position).schema;
    return (
      successor?.build === build &&
      successor.state === "building" &&
      isOwn(this.#context.executor, successor.owner)
    );
  }

  /** Makes the successor the table. */
  #replace(expected: StoredSuccessor): void {
    const isReplaced = transact(this.#context, "a migration", (tx) => {
      const { schema, root } = readTable(tx, this.#position);
      const { successor } = schema;
      if (successor?.build !== expected.build || successor.state !== "switching") return false;
      const remains = [...(schema.remains ?? []), remainsOf(schema, successor, root)];
      const next: StoredSchema = {
        ...successor.schema,
        // It may have been renamed since.
        name: schema.name,
        ...(schema.formerNames === undefined ? {} : { formerNames: schema.formerNames }),
        ...(schema.id === undefined ? {} : { id: schema.id }),
        leftovers: [],
        remains,
        ...(schema.changes && { changes: movedChanges(schema.changes, schema, successor) }),
      };
      writeSchema(tx, this.#position, next, successor.root);
      return true;
    });
    if (isReplaced) announceChange(this.#context.executor);
  }

  /** Takes a successor out that cannot be built; false if it was somebody else's by then. */
  #takeOut(expected: StoredSuccessor): boolean {
    const isOut = transact(this.#context, "a migration", (tx) => {
      const { schema } = readTable(tx, this.#position);
      const { successor, ...rest } = schema;
      if (successor?.build !== expected.build || successor.state !== "building") return false;
      const { build, owner, root, schema: built } = successor;
      const remains = [...(schema.remains ?? []), { build, owner, root, schema: built }];
      writeSchema(tx, this.#position, { ...rest, remains });
      return true;
    });
    announceChange(this.#context.executor);
    return isOut;
  }
}

/** All structures of a table that its successor has replaced. */
function remainsOf(
  { name, fields, key, ordered, layout, indexes, leftovers }: StoredSchema,
  { build, owner }: StoredSuccessor,
  root: Address,
): Remains {
  const schema = {
    name,
    fields,
    key,
    ordered,
    ...(layout === undefined ? {} : { layout }),
    indexes: [...indexes, ...leftovers],
  };
  return { build, owner, schema, root };
}

function notMigrated({ schema: { name } }: CatalogueTable, cause: SituError): SituError {
  return new SituError(
    cause.code,
    `table ${name} cannot be migrated, and is as it was before. ${cause.message}`,
    { cause },
  );
}
