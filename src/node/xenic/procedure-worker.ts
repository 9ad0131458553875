/**
 * Where procedures marked `runs: "nic"` run: a thread of the NIC's, one call at a time, that the NIC ends if a call takes too long.
 * A run is given rows and gives back what it wants more, or what it writes and returns. It does not wait for
 * rows: a run that needs one it was not given is given up, and repeated with it (multi-shot, Xenic §4.2.2).
 */

import { getHeapStatistics } from "node:v8";
import { parentPort } from "node:worker_threads";
import { isProcedure, type Procedure } from "../../database/procedure.ts";
import { RemoteTransaction } from "../../database/remote/remote-transaction.ts";
import { ENDED } from "../../database/run/ended.ts";
import { noScans } from "../../database/xenic/xenic-execution.ts";
import { checkXenicTable, XenicRows } from "../../database/xenic/xenic-rows.ts";
import { Reader, Writer } from "../../fabric/wire.ts";
import type { Entry } from "../../protocols/execute/remote-access-set.ts";
import { RemoteTable } from "../../protocols/execute/remote-table.ts";
import {
  type Ended,
  encodeEnded,
  type OpenedTable,
} from "../../protocols/xenic/client-messages.ts";
import { type Item, type RowName, rowId, type Value } from "../../protocols/xenic/message.ts";
import type { Wanted, Write } from "../../protocols/xenic/procedure.ts";
import { SituError } from "../../runtime/errors.ts";
import { XENIC_PROCEDURE_HEAP_MIB } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Placement } from "../../tables/partitions.ts";
import type { Table } from "../../tables/table.ts";
import { importModule } from "../procedures.ts";

export interface ProcedureTask {
  readonly procedureModules: readonly string[];
}

export type ToWorker =
  | { readonly what: "table"; readonly table: OpenedTable }
  /** Which rows it is called with. */
  | { readonly what: "plan"; readonly name: string; readonly args: Int32Array }
  | {
      readonly what: "run";
      readonly name: string;
      readonly args: Int32Array;
      readonly items: readonly Item[];
    };

/** What it says to each. */
export type RunAnswer =
  | ({ readonly what: "more" } & Wanted)
  | { readonly what: "done"; readonly writes: readonly Write[]; readonly result: Int32Array };

/** With an answer: whether the run has left something behind that a later one could suffer from. */
export type FromWorker = (RunAnswer & { readonly isSpent?: boolean }) | { readonly what: "ready" };

export function isProcedureTask(task: unknown): task is ProcedureTask {
  return typeof task === "object" && task !== null && "procedureModules" in task;
}

/** Rows lie at nodes by Xenic's placement; tables only want one. */
const ANYWHERE: Placement = {
  partitions: 1,
  primaryOf: () => 0,
  backupsOf: () => [],
  copiesOf: () => [0],
  fillingOf: () => [],
  primarySince: () => 1,
  replicasSince: () => 1,
};

class Runs {
  readonly #procedures: ReadonlyMap<string, Procedure>;
  readonly #opened = new Map<string, OpenedTable>();
  readonly #tables = new Map<number, { readonly remote: RemoteTable; readonly rows: XenicRows }>();

  constructor(procedures: ReadonlyMap<string, Procedure>) {
    this.#procedures = procedures;
  }

  addTable(table: OpenedTable): void {
    this.#opened.set(table.name, table);
  }

  plan(name: string, args: Int32Array): RunAnswer {
    const { rows } = this.#procedures.get(name)!;
    const reads: RowName[] = [];
    const writes: RowName[] = [];
    try {
      for (const [table, key, how] of rows?.(...valuesOf(args)) ?? []) {
        const { remote, rows: known } = this.#tableOf(table);
        const row = { table: known.number, key: known.objectOf(remote.keptKey(key)) };
        (how === "read" ? reads : writes).push(row);
      }
    } catch (error) {
      return failed(name, error);
    }
    return { what: "more", reads, writes };
  }

  async run(name: string, args: Int32Array, items: readonly Item[]): Promise<RunAnswer> {
    const procedure = this.#procedures.get(name)!;
    const given = new Map(items.map((item) => [rowId(item), item]));
    let wantMore: (wanted: RunAnswer) => void = () => {};
    const more = new Promise<RunAnswer>((resolve) => {
      wantMore = resolve;
    });
    const tx = new RemoteTransaction({
      view: { nodes: [], configurationId: 1 },
      tableOf: (table) => this.#tableOf(table).remote,
      pause: async () => {},
      run: async () => {
        throw noScans();
      },
      fetch: (entries) => {
        const missing = entries.filter((entry) => !given.has(rowId(this.#rowOf(entry))));
        if (missing.length > 0) {
          wantMore(this.#more(procedure, missing));
          return new Promise<never>(() => {});
        }
        for (const entry of entries) this.#take(entry, given.get(rowId(this.#rowOf(entry)))!);
        return Promise.resolve(true);
      },
    });
    const done = this.#body(procedure, tx, args, given);
    const ended = await Promise.race([done, more]);
    tx.end(ENDED);
    return ended;
  }

  async #body(
    procedure: Procedure,
    tx: RemoteTransaction,
    args: Int32Array,
    given: ReadonlyMap<string, Item>,
  ): Promise<RunAnswer> {
    try {
      const value = await procedure.body(tx, ...valuesOf(args));
      await tx.settle();
      const unseen = tx.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
      const written = tx.accesses.toConfirm().filter(({ isWritten }) => isWritten);
      const unlocked = written.filter((entry) => !given.get(rowId(this.#rowOf(entry)))?.isWritten);
      if (unlocked.length > 0) return this.#more(procedure, unlocked);
      const writes = this.#writes(written, given);
      return { what: "done", writes, result: wordsOf({ isDone: true, value }) };
    } catch (error) {
      return failed(procedure.name, error);
    }
  }

  #writes(entries: readonly Entry[], given: ReadonlyMap<string, Item>): Write[] {
    const objects = new Map<string, { row: RowName; rows: XenicRows; entries: Entry[] }>();
    for (const entry of entries) {
      const row = this.#rowOf(entry);
      const found = objects.get(rowId(row));
      if (found !== undefined) found.entries.push(entry);
      else
        objects.set(rowId(row), {
          row,
          rows: this.#tableOf(entry.table.table).rows,
          entries: [entry],
        });
    }
    return [...objects].map(([id, { row, rows, entries: changes }]) => {
      const base: Value = given.get(id)?.value ?? null;
      return { ...row, value: rows.merge(base, changes) };
    });
  }

  /** Rows that were not given, or not locked. One that has named all its rows gets no others. */
  #more({ name, rows }: Procedure, entries: readonly Entry[]): RunAnswer {
    if (rows !== undefined) {
      const { table, key } = entries[0];
      const which = `${table.table.name} ${show(key)}`;
      const why = `uses the row ${which} in a way that its rows() does not say: add it there`;
      return failed(name, new SituError("SITU_PROCEDURE", `procedure ${name} ${why}`));
    }
    const isWriting = ({ isWritten, wantsLock }: Entry): boolean => isWritten || wantsLock;
    return {
      what: "more",
      reads: entries.filter((entry) => !isWriting(entry)).map((entry) => this.#rowOf(entry)),
      writes: entries.filter(isWriting).map((entry) => this.#rowOf(entry)),
    };
  }

  #take(entry: Entry, item: Item): void {
    if (entry.isKnown) return;
    entry.row = this.#tableOf(entry.table.table).rows.rowIn(item.value ?? null, entry.key);
    entry.isKnown = true;
  }

  #rowOf(entry: Entry): RowName {
    const { rows } = this.#tableOf(entry.table.table);
    return { table: rows.number, key: rows.objectOf(entry.key) };
  }

  #tableOf(table: Table): { readonly remote: RemoteTable; readonly rows: XenicRows } {
    let found = this.#tables.get(table?.ordinal);
    if (found !== undefined) return found;
    const opened = this.#opened.get(table?.name);
    if (opened === undefined) {
      const why = `table ${show(table?.name)} is not one that the procedure has named in its tables`;
      throw new SituError("SITU_UNKNOWN_TABLE", why);
    }
    checkXenicTable(table);
    const rows = new XenicRows(table);
    rows.opened(opened);
    found = { remote: new RemoteTable(table, ANYWHERE), rows };
    this.#tables.set(table.ordinal, found);
    return found;
  }
}

/** In the worker. */
export async function runProcedureWorker({ procedureModules }: ProcedureTask): Promise<void> {
  const port = parentPort!;
  const tell = (message: FromWorker): void => port.postMessage(message);
  const procedures = new Map<string, Procedure>();
  for (const path of procedureModules) {
    for (const found of Object.values(await importModule(path)).filter(isProcedure)) {
      procedures.set(found.name, found);
    }
  }
  const runs = new Runs(procedures);
  let atRest = 0;
  /** Timers and the like, buffers, or a heap that is nearly full: the next run would be blamed for it. */
  const isSpent = (): boolean =>
    process.memoryUsage().external > XENIC_PROCEDURE_HEAP_MIB * 2 ** 20 ||
    getHeapStatistics().used_heap_size > 0.75 * XENIC_PROCEDURE_HEAP_MIB * 2 ** 20 ||
    lastingResources() > atRest;
  port.on("message", (wanted: ToWorker) => {
    if (wanted.what === "table") runs.addTable(wanted.table);
    else if (wanted.what === "plan") tell(runs.plan(wanted.name, wanted.args));
    else {
      void runs
        .run(wanted.name, wanted.args, wanted.items)
        .then((answer) => tell({ ...answer, isSpent: isSpent() }));
    }
  });
  atRest = lastingResources();
  tell({ what: "ready" });
}

/** Without requests, which come to an end by themselves: those of loading the modules may be under way. */
function lastingResources(): number {
  return process.getActiveResourcesInfo().filter((kind) => !kind.endsWith("Req")).length;
}

/** An error is a result as well: it is believed when all that was read is still so. */
function failed(name: string, error: unknown): RunAnswer {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const isOurs = typeof code === "string" && code.startsWith("SITU_");
  const text = error instanceof Error ? `${error.name}: ${error.message}` : show(error);
  const told = isOurs
    ? { code, message: String(message) }
    : { code: "SITU_PROCEDURE", message: `procedure ${name} failed: ${text}` };
  return { what: "done", writes: [], result: wordsOf({ isDone: false, ...told }) };
}

export function wordsOf(ended: Ended): Int32Array {
  const out = new Writer();
  encodeEnded(out, ended);
  return out.views.i32.slice(0, out.at);
}

function valuesOf(args: Int32Array): unknown[] {
  const out = new Writer();
  out.words(args, 0, args.length);
  return new Reader(out.views).reset(out.views, 0, out.at).value() as unknown[];
}
