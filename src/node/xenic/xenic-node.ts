/**
 * A node with the protocol "xenic" as a process runs it: the NIC worker (xenic-nic.ts), and the host's thread, which applies the
 * logs (log-applier.ts) and runs the procedures that do not run at the NIC. Procedures at the host use a database like a client's; what
 * they read of the own node's rows they read in the host's own tables.
 */

import { Worker } from "node:worker_threads";
import { clientView } from "../../cluster/view.ts";
import { isProcedure, type Procedure } from "../../database/procedure.ts";
import { XenicDatabase } from "../../database/xenic/xenic-database.ts";
import type { Incoming } from "../../fabric/fabric.ts";
import { makeChannel } from "../../fabric/rings/channel.ts";
import { XENIC_CALL } from "../../protocols/kinds.ts";
import { decodeCall, type Ended, encodeEnded } from "../../protocols/xenic/client-messages.ts";
import { fixedPlacement } from "../../protocols/xenic/fixed-placement.ts";
import { makeSharedLog } from "../../protocols/xenic/shared-log.ts";
import { SituError, type SituErrorCode } from "../../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS, MAX_RUNNING_CALLS, XENIC_LOG_BYTES } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { show } from "../../runtime/show.ts";
import { threadScript } from "../../runtime/thread-script.ts";
import { HostEndpoint } from "../host-endpoint.ts";
import { HostLink } from "../host-link.ts";
import { importModule } from "../procedures.ts";
import { UNFORMED } from "./formation.ts";
import { LogApplier } from "./log-applier.ts";
import type { XenicNodeConfiguration } from "./xenic-configuration.ts";
import type { XenicStats, XenicTask } from "./xenic-nic.ts";
import type { FromXenicNic, ToXenicNic } from "./xenic-nic-worker.ts";

/** What both threads of a node have done. */
export interface XenicNodeStats extends XenicStats {
  /** Turns in which the host has looked at its logs, and records that it has applied. */
  readonly hostLooks: number;
  readonly applied: number;
  /** Whether it does not look by itself: then the NIC calls it when there is something to apply. */
  readonly isHostAsleep: boolean;
}

export class XenicNode {
  readonly id: number;
  readonly host: string;
  readonly port: number;
  readonly configuration: XenicNodeConfiguration;
  readonly #worker: Worker;
  readonly #applier: LogApplier;
  readonly #db: XenicDatabase;
  #isClosed = false;

  private constructor(
    configuration: XenicNodeConfiguration,
    port: number,
    worker: Worker,
    applier: LogApplier,
    db: XenicDatabase,
  ) {
    this.id = configuration.id;
    this.host = configuration.cluster.nodes.find(({ id }) => id === configuration.id)!.host;
    this.port = port;
    this.configuration = configuration;
    this.#worker = worker;
    this.#applier = applier;
    this.#db = db;
  }

  /** Resolves when all nodes of the cluster have started. */
  static async start(
    configuration: XenicNodeConfiguration,
    died: (error: Error) => void,
    signal?: AbortSignal,
  ): Promise<XenicNode> {
    const { id, cluster } = configuration;
    const procedures = await load(configuration.procedures);
    const [here, there] = makeChannel();
    const logs = {
      commits: makeSharedLog(XENIC_LOG_BYTES),
      logged: makeSharedLog(XENIC_LOG_BYTES),
      sleep: new SharedArrayBuffer(4),
    };
    const nicProcedures = [...procedures.values()]
      .filter(({ runs }) => runs === "nic")
      .map(({ name, rows, tables }) => ({
        name,
        hasRows: rows !== undefined,
        tables: tables.map((table) => table.name),
      }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const nodes = cluster.nodes.map((node) => node.id);
    const placement = fixedPlacement(nodes, cluster.backups, UNFORMED);
    const applier = new LogApplier(logs, placement);
    const task: XenicTask = { xenic: configuration, end: there, logs, nicProcedures };
    const worker = new Worker(threadScript("situ-nic.js"), {
      workerData: task,
      transferList: [there.port],
      name: "situ nic",
      execArgv: [],
    });
    const tell = (message: ToXenicNic): void => worker.postMessage(message);
    let hear: (message: FromXenicNic) => void = () => {};
    worker.on("message", (message: FromXenicNic) => {
      if (message.what === "wake") applier.wake();
      else if (message.what === "table") {
        applier.addTable(message.table, message.copies);
        tell({ what: "known", number: message.table.number });
      } else hear(message);
    });
    const next = (): Promise<FromXenicNic> =>
      new Promise((resolve, reject) => {
        hear = resolve;
        worker.once("error", reject);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    let port = 0;
    let configurationId = UNFORMED;
    try {
      for (let formed = false; !formed; ) {
        const message = await next();
        if (message.what === "listening") port = message.port;
        else if (message.what === "formed") {
          configurationId = message.configurationId;
          formed = true;
        } else if (message.what === "failed") {
          throw new SituError(message.code as SituErrorCode, message.message);
        }
      }
    } catch (error) {
      await worker.terminate();
      here.port.close();
      throw error;
    }
    const host = new HostCalls(procedures, configuration.switches.runsAtNic);
    const link = new HostLink(here, configurationId, (_, incoming) => host.serve(incoming));
    const { current } = clientView(uniqueId(), { ...cluster, configurationId }, "rpc");
    const db = new XenicDatabase({
      endpoint: new HostEndpoint(id, link),
      view: current,
      partitions: current.placement,
      placement,
      nodes,
      timeoutMs: DEFAULT_TIMEOUT_MS,
      readOwn: (row) => applier.tableOf(row)?.get(row.key),
      close: async () => link.close(),
    });
    host.db = db;
    host.self = id;
    const node = new XenicNode(configuration, port, worker, applier, db);
    hear = (message) => {
      if (message.what === "failed") {
        died(new SituError(message.code as SituErrorCode, message.message));
      }
    };
    worker.on("error", died);
    worker.on("exit", () => {
      if (!node.#isClosed) died(new Error("the NIC worker has ended"));
    });
    return node;
  }

  async stats(): Promise<XenicNodeStats> {
    const answer = await this.#ask({ what: "stats" }, "stats");
    const { stats } = answer as { stats: XenicStats };
    const { looks, applied, isAsleep } = this.#applier;
    return { ...stats, hostLooks: looks, applied, isHostAsleep: isAsleep };
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#db.close();
    this.#applier.close();
    await this.#ask({ what: "close" }, "closed");
    await this.#worker.terminate();
  }

  #ask(wanted: ToXenicNic, what: FromXenicNic["what"]): Promise<FromXenicNic> {
    return new Promise((resolve) => {
      const hear = (message: FromXenicNic): void => {
        if (message.what !== what) return;
        this.#worker.off("message", hear);
        resolve(message);
      };
      this.#worker.on("message", hear);
      this.#worker.postMessage(wanted);
    });
  }
}

async function load(modules: readonly string[]): Promise<ReadonlyMap<string, Procedure>> {
  const procedures = new Map<string, Procedure>();
  for (const path of modules) {
    for (const found of Object.values(await importModule(path)).filter(isProcedure)) {
      if (procedures.has(found.name)) {
        throw new SituError("SITU_CONFIG", `two procedures are called ${found.name}: see ${path}`);
      }
      procedures.set(found.name, found);
    }
  }
  return procedures;
}

/** Calls that the NIC has passed on to the host: of procedures that run here, or whose tables are to be opened first. */
class HostCalls {
  db!: XenicDatabase;
  self = 0;
  readonly #procedures: ReadonlyMap<string, Procedure>;
  readonly #runsAtNic: boolean;
  #running = 0;

  /** Without `runsAtNic` it runs all of them. */
  constructor(procedures: ReadonlyMap<string, Procedure>, runsAtNic: boolean) {
    this.#procedures = procedures;
    this.#runsAtNic = runsAtNic;
  }

  serve(incoming: Incoming): void {
    if (incoming.kind !== XENIC_CALL) {
      throw new SituError("SITU_PROTOCOL", `a host serves no message of kind ${incoming.kind}`);
    }
    const called = decodeCall(incoming.body);
    const found = this.#procedures.get(called.name);
    if (found === undefined) {
      const names = [...this.#procedures.keys()].join(", ") || "none";
      throw new SituError(
        "SITU_UNKNOWN_PROCEDURE",
        `node ${this.self} has no procedure ${called.name}; it has ${names}`,
      );
    }
    if (this.#running >= MAX_RUNNING_CALLS) {
      throw new SituError(
        "SITU_OVERLOADED",
        `procedure ${called.name} was not begun: too many run`,
      );
    }
    const ticket = incoming.defer();
    this.#running++;
    void this.#run(found, called).then((ended) => {
      this.#running--;
      ticket.reply((out) => encodeEnded(out, ended));
    });
  }

  /** Never rejects: an error is an outcome, too. */
  async #run(found: Procedure, called: ReturnType<typeof decodeCall>): Promise<Ended> {
    const { db, self } = this;
    const { values, leftMs, isPassedOn, name } = called;
    try {
      await db.openTables(found.tables);
      // Its tables are known now, so the NIC runs it.
      if (found.runs === "nic" && this.#runsAtNic)
        return { isDone: true, value: await db.callAt(self, called) };
      const place = found.at?.(...values);
      const node = place === undefined || isPassedOn ? self : db.nodeOf(...place);
      const value =
        node === self
          ? await db.transact((tx) => found.body(tx, ...values), { timeoutMs: Math.max(1, leftMs) })
          : await db.callAt(node, { ...called, isPassedOn: true });
      return { isDone: true, value };
    } catch (error) {
      const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
      if (typeof code === "string" && code.startsWith("SITU_")) {
        return { isDone: false, code, message: String(message) };
      }
      const text = error instanceof Error ? `${error.name}: ${error.message}` : show(error);
      return {
        isDone: false,
        code: "SITU_PROCEDURE",
        message: `procedure ${name} failed: ${text}`,
      };
    }
  }
}
