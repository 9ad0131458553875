/**
 * A thread of the device (a processing element, §3.1 of the paper): an executor of its own in the store, which
 * carries out operations on device tables for a database in the same process. Operations take turns where they
 * wait for the disk. What a thread holds is given back when it dies, as that of any executor.
 */

import { parentPort, workerData } from "node:worker_threads";
import { deviceOf } from "../../../device/device.ts";
import { Executor } from "../../../engine/executor.ts";
import { FileLockLeases } from "../../../engine/leases/file-lock.ts";
import { bootId } from "../../../memory/boot.ts";
import { SCHEMA_GENERATION } from "../../../memory/control.ts";
import { MappedSegments } from "../../../memory/mapped-segments.ts";
import { joinMemory } from "../../../memory/mapped-store.ts";
import { SituError } from "../../../runtime/errors.ts";
import { openTable } from "../../catalogue.ts";
import type { TableStore } from "../../indexes/table-store.ts";
import type { DeviceTable } from "../device-table.ts";
import { workOf } from "../device-work.ts";
import { filesInUse } from "../stale-files.ts";
import { ChangeJob } from "./change-job.ts";
import { RememberedMaps } from "./map-steps.ts";
import {
  type ChangeOrder,
  type ElementTask,
  type Order,
  type Request,
  type Told,
  toldError,
} from "./messages.ts";
import { Projections } from "./projection.ts";
import { type ElementTable, runRead } from "./read-job.ts";

/** Tables that a thread remembers to have open. */
const MOST_TABLES = 64;

export class Element {
  readonly #executor: Executor;
  readonly #tell: (told: Told) => void;
  readonly #tables = new Map<string, { readonly generation: number; readonly store: TableStore }>();
  /** By operation: those who wait until the reader has taken rows. */
  readonly #waiting = new Map<number, () => void>();
  readonly #running = new Set<Promise<void>>();
  readonly #projections = new Projections();
  readonly #maps = new RememberedMaps();

  constructor(executor: Executor, tell: (told: Told) => void) {
    this.#executor = executor;
    this.#tell = tell;
  }

  start(order: Order): void {
    const running: Promise<void> = this.#run(order).finally(() => {
      this.#running.delete(running);
      this.#waiting.delete(order.id);
    });
    this.#running.add(running);
  }

  /** The reader of a selection has taken rows. */
  taken(id: number): void {
    this.#waiting.get(id)?.();
  }

  async end(): Promise<void> {
    for (const wake of this.#waiting.values()) wake();
    await Promise.all(this.#running);
    deviceOf(this.#executor).close();
    this.#executor.close();
  }

  async #run(order: Order): Promise<void> {
    const { id } = order;
    try {
      const opened = this.#open(order);
      if (order.kind === "change") {
        await this.#change(opened, order);
        return;
      }
      let isMoved = false;
      const accumulated = await runRead(opened, order, {
        rows: (rows) => this.#tell({ id, rows }),
        taken: () => new Promise((resolve) => this.#waiting.set(id, resolve)),
        manyInDelta: () => {
          isMoved = true;
        },
      });
      this.#tell(accumulated === undefined ? { id, isDone: true } : { id, accumulated });
      // The next one finds them on pages, and in its projection.
      if (isMoved) moveDelta(opened.shared);
    } catch (error) {
      this.#tell({ id, failure: toldError(error) });
    }
  }

  async #change(opened: ElementTable, order: ChangeOrder): Promise<void> {
    const { id } = order;
    const job = new ChangeJob(opened, order);
    try {
      const changed = await job.run(() => this.#open(order).store);
      this.#tell({ id, changed });
    } catch (error) {
      this.#tell({ id, failure: toldError(error) });
    }
    await job.end();
  }

  #open({ table, root }: Order): ElementTable {
    const executor = this.#executor;
    const { i32 } = executor.memory.control;
    const key = JSON.stringify(table);
    const known = this.#tables.get(key);
    const generation = Atomics.load(i32, SCHEMA_GENERATION);
    let store = known?.store;
    if (store === undefined || known!.generation !== generation) {
      store = openTable(executor, table);
      this.#tables.delete(key);
      this.#tables.set(key, { generation, store });
      if (this.#tables.size > MOST_TABLES) this.#tables.delete(this.#tables.keys().next().value!);
    }
    if (store.root !== root) {
      throw new SituError(
        "SITU_SCHEMA",
        `table ${table.name} was dropped and made again meanwhile`,
      );
    }
    const device = deviceOf(executor);
    device.isInUse = (root, file) => filesInUse(executor).get(file) === root;
    const shared = device.tables.get(store.root) as DeviceTable;
    return { executor, store, shared, projections: this.#projections, maps: this.#maps };
  }
}

/** Moves the rows of the delta to pages, if nobody else does. Nobody waits for it: where it fails they stay in memory. */
function moveDelta(shared: DeviceTable): void {
  const work = workOf(shared.device).find(({ table }) => table === shared);
  try {
    work?.mover.move(Number.POSITIVE_INFINITY);
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
  }
}

/** Serves the database that has started this thread, until that says that it should end. */
export function serveElement(): void {
  const { path, memory: folder } = workerData as ElementTask;
  const port = parentPort!;
  const memory = joinMemory(new MappedSegments(folder), bootId());
  if (memory === undefined) throw new SituError("SITU_CLOSED", `${folder} is gone`);
  memory.path = path;
  const executor = Executor.open(memory, new FileLockLeases(folder));
  const element = new Element(executor, (told) => port.postMessage(told));
  port.on("message", (request: Request) => {
    if (request.kind === "taken") element.taken(request.id);
    else if (request.kind === "end") void element.end().finally(() => port.close());
    else element.start(request);
  });
}
