/**
 * NAM-DB's Figures 4 and 6: New-Orders a second on 2 to 56 machines, and what locality is worth (§7.1, §7.3). Compute servers run New-Order
 * with the project's own transactions (src/protocols/nam/transaction.ts) on the model of the paper's network: reads of warehouse,
 * district, customer, items and stocks; writes of district and stocks; an order, its entry and its lines are inserted. All of it by
 * verbs, with journals at two servers.
 *
 * A thread's own work beside the verbs is in no figure of the paper. It is one constant for each figure, and both are fitted:
 *
 *   Figure 4   to 3.64 M/s without locality on 56 machines. It stands for a New-Order and its share of the other four kinds of transactions,
 *              whose verbs are not simulated. That it grows linearly, 6.5 M/s with locality, and that classic SI bends, follow.
 *   Figure 6   to 1.5 M/s ("more than") without locality; New-Order alone. The gain of locality follows.
 *
 * The gain depends on how New-Order is written. Here it reads in three steps: warehouse, district and customer; all items; all stocks. With one
 * statement after the other the verbs of a transaction take 71 µs, not 40, and locality would be worth more than the paper's.
 *
 * Paper: machines, threads, 50 warehouses a memory server (Fig. 6: 200 in all), ten items on the average, one in a hundred of another
 * warehouse. Chosen: the tables hold rows from when they are first drawn, and have room for those; threads have a district each;
 * rows have the sizes of TPC-C's, but for the customer, of which the columns are read that New-Order needs.
 */

import type { Routine } from "../../src/protocols/message.ts";
import type { Wanted } from "../../src/protocols/nam/find.ts";
import { MOVED_BIT } from "../../src/protocols/nam/header.ts";
import { hashOf, isWhole, type NamTable } from "../../src/protocols/nam/layout.ts";
import type { TimestampLayout } from "../../src/protocols/nam/timestamps.ts";
import { NamTransaction } from "../../src/protocols/nam/transaction.ts";
import type { Random } from "../../src/runtime/random.ts";
import { type Hardware, NAMDB_B, NAMDB_ORACLE } from "../fabric/hardware.ts";
import { Servers } from "../fabric/machine.ts";
import { type ComputeServer, NamCluster } from "./cluster.ts";

export interface NewOrderLoad {
  readonly memoryServers: number;
  readonly computeServers: number;
  readonly threadsPerServer: number;
  /** Hardware threads of a machine. */
  readonly processors: number;
  /** What a thread does for each transaction, beside its verbs. */
  readonly workUs: number;
  readonly warehousesPerServer: number;
  readonly isLocal: boolean;
  /** Compute servers are on the memory servers' machines, whether they use that or not. */
  readonly sharesMachines: boolean;
  readonly timestamps: TimestampLayout;
  /** How many of 100 items come from another warehouse. */
  readonly remotePercent: number;
  readonly measuredUs: number;
}

export interface NewOrderRate {
  /** Millions a second, all machines together. */
  readonly mtps: number;
  readonly medianUs: number;
  readonly aborted: number;
  readonly verbsPerTransaction: number;
}

const ITEMS = 100_000;
const CUSTOMERS = 3_000;
const FEWEST_ITEMS = 5;
const MOST_ITEMS = 15;
/** Lines of an order have numbers of so many bits. */
const LINE_BITS = 4;
const LINE_MASK = (1 << LINE_BITS) - 1;
/** Numbers that threads, and orders of a thread, have room for. */
const ORDERS = 1_000;
const ORDERS_OF_A_RUN = 16;

/** Rows: words of data, and of how many there is room at each server. */
const SHAPES = {
  warehouse: { words: 22, cells: 256, ring: 2 },
  district: { words: 24, cells: 512, ring: 32 },
  customer: { words: 24, cells: 1_024, ring: 2 },
  item: { words: 20, cells: 4_096, ring: 2 },
  stock: { words: 76, cells: 4_096, ring: 2 },
  order: { words: 8, cells: 2_048, ring: 1 },
  entry: { words: 2, cells: 2_048, ring: 1 },
  line: { words: 14, cells: 16_384, ring: 1 },
} as const;

type TableName = keyof typeof SHAPES;
const NAMES = Object.keys(SHAPES) as TableName[];

export function newOrderRate(load: NewOrderLoad): NewOrderRate {
  return new NewOrderRun(load).run();
}

class NewOrderRun {
  readonly #load: NewOrderLoad;
  readonly #cluster: NamCluster;
  readonly #tables: Readonly<Record<TableName, NamTable>>;
  readonly #latencies: number[] = [];
  #aborted = 0;
  #verbs = 0;
  #isMeasuring = false;

  constructor(load: NewOrderLoad) {
    this.#load = load;
    const { memoryServers: servers } = load;
    const tables = NAMES.map((name) => {
      const { words, cells, ring } = SHAPES[name];
      return {
        name,
        keyWords: 2,
        dataWords: words,
        cells: cells * servers,
        ring,
        place: (key: Int32Array) =>
          (key[0] % servers) * cells + ((placeOf(name, key) >>> 0) % cells),
      };
    });
    const isOracle = load.timestamps === "oracle";
    const oracle: Hardware = isOracle ? NAMDB_ORACLE : NAMDB_B;
    this.#cluster = new NamCluster({
      seed: 1,
      hardware: NAMDB_B,
      hardwareOf: (id) => (id === servers ? oracle : undefined),
      trace: false,
      memoryServers: servers,
      computeServers: load.computeServers,
      threadsPerServer: load.threadsPerServer,
      timestamps: { layout: load.timestamps, own: "overlay" },
      tables,
      isLocal: load.isLocal,
      sharesMachines: load.sharesMachines,
      hasTimestampServer: true,
      journalWords: 4_096,
    });
    this.#tables = Object.fromEntries(
      NAMES.map((name, i) => [name, this.#cluster.directory.tables[i]]),
    ) as Record<TableName, NamTable>;
  }

  run(): NewOrderRate {
    const { computeServers, processors, measuredUs, workUs, threadsPerServer } = this.#load;
    const { fabric } = this.#cluster;
    const random = fabric.random("new-order");
    // All have begun when each processor has done its part of the first transactions.
    const warmUpUs = workUs * Math.max(1, threadsPerServer / processors) + 50;
    for (let number = 0; number < computeServers; number++) {
      const server = this.#cluster.computeServer(number);
      this.#cluster.openAtOnce(server);
      const { timestamps, driver } = server;
      if (timestamps.readsInBackground) {
        driver.detach(timestamps.fetchAlways(server.groups[0][0], () => false));
      }
      const cores = new Servers(processors);
      server.groups.flat().forEach((_thread, i) => {
        const beginUs = (random.below(1_000) / 1_000) * warmUpUs;
        fabric.at(beginUs, () => this.#loop(server, i, cores, random));
      });
    }
    fabric.run(warmUpUs);
    this.#isMeasuring = true;
    fabric.run(warmUpUs + measuredUs);
    const committed = this.#latencies.length;
    this.#latencies.sort((a, b) => a - b);
    return {
      mtps: committed / measuredUs,
      medianUs: this.#latencies[committed >> 1] ?? 0,
      aborted: this.#aborted,
      verbsPerTransaction: this.#verbs / Math.max(1, committed),
    };
  }

  #loop(server: ComputeServer, thread: number, cores: Servers, random: Random): void {
    const { fabric } = this.#cluster;
    const beganUs = fabric.nowUs;
    const running = server.groups.flat()[thread];
    const { roundTrips: _trips, ...before } = running.counts;
    const attempt = (): void => {
      const transaction = new NamTransaction(running, server.timestamps);
      server.driver.run(
        this.#newOrder(transaction, server.number, thread, random),
        0,
        (isCommitted) => {
          if (!isCommitted) {
            if (this.#isMeasuring) this.#aborted++;
            attempt();
            return;
          }
          if (this.#isMeasuring) {
            this.#latencies.push(fabric.nowUs - beganUs);
            for (const name of Object.keys(before) as (keyof typeof before)[]) {
              this.#verbs += running.counts[name] - before[name];
            }
          }
          this.#loop(server, thread, cores, random);
        },
        rethrow,
      );
    };
    fabric.at(cores.serve(fabric.nowUs, this.#load.workUs), attempt);
  }

  *#newOrder(
    transaction: NamTransaction,
    server: number,
    thread: number,
    random: Random,
  ): Routine<boolean> {
    const { memoryServers, warehousesPerServer, remotePercent } = this.#load;
    const tables = this.#tables;
    const warehouses = memoryServers * warehousesPerServer;
    // With locality a thread's warehouse is at its own machine, without it anywhere.
    const at = this.#load.isLocal ? server : server + thread;
    const home = (at % memoryServers) + memoryServers * (thread % warehousesPerServer);
    const district = server * ORDERS + thread;
    const wanted = [
      { table: tables.warehouse, key: pair(home, 0) },
      { table: tables.district, key: pair(home, district) },
      { table: tables.customer, key: pair(home, random.below(10 * CUSTOMERS)) },
    ];
    const [, row] = yield* this.#read(transaction, wanted);
    if (row === undefined) throw new Error("a district is there");
    const order = row[0];
    transaction.write(tables.district, wanted[1].key, changed(row));
    const chosen = new Set<number>();
    const count = FEWEST_ITEMS + random.below(MOST_ITEMS - FEWEST_ITEMS + 1);
    while (chosen.size < count) chosen.add(random.below(ITEMS));
    const items = [...chosen].map((item) => ({ table: tables.item, key: pair(home, item) }));
    yield* this.#read(transaction, items);
    const stocks = [...chosen].map((item) => {
      const isRemote = random.below(1_000) < 10 * remotePercent;
      return { table: tables.stock, key: pair(isRemote ? random.below(warehouses) : home, item) };
    });
    const found = yield* this.#read(transaction, stocks);
    for (const [i, { table, key }] of stocks.entries()) {
      const stock = found[i];
      // Somebody has written it since the snapshot. The version that was loaded is not kept as a version: again.
      if (stock === undefined) return false;
      transaction.write(table, key, changed(stock));
    }
    const inserted = (table: NamTable, number: number): void =>
      transaction.write(
        table,
        pair(home, ((district * ORDERS + order) << LINE_BITS) | number),
        new Int32Array(table.dataWords).fill(1),
      );
    inserted(tables.order, 0);
    inserted(tables.entry, 0);
    for (let i = 0; i < count; i++) inserted(tables.line, i);
    const { kind } = yield* transaction.commit();
    return kind === "committed";
  }

  /** Rows of one step, in one round trip. */
  *#read(
    transaction: NamTransaction,
    wanted: readonly Wanted[],
  ): Routine<(Int32Array | undefined)[]> {
    for (const { table, key } of wanted) this.#loadRow(table, key);
    return yield* transaction.read(wanted);
  }

  /**
   * A row as it was before anybody has written it, when it is drawn for the first time: of timestamp 0 of slot 0, which everybody sees. The
   * flag only tells it from a cell that was never used.
   */
  #loadRow(table: NamTable, key: Int32Array): void {
    for (let place = table.home(key); ; place = table.after(place)) {
      const { i32 } = this.#cluster.servers[place.server].region(table.segments.cells);
      const at = table.cellAt(place.cell);
      if (isWhole(i32, at, table.bodyWords)) {
        if (table.hasKey(i32, key, at)) return;
        continue;
      }
      i32.set(table.bodyOf(0, MOVED_BIT, 0, key, new Int32Array(table.dataWords)), at);
      i32[table.headerAt(place.cell) + 1] = MOVED_BIT;
      return;
    }
  }
}

/**
 * Within the server that has all rows of a warehouse. Lines of all orders of a run have cells of their own: several new keys of one
 * transaction that meet the same free cell would be in each other's way.
 */
function placeOf(name: TableName, key: Int32Array): number {
  if (name !== "line") return hashOf(key);
  const order = key[1] >> LINE_BITS;
  const thread = Math.floor(order / ORDERS) % ORDERS;
  return ((thread * ORDERS_OF_A_RUN + (order % ORDERS)) << LINE_BITS) | (key[1] & LINE_MASK);
}

function pair(one: number, other: number): Int32Array {
  return new Int32Array([one, other]);
}

function changed(data: Int32Array): Int32Array {
  const words = data.slice();
  words[0]++;
  return words;
}

function rethrow(error: unknown): never {
  throw error;
}

/** Millions of New-Orders a second on 56 machines, as the paper has them. */
export const FIGURE_4 = { without: 3.64, with: 6.5 } as const;
export const FIGURE_4_MACHINES = [2, 14, 56] as const;
/** Paper, §7: two processors of eight cores, with two threads each. */
const PROCESSORS_A = 32;
/** Fitted to 3.64 M/s: what 28 machines of so many processors have for each New-Order. */
const WORK_4_US = (28 * PROCESSORS_A) / FIGURE_4.without;

export type Series = "without locality" | "with locality" | "classic SI";

/** On many machines a shorter time shows as many transactions. */
export function figure4(
  machines: number,
  series: Series,
  measuredUs = machines > 14 ? 250 : 500,
): NewOrderRate {
  const isLocal = series === "with locality";
  return newOrderRate({
    memoryServers: isLocal ? machines : machines / 2,
    computeServers: isLocal ? machines : machines / 2,
    threadsPerServer: isLocal ? 30 : 60,
    processors: PROCESSORS_A,
    workUs: WORK_4_US,
    warehousesPerServer: 50,
    isLocal,
    sharesMachines: isLocal,
    timestamps: series === "classic SI" ? "oracle" : "both",
    remotePercent: 1,
    measuredUs,
  });
}

/** What locality is worth, and New-Orders on seven machines. */
export const FIGURE_6 = { gain: 1.3, mtps: 1.5 } as const;
/** Chosen: as in Fig. 4 with locality. */
const THREADS_6 = 30;
/** Fitted to 1.5 M/s: what is left of a thread's time beside its verbs, which take 40 µs or so. */
const WORK_6_US = (7 * THREADS_6) / FIGURE_6.mtps - 40;

/** `distributedPercent`: of the transactions, have an item of another warehouse. */
export function figure6(
  distributedPercent: number,
  isLocal: boolean,
  measuredUs = 400,
): NewOrderRate {
  return newOrderRate({
    memoryServers: 7,
    computeServers: 7,
    threadsPerServer: THREADS_6,
    // Paper, §7: two processors of ten cores, with two threads each.
    processors: 40,
    workUs: WORK_6_US,
    warehousesPerServer: 28,
    isLocal,
    sharesMachines: true,
    timestamps: "both",
    // One of its ten items, on the average.
    remotePercent: distributedPercent / 10,
    measuredUs,
  });
}
