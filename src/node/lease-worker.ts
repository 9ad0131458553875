/**
 * The lease thread of a node: a worker that keeps its leases and does nothing else, so that neither a
 * burst of requests nor a garbage collection elsewhere makes it late (FaRM §6.5: leases on a shared
 * path expired often even at 100 ms). It is told configurations by the NIC worker, and tells it who is suspected;
 * until when the node may serve it writes to the gate.
 */

import { once } from "node:events";
import { type MessagePort, parentPort, Worker, workerData } from "node:worker_threads";
import type { Configuration } from "../cluster/configuration.ts";
import { LeaseDatagrams } from "../cluster/membership/lease-datagrams.ts";
import { LeaseGate } from "../cluster/membership/lease-gate.ts";
import { type LeaseMessage, Leases } from "../cluster/membership/leases.ts";
import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import { type LeaseClock, leaseClock } from "../fabric/lease-clock.ts";
import { goFirst } from "../fabric/lease-priority.ts";
import { assert } from "../runtime/assert.ts";
import { every } from "../runtime/clock.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { HANGING_LEASES, LEASE_TICKS } from "../runtime/limits.ts";
import { threadScript } from "../runtime/thread-script.ts";
import { LeaseSocket } from "./lease-socket.ts";

export interface LeaseTask {
  readonly self: NodeId;
  readonly instance: string;
  readonly cluster: string;
  readonly secret: string | undefined;
  readonly listen: { readonly host: string; readonly port: number };
  readonly leaseMs: number;
}

type ToLeases =
  | { readonly what: "adopt"; readonly configuration: Configuration }
  | { readonly what: "close" };

type FromLeases =
  | { readonly what: "listening"; readonly port: number }
  | { readonly what: "failed"; readonly code: SituErrorCode; readonly message: string }
  | ({ readonly what: "adopted" } & Adopted)
  | ({ readonly what: "suspects" } & Suspicion)
  | ({ readonly what: "outdated" } & Outdated);

/** The lease thread counts with this configuration, and what it has promised to others ends after this time. */
export interface Adopted {
  readonly configurationId: ConfigurationId;
  readonly remainingMs: number;
}

/** Whose leases have run out; those of the last message are not suspected if they are missing now. */
export interface Suspicion {
  readonly configurationId: ConfigurationId;
  readonly suspects: readonly NodeId[];
}

/** A node asked for a lease in an older configuration. */
export interface Outdated {
  readonly node: NodeId;
}

interface ThreadData {
  readonly task: LeaseTask;
  readonly gate: SharedArrayBuffer;
}

/** In the worker. */
export async function runLeases(): Promise<void> {
  const port = parentPort!;
  const { task, gate } = workerData as ThreadData;
  goFirst();
  try {
    const thread = await LeaseLoop.start(task, new LeaseGate(gate), port);
    port.on("message", (message: ToLeases) => thread.told(message));
  } catch (error) {
    port.postMessage(failureOf(task, error as NodeJS.ErrnoException));
    port.close();
  }
}

function failureOf(task: LeaseTask, { code, message }: NodeJS.ErrnoException): FromLeases {
  const { host, port } = task.listen;
  const where = `node ${task.self} cannot use UDP port ${port} of ${host} for its leases`;
  return code === "EADDRINUSE"
    ? { what: "failed", code: "SITU_IN_USE", message: `${where}: another process does` }
    : { what: "failed", code: "SITU_CONFIG", message: `${where}: ${message}` };
}

class LeaseLoop {
  readonly #gate: LeaseGate;
  readonly #port: MessagePort;
  readonly #leases: Leases;
  readonly #clock: LeaseClock;
  readonly #socket: LeaseSocket;
  #ticking: { cancel(): void } | undefined;
  #suspects = "";
  #leaseMs: number;
  #beats = 0;
  #beatAtMs = 0;

  private constructor(task: LeaseTask, gate: LeaseGate, port: MessagePort, socket: LeaseSocket) {
    const { self, instance, leaseMs } = task;
    this.#gate = gate;
    this.#port = port;
    this.#socket = socket;
    this.#leaseMs = leaseMs;
    this.#clock = leaseClock();
    this.#leases = new Leases({
      self,
      instance,
      clock: this.#clock,
      earlierLeaseMs: leaseMs,
      send: (to, message) => socket.send(to, message),
    });
  }

  static async start(task: LeaseTask, gate: LeaseGate, port: MessagePort): Promise<LeaseLoop> {
    let loop: LeaseLoop | undefined;
    const datagrams = new LeaseDatagrams(task);
    const socket = await LeaseSocket.open(datagrams, task.listen, (message) => {
      loop?.received(message);
    });
    loop = new LeaseLoop(task, gate, port, socket);
    loop.#tell({ what: "listening", port: socket.port });
    return loop;
  }

  told(message: ToLeases): void {
    switch (message.what) {
      case "adopt":
        this.#adopt(message.configuration);
        break;
      case "close":
        this.#gate.close();
        this.#ticking?.cancel();
        this.#socket.close();
        this.#port.close();
    }
  }

  received(message: LeaseMessage): void {
    if (this.#isHanging()) return;
    if (this.#leases.receive(message) === "older") {
      this.#tell({ what: "outdated", node: message.from });
    }
    this.#update();
  }

  #adopt(configuration: Configuration): void {
    const { nodes, leaseMs, configurationId } = configuration;
    this.#gate.close();
    this.#socket.know(nodes);
    this.#leases.adopt(configuration);
    this.#suspects = "";
    this.#leaseMs = leaseMs;
    this.#ticking?.cancel();
    this.#ticking = every(leaseMs / LEASE_TICKS, () => this.#tick());
    const remainingMs = this.#leases.remainingMs();
    this.#tell({ what: "adopted", configurationId, remainingMs });
  }

  #tick(): void {
    if (!this.#isHanging()) this.#leases.tick();
    this.#update();
  }

  /** Whether the NIC worker, for which the leases are, has stood still for too long. */
  #isHanging(): boolean {
    const nowMs = this.#clock.nowMs();
    const { beats } = this.#gate;
    if (beats !== this.#beats || beats === 0) {
      this.#beats = beats;
      this.#beatAtMs = nowMs;
    }
    return nowMs - this.#beatAtMs > HANGING_LEASES * this.#leaseMs;
  }

  #update(): void {
    const { configurationId, deadlineMs } = this.#leases;
    if (deadlineMs > Number.NEGATIVE_INFINITY) this.#gate.extend(configurationId, deadlineMs);
    const suspects = this.#leases.suspects();
    const said = suspects.join();
    if (said === this.#suspects) return;
    this.#suspects = said;
    this.#tell({ what: "suspects", configurationId, suspects });
  }

  #tell(message: FromLeases): void {
    this.#port.postMessage(message);
  }
}

/** Who is told what the lease thread says. */
export interface LeaseListener {
  adopted(what: Adopted): void;
  suspects(what: Suspicion): void;
  outdated(what: Outdated): void;
  died(error: Error): void;
}

/** In the thread that started it: the worker, as something to talk to. */
export class LeaseThread {
  readonly port: number;
  readonly gate: LeaseGate;
  readonly #worker: Worker;
  #closing: Promise<void> | undefined;

  private constructor(worker: Worker, gate: LeaseGate, port: number) {
    this.#worker = worker;
    this.gate = gate;
    this.port = port;
  }

  static async start(
    task: LeaseTask,
    gate: LeaseGate,
    listener: LeaseListener,
  ): Promise<LeaseThread> {
    const data: ThreadData = { task, gate: gate.buffer };
    const worker = new Worker(threadScript("situ-lease.js"), {
      workerData: data,
      name: "situ leases",
      execArgv: [],
    });
    const first = await new Promise<FromLeases>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
    });
    if (first.what !== "listening") {
      await worker.terminate();
      assert(first.what === "failed", "the first message says whether the thread listens");
      throw new SituError(first.code, first.message);
    }
    const thread = new LeaseThread(worker, gate, first.port);
    worker.on("message", (message: FromLeases) => {
      if (message.what === "adopted") listener.adopted(message);
      else if (message.what === "suspects") listener.suspects(message);
      else if (message.what === "outdated") listener.outdated(message);
    });
    worker.on("error", (error) => listener.died(error));
    worker.on("exit", () => {
      if (thread.#closing === undefined) listener.died(new Error("the lease thread has ended"));
    });
    return thread;
  }

  adopt(configuration: Configuration): void {
    this.#worker.postMessage({ what: "adopt", configuration } satisfies ToLeases);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const ended = once(this.#worker, "exit");
    this.#worker.postMessage({ what: "close" } satisfies ToLeases);
    await ended;
  }
}
