/**
 * List-append on simulated NAM-DB, with faults: transactions of many threads read up to four lists and append to some
 * of them, while messages are lost, late, doubled and out of order, while compute servers are killed or paused
 * at any verb and settled by others that watch them, and while old versions are moved and collected. The history goes through the
 * checker for snapshot isolation: cycles with two adjacent anti-dependencies are allowed, write skew, and
 * nothing else. In the end no record may be locked, and every list is read once more.
 */

import type { NodeId } from "../../src/fabric/fabric.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { beat, Watcher } from "../../src/protocols/nam/beats.ts";
import type { ComputeThread } from "../../src/protocols/nam/compute-thread.ts";
import { isLockedHigh } from "../../src/protocols/nam/header.ts";
import type { NamTable } from "../../src/protocols/nam/layout.ts";
import { settle } from "../../src/protocols/nam/settle.ts";
import type { TimestampOptions } from "../../src/protocols/nam/timestamps.ts";
import { Timestamps } from "../../src/protocols/nam/timestamps.ts";
import { type NamOutcome, NamTransaction } from "../../src/protocols/nam/transaction.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { AnomalyKind } from "../checkers/anomalies.ts";
import type { Operation, Outcome, Transaction, Value } from "../checkers/history.ts";
import { checkListAppend, type ListAppendOptions } from "../checkers/list-append.ts";
import type { Fault } from "../fabric/faults.ts";
import { type ComputeServer, NamCluster } from "./cluster.ts";

const LIST_WORDS = 40;
const TRANSACTION_MS = 20;
const BEAT_US = 300;
const MISSES = 4;
const MOST_KEYS = 4;

export interface NamAppendOptions {
  readonly seed: number;
  readonly memoryServers?: number;
  readonly computeServers?: number;
  readonly threadsPerServer?: number;
  readonly timestamps?: TimestampOptions;
  readonly transactions?: number;
  readonly keys?: number;
  readonly faults?: readonly Fault[];
  /** How often a compute server is killed, and how often one is paused. */
  readonly kills?: number;
  readonly pauses?: number;
  readonly isVectorCut?: boolean;
  readonly isolation?: ListAppendOptions["isolation"];
  readonly ring?: number;
}

export interface NamAppendReport {
  readonly problems: readonly string[];
  readonly anomalies: ReadonlyMap<AnomalyKind, number>;
  readonly committed: number;
  readonly aborted: number;
  readonly noRoom: number;
  readonly tooOld: number;
  /** Outcomes that were not known at first and found out by claiming the thread again. */
  readonly resolved: number;
  readonly settlements: Readonly<Record<string, number>>;
  readonly refusedVerbs: number;
  readonly moved: number;
  readonly traceHash: string;
}

export function simulateNamAppend(options: NamAppendOptions): NamAppendReport {
  return new AppendRun(options).run();
}

interface Picked {
  readonly key: number;
  readonly isWritten: boolean;
}

/** An attempt whose end nobody has seen yet. */
interface Open {
  readonly process: number;
  readonly start: number;
  readonly operations: Operation[];
}

class AppendRun {
  readonly #options: NamAppendOptions;
  readonly #cluster: NamCluster;
  readonly #table: NamTable;
  readonly #random: Random;
  readonly #history: Transaction[] = [];
  readonly #open = new Map<number, Open>();
  readonly #servers = new Map<number, ComputeServer>();
  readonly #settlements: Record<string, number> = {};
  readonly #counts = { committed: 0, aborted: 0, noRoom: 0, tooOld: 0, resolved: 0 };
  #value = 0;
  /** All servers are started once more: one that was killed late does not come back by itself. */
  #isFinishing = false;
  #left: number;
  /** Threads with a transaction that is not over. */
  readonly #working = new Set<number>();

  constructor(options: NamAppendOptions) {
    this.#options = options;
    const { memoryServers = 3, computeServers = 3, threadsPerServer = 2, keys = 12 } = options;
    this.#left = options.transactions ?? 300;
    this.#cluster = new NamCluster({
      seed: options.seed,
      memoryServers,
      computeServers,
      threadsPerServer,
      timestamps: options.timestamps ?? { layout: "vector" },
      tables: [
        {
          name: "lists",
          keyWords: 1,
          dataWords: LIST_WORDS,
          cells: 4 * keys,
          ring: options.ring ?? 3,
        },
      ],
      faults: options.faults ?? [],
      isVectorCut: options.isVectorCut ?? false,
      longestTransactionMs: 2 * TRANSACTION_MS,
      moverEveryUs: 50,
    });
    [this.#table] = this.#cluster.directory.tables;
    this.#random = this.#cluster.fabric.random("append");
  }

  run(): NamAppendReport {
    const { fabric } = this.#cluster;
    const { computeServers = 3, kills = 0, pauses = 0 } = this.#options;
    for (let number = 0; number < computeServers; number++) this.#start(number);
    const random = fabric.random("troubles");
    const horizonUs = 400 * (this.#options.transactions ?? 300);
    for (let i = 0; i < kills; i++) {
      fabric.at(1_000 + random.below(horizonUs), () => this.#kill(random.below(computeServers)));
    }
    for (let i = 0; i < pauses; i++) {
      fabric.at(1_000 + random.below(horizonUs), () => this.#pause(random.below(computeServers)));
    }
    while ((this.#left > 0 || this.#working.size > 0) && fabric.step());
    fabric.clearFaults();
    return this.#finish();
  }

  #start(number: number): void {
    const server = this.#cluster.computeServer(number);
    this.#servers.set(number, server);
    let began = 0;
    for (const group of server.groups) {
      this.#settleOwn(server, group, () => {
        for (const thread of group) this.#next(server, thread);
        if (++began < server.groups.length) return;
        this.#watch(server);
        if (server.timestamps.readsInBackground) this.#fetch(server);
      });
    }
  }

  /** Until it succeeds: messages may be lost, and others may claim the same threads. */
  #settleOwn(server: ComputeServer, group: readonly ComputeThread[], done: () => void): void {
    const { driver, timestamps, endpoint } = server;
    driver.run(
      settle(group, timestamps, this.#cluster.claimant()),
      TRANSACTION_MS,
      (settled) => {
        for (const { settlement } of settled) this.#count(settlement);
        done();
      },
      (error) => {
        this.#expect(error);
        endpoint.clock.after(0.2, () => this.#settleOwn(server, group, done));
      },
    );
  }

  /** The background reader of a compute server. */
  #fetch(server: ComputeServer): void {
    const { driver, timestamps, endpoint, groups } = server;
    const isOver = (): boolean => this.#left <= 0;
    const again = (error: unknown): void => {
      this.#expect(error);
      if (!isOver()) endpoint.clock.after(BEAT_US / 1e3, () => this.#fetch(server));
    };
    driver.run(timestamps.fetchAlways(groups[0][0], isOver), TRANSACTION_MS, ignore, again);
  }

  /** Shows that it is alive, and settles others that do not. */
  #watch(server: ComputeServer): void {
    const { driver, endpoint } = server;
    const [thread] = server.groups[0];
    const watcher = new Watcher(MISSES);
    let count = 0;
    const again = (): void => {
      endpoint.clock.after(BEAT_US / 1e3, round);
    };
    const round = (): void => {
      if (this.#left <= 0) return;
      for (const group of server.groups) {
        driver.run(beat(group[0], ++count), 1, ignore, (error) => this.#expect(error));
      }
      driver.run(
        watcher.look(thread),
        1,
        (dead) => {
          for (const slot of dead) this.#settleOther(server, slot);
          again();
        },
        (error) => {
          this.#expect(error);
          again();
        },
      );
    };
    round();
  }

  #settleOther(server: ComputeServer, slot: number): void {
    const threads = this.#cluster.threadsOf(slot);
    const own = server.groups.some(([first]) => first.slot === slot);
    if (own) return;
    const timestamps = new Timestamps(
      this.#cluster.directory,
      this.#options.timestamps ?? { layout: "vector" },
    );
    server.driver.run(
      settle(threads, timestamps, this.#cluster.claimant()),
      TRANSACTION_MS,
      (settled) => {
        for (const { settlement } of settled) this.#count(`other's: ${settlement}`);
      },
      (error) => this.#expect(error),
    );
  }

  #next(server: ComputeServer, thread: ComputeThread): void {
    if (this.#left <= 0) return;
    this.#left--;
    this.#working.add(thread.pair);
    this.#attempt(server, thread, this.#pick(), 0);
  }

  #pick(): Picked[] {
    const { keys = 12 } = this.#options;
    const count = 1 + this.#random.below(MOST_KEYS);
    const isReader = this.#random.below(4) === 0;
    const picked = new Map<number, Picked>();
    for (let i = 0; i < count; i++) {
      const key = this.#random.below(keys);
      picked.set(key, { key, isWritten: !isReader && this.#random.below(2) === 0 });
    }
    return [...picked.values()];
  }

  #attempt(
    server: ComputeServer,
    thread: ComputeThread,
    picked: readonly Picked[],
    times: number,
  ): void {
    const { fabric } = this.#cluster;
    const open: Open = { process: thread.pair, start: fabric.nowUs, operations: [] };
    this.#open.set(thread.pair, open);
    const retry = (): void => {
      const pauseMs = (this.#random.below(100) * Math.min(2 ** times, 16)) / 1e3;
      server.endpoint.clock.after(pauseMs, () => this.#attempt(server, thread, picked, times + 1));
    };
    const over = (): void => {
      this.#working.delete(thread.pair);
      this.#next(server, thread);
    };
    server.driver.run(
      this.#body(server, thread, picked, open.operations),
      TRANSACTION_MS,
      (outcome) => {
        if (this.#servers.get(server.number) !== server) return;
        this.#record(open, outcome.kind === "committed" ? "ok" : "failed");
        if (outcome.kind === "committed") {
          this.#counts.committed++;
          over();
          return;
        }
        if (outcome.reason === "no room") this.#counts.noRoom++;
        else this.#counts.aborted++;
        retry();
      },
      (error) => {
        this.#expect(error);
        if (this.#servers.get(server.number) !== server) return;
        if (!thread.isBroken) {
          if ((error as SituError).code === "SITU_SNAPSHOT_TOO_OLD") this.#counts.tooOld++;
          this.#record(open, "failed");
          retry();
          return;
        }
        this.#resolve(server, thread, open, over);
      },
    );
  }

  *#body(
    server: ComputeServer,
    thread: ComputeThread,
    picked: readonly Picked[],
    operations: Operation[],
  ): Routine<NamOutcome> {
    const table = this.#table;
    const transaction = new NamTransaction(thread, server.timestamps);
    const keys = picked.map(({ key }) => new Int32Array([key]));
    const first = picked.length > 1 && this.#random.below(2) === 0 ? 1 : picked.length;
    const lists: number[][] = [];
    for (const part of [keys.slice(0, first), keys.slice(first)]) {
      if (part.length === 0) continue;
      const rows = yield* transaction.read(part.map((key) => ({ table, key })));
      lists.push(...rows.map(listOf));
    }
    picked.forEach(({ key, isWritten }, i) => {
      const list = lists[i];
      operations.push({ kind: "read", key, list });
      if (!isWritten) return;
      // A full list is begun anew under another key; here it is left alone.
      if (list.length >= LIST_WORDS - 1) return;
      const value = ++this.#value;
      operations.push({ kind: "append", key, value });
      transaction.write(table, keys[i], wordsOf([...list, value]));
    });
    return yield* transaction.commit();
  }

  /** The thread claims itself again: its journal and the records tell what became of the transaction. */
  #resolve(server: ComputeServer, thread: ComputeThread, open: Open, done: () => void): void {
    const group = server.groups.find((each) => each.includes(thread)) as readonly ComputeThread[];
    // Threads that share a slot are settled together: only alone it is known which is whose.
    if (group.length > 1) {
      this.#record(open, "unknown");
      this.#restart(server);
      return;
    }
    this.#settleThread(server, thread, open, done);
  }

  #settleThread(server: ComputeServer, thread: ComputeThread, open: Open, done: () => void): void {
    server.driver.run(
      settle([thread], server.timestamps, this.#cluster.claimant()),
      TRANSACTION_MS,
      () => {
        this.#counts.resolved++;
        // Somebody else may have settled it before: only the versions tell, which the checker looks at.
        this.#record(open, "unknown");
        done();
      },
      (error) => {
        this.#expect(error);
        const again = (): void => this.#settleThread(server, thread, open, done);
        server.endpoint.clock.after(0.2, again);
      },
    );
  }

  #restart(server: ComputeServer): void {
    this.#kill(server.number);
  }

  #kill(number: number): void {
    const server = this.#servers.get(number);
    if (server === undefined) return;
    this.#servers.delete(number);
    const { fabric } = this.#cluster;
    fabric.crash(server.id);
    for (const group of server.groups) {
      for (const { pair } of group) {
        this.#working.delete(pair);
        const open = this.#open.get(pair);
        if (open !== undefined) this.#record(open, "unknown");
      }
    }
    // Others notice first, or not.
    fabric.at(fabric.nowUs + this.#random.below(4 * BEAT_US * MISSES), () => {
      if (!this.#isFinishing) this.#start(number);
    });
  }

  #pause(number: number): void {
    const server = this.#servers.get(number);
    if (server === undefined || this.#left <= 0) return;
    const { fabric } = this.#cluster;
    fabric.stop(server.id);
    fabric.at(fabric.nowUs + this.#random.below(4 * BEAT_US * MISSES), () => {
      if (this.#servers.get(number) === server) fabric.resume(server.id);
    });
  }

  #record(open: Open, outcome: Outcome): void {
    // Told already, when its server was killed.
    if (this.#open.get(open.process) !== open) return;
    this.#open.delete(open.process);
    const { process, start, operations } = open;
    const end = this.#cluster.fabric.nowUs;
    // The reads of one that failed are not judged, and those of an unknown one are.
    const isWriter = operations.some(({ kind }) => kind === "append");
    if (outcome === "ok" || isWriter) {
      this.#history.push({ process, start, end, operations, outcome, isolation: "snapshot" });
    }
  }

  #count(what: string): void {
    this.#settlements[what] = (this.#settlements[what] ?? 0) + 1;
  }

  #expect(error: unknown): void {
    if (!(error instanceof SituError)) throw error;
    if (error.code === "SITU_PERMISSION" || error.code === "SITU_PROTOCOL") throw error;
  }

  #finish(): NamAppendReport {
    const { fabric, servers } = this.#cluster;
    const { computeServers = 3, keys = 12, isolation = "snapshot" } = this.#options;
    this.#isFinishing = true;
    // Everybody claims all threads once more, and so settles what is left.
    for (let number = 0; number < computeServers; number++) {
      const before = this.#servers.get(number);
      if (before !== undefined) fabric.crash(before.id);
    }
    const problems: string[] = [];
    const finalReads = new Map<number, readonly Value[]>();
    let last: ComputeServer | undefined;
    for (let number = 0; number < computeServers; number++) {
      last = this.#cluster.computeServer(number);
      this.#cluster.run(last, this.#cluster.open(last));
    }
    const reader = last as ComputeServer;
    const transaction = new NamTransaction(reader.groups[0][0], reader.timestamps);
    const wanted = Array.from({ length: keys }, (_, key) => ({
      table: this.#table,
      key: new Int32Array([key]),
    }));
    const rows = this.#cluster.run(reader, transaction.read(wanted));
    for (const [key, row] of rows.entries()) finalReads.set(key, listOf(row));
    for (const { id } of servers) problems.push(...this.#lockedAt(id));
    const { ok, anomalies, counts } = checkListAppend(this.#history, {
      isolation,
      finalReads,
      explainedPerKind: 1,
    });
    if (!ok) problems.push(...anomalies.map((each) => `${each.kind}: ${each.explanation}`));
    return {
      problems,
      anomalies: counts,
      ...this.#counts,
      settlements: this.#settlements,
      refusedVerbs: servers.reduce((sum, { guard }) => sum + guard.refused, 0),
      moved: servers.reduce((sum, { mover }) => sum + mover.moved, 0),
      traceHash: fabric.traceHash(),
    };
  }

  #lockedAt(id: NodeId): string[] {
    const table = this.#table;
    const { i32 } = this.#cluster.servers[id].region(table.segments.cells);
    const problems: string[] = [];
    for (let cell = 0; cell < table.cellsPerServer; cell++) {
      const high = i32[table.headerAt(cell) + 1];
      if (isLockedHigh(high)) problems.push(`cell ${cell} of server ${id} is locked for ever`);
    }
    return problems;
  }
}

function listOf(row: Int32Array | undefined): number[] {
  return row === undefined ? [] : [...row.subarray(1, 1 + row[0])];
}

function wordsOf(list: readonly number[]): Int32Array {
  const words = new Int32Array(LIST_WORDS);
  words[0] = list.length;
  words.set(list, 1);
  return words;
}

function ignore(): void {}
