// Situ on one machine: every worker process opens the same store. One transaction at a time in a
// process is `transactSync`, several are `transact`.
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { type Database, open, type Table } from "situ";
import {
  linkRowsOf,
  loadLinks,
  situLinks,
  situLinksAsync,
} from "../../../workloads/linkbench/situ.ts";
import { LinkNode, type LinkStore } from "../../../workloads/linkbench/store.ts";
import { situObjects, situObjectsAsync } from "../../../workloads/objects/situ.ts";
import type { ObjectStore, ObjectTable } from "../../../workloads/objects/store.ts";
import { situSmallBank } from "../../../workloads/smallbank/situ.ts";
import { situSmallBankAsync } from "../../../workloads/smallbank/situ-async.ts";
import type { SmallBankStore } from "../../../workloads/smallbank/store.ts";
import { situTatp } from "../../../workloads/tatp/situ.ts";
import { situTatpAsync } from "../../../workloads/tatp/situ-async.ts";
import type { TatpStore } from "../../../workloads/tatp/store.ts";
import { situTpcc, situTpccDurable } from "../../../workloads/tpcc/situ.ts";
import { situTpccAsync } from "../../../workloads/tpcc/situ-async.ts";
import type { TpccStore } from "../../../workloads/tpcc/store.ts";
import { Warehouse } from "../../../workloads/tpcc/tables.ts";
import type { ReadRows } from "../../../workloads/workload.ts";
import { situYcsb, situYcsbAsync } from "../../../workloads/ycsb/situ.ts";
import type { YcsbStore, YcsbTable } from "../../../workloads/ycsb/store.ts";
import { diskFolder } from "../../durable/disk.ts";
import { temporaryFolder } from "../../harness/resources.ts";
import type {
  Durability,
  Engine,
  EngineDriver,
  EngineHost,
  OpenOptions,
  Place,
  StartOptions,
} from "../engine.ts";
import { loadRows } from "./load.ts";
import { memoryBytesFor, situVersion } from "./version.ts";

const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

interface SituPlace {
  readonly path: string;
  readonly memoryDir: string;
}

export const situDriver: EngineDriver = {
  name: "situ",
  async start(options) {
    return { available: true, version: situVersion(), value: startSitu(options) };
  },
  async open(place, options) {
    const { path, memoryDir } = place as unknown as SituPlace;
    const at = { path, memoryDir };
    const db = await openStore(at, options, awaitsItself(options) ? "lazy" : options.durability);
    return new SituEngine(db, at, options);
  },
};

function startSitu({ durability, inFlight }: StartOptions): EngineHost {
  const path = temporaryFolder(durability === "none" ? tmpdir() : diskFolder());
  // A folder of its own: what is left of the store's memory goes with it, whatever happened.
  const memoryDir = temporaryFolder(memoryFolder);
  const place: SituPlace & Place = { path, memoryDir };
  const calls = inFlight === 1 ? "transactSync" : "transact";
  return {
    settings: `durability "${durability}", ${calls}, memory shared by all processes`,
    place,
    async stop() {
      rmSync(path, { recursive: true, force: true });
      rmSync(memoryDir, { recursive: true, force: true });
    },
  };
}

/**
 * TPC-C with many in flight that wait for the disk: all of them change the few rows of warehouses and
 * districts. So they run one by one, by `transactSync`, and wait for the disk together.
 */
function awaitsItself({ durability, inFlight, tables }: OpenOptions): boolean {
  return durability === "sync" && inFlight > 1 && tables.includes(Warehouse as Table);
}

function openStore(
  { path, memoryDir }: SituPlace,
  { tables, bytes }: OpenOptions,
  durability: Durability,
): Promise<Database> {
  const memoryBytes = memoryBytesFor(bytes);
  // A graph brings its own tables.
  const own = isGraph(tables) ? [] : tables;
  return open({ path, memoryDir, tables: own, memoryBytes, durability });
}

function isGraph(tables: readonly Table[]): boolean {
  return tables.includes(LinkNode as Table);
}

class SituEngine implements Engine {
  readonly #db: Database;
  readonly #place: SituPlace;
  readonly #options: OpenOptions;
  readonly #isSync: boolean;

  constructor(db: Database, place: SituPlace, options: OpenOptions) {
    this.#db = db;
    this.#place = place;
    this.#options = options;
    this.#isSync = options.inFlight === 1;
  }

  /** Where each batch would wait for the disk: by a second opening that waits only at the end. */
  async load(rows: Parameters<Engine["load"]>[0]): Promise<void> {
    const { durability, tables } = this.#options;
    const fill = isGraph(tables) ? loadLinks : loadRows;
    if (durability === "sync") {
      const db = await openStore(this.#place, this.#options, "lazy");
      fill(db, rows);
      await db.close();
    } else fill(this.#db, rows);
    // The log of the load would be due for a checkpoint at any moment of the run.
    if (durability !== "none") await this.#db.checkpoint();
  }

  readonly rows: ReadRows = (table: Table) =>
    isGraph(this.#options.tables)
      ? linkRowsOf(this.#db)(table)
      : (this.#db.scan(table) as ReturnType<ReadRows>);

  ycsb(table: YcsbTable): YcsbStore {
    return this.#isSync ? situYcsb(this.#db, table) : situYcsbAsync(this.#db, table);
  }

  smallbank(): SmallBankStore {
    return this.#isSync ? situSmallBank(this.#db) : situSmallBankAsync(this.#db);
  }

  tatp(): TatpStore {
    return this.#isSync ? situTatp(this.#db) : situTatpAsync(this.#db);
  }

  tpcc(): TpccStore {
    if (this.#isSync) return situTpcc(this.#db);
    return awaitsItself(this.#options) ? situTpccDurable(this.#db) : situTpccAsync(this.#db);
  }

  linkbench(): LinkStore {
    return this.#isSync ? situLinks(this.#db) : situLinksAsync(this.#db);
  }

  objects(table: ObjectTable): ObjectStore {
    return this.#isSync ? situObjects(this.#db, table) : situObjectsAsync(this.#db, table);
  }

  /** The store counts for all processes together: the first speaks for all, it is in every run. */
  retries(): number {
    return this.#options.isFirst ? this.#db.stats().counters.conflicts : 0;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}
