/**
 * The fabric between processes of one machine: messages through rings in memory that both ends have
 * mapped (ring.ts), verbs directly on the memory of the node. It runs in the thread that opens it, and
 * sleeps there, event loop and all, when nothing comes (bell.ts).
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterTurn, every, realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_RING_SLOTS, PROGRESS_TIMEOUT_MS } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { freshCounters } from "../counters.ts";
import { Endings } from "../exchange/endings.ts";
import { LocalPeer } from "../exchange/local.ts";
import { Responder } from "../exchange/responder.ts";
import type { Shared } from "../exchange/shared.ts";
import { SpareFrames } from "../exchange/spare-frames.ts";
import {
  CLIENT,
  type Clock,
  type Endpoint,
  type FabricCounters,
  type NodeId,
  type Request,
  type Timer,
} from "../fabric.ts";
import { Scratch } from "../frames.ts";
import { OwnBell } from "./bell.ts";
import { CONNECTION_BYTES, Connection } from "./connection.ts";
import { Directory, type FileLock, isLocked, lockNode, ringsName, slotLock } from "./directory.ts";
import type { SharedMemoryOptions } from "./options.ts";
import type { RingOutbox } from "./outbox.ts";
import { RingPeer, TIMEOUT_TICKS } from "./peer.ts";
import { Visitor } from "./visitor.ts";

export async function openSharedMemory(
  options: SharedMemoryOptions,
): Promise<SharedMemoryEndpoint> {
  const folder = options.listen?.folder;
  const lock = folder === undefined ? undefined : await lockNode(folder);
  try {
    return new SharedMemoryEndpoint(options, lock);
  } catch (error) {
    lock?.release();
    OwnBell.get().releaseIfIdle();
    throw error;
  }
}

export class SharedMemoryEndpoint implements Endpoint {
  readonly self: NodeId;
  readonly clock: Clock = realClock;
  readonly counters: FabricCounters;
  readonly #shared: Shared;
  readonly #options: SharedMemoryOptions;
  readonly #endings = new Endings();
  readonly #peers = new Map<NodeId, RingPeer>();
  readonly #local: LocalPeer | undefined;
  readonly #responder: Responder;
  readonly #bell = OwnBell.get();
  readonly #ticking: Timer;
  readonly #lock: FileLock | undefined;
  readonly #directory: Directory | undefined;
  readonly #visitors = new Map<number, Visitor>();
  readonly #dirty: RingOutbox[] = [];
  #claims = 0;
  #connections = 1;
  #isClosed = false;
  readonly #scheduled = (outbox: RingOutbox): void => {
    if (this.#dirty.length === 0) afterTurn(() => this.#flush());
    this.#dirty.push(outbox);
  };

  /** With the lock of its folder, if it listens: see openSharedMemory. */
  constructor(options: SharedMemoryOptions, lock: FileLock | undefined) {
    const { self, epoch, memory, service } = options;
    this.self = self;
    this.#options = options;
    this.counters = freshCounters();
    this.#shared = sharedOf(self, epoch, this.counters);
    this.#responder = new Responder(this.#shared, memory, service);
    if (self !== CLIENT) {
      this.#local = new LocalPeer(this.#shared, this.#endings, this.#responder, self);
    }
    for (const [node, place] of options.nodes) {
      const peer = new RingPeer(this.#shared, this.#endings, node, place, this.#scheduled);
      this.#peers.set(node, peer);
    }
    this.#lock = lock;
    const folder = options.listen?.folder;
    if (folder !== undefined) {
      const slots = options.maxConnections ?? MAX_RING_SLOTS;
      this.#directory = Directory.create(folder, self, slots, this.#bell.path);
      this.#directory.epoch = epoch;
    }
    this.#bell.add(this);
    const timeoutMs = options.progressTimeoutMs ?? PROGRESS_TIMEOUT_MS;
    this.#ticking = every(timeoutMs / TIMEOUT_TICKS, () => this.#tick());
  }

  get epoch(): number {
    return this.#shared.epoch;
  }

  set epoch(epoch: number) {
    this.#shared.epoch = epoch;
    if (this.#directory !== undefined) this.#directory.epoch = epoch;
  }

  isConnected(node: NodeId): boolean {
    return this.#peers.get(node)?.isConnected ?? false;
  }

  send(to: NodeId, request: Request): void {
    if (this.#isClosed) this.#endings.fail(request, closed());
    else if (to === this.self && this.#local !== undefined) this.#local.send(request);
    else {
      const peer = this.#peers.get(to);
      if (peer !== undefined) peer.send(request);
      else this.#endings.fail(request, unreachable(to));
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ticking.cancel();
    this.#flush();
    for (const peer of this.#peers.values()) peer.close(closed());
    this.#local?.close(closed());
    this.#endings.tell();
    const directory = this.#directory;
    if (directory !== undefined) {
      directory.markClosed();
      for (const visitor of [...this.#visitors.values()]) this.#part(visitor);
      rmSync(join(directory.folder, "directory"), { force: true });
      directory.close();
      this.#lock?.release();
    }
    this.#bell.remove(this);
  }

  /** Whatever has come: replies, requests, and those who want to send some. */
  poll(): boolean {
    let found = false;
    for (const peer of this.#peers.values()) if (!this.#isClosed && peer.poll()) found = true;
    for (const visitor of this.#visitors.values()) {
      if (!this.#isClosed && this.#attend(visitor)) found = true;
    }
    if (this.#directory === undefined || this.#isClosed) return found;
    const { claims } = this.#directory;
    if (claims === this.#claims) return found;
    this.#claims = claims;
    this.#welcome(this.#directory);
    return true;
  }

  #attend(visitor: Visitor): boolean {
    try {
      const found = visitor.poll();
      if (found || !visitor.isOpen || !visitor.isGone) return found;
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      const { refused } = this.counters;
      refused[error.code] = (refused[error.code] ?? 0) + 1;
    }
    this.#part(visitor);
    return true;
  }

  /** Maps the rings of those who have come since the last time. */
  #welcome(directory: Directory): void {
    for (let slot = 0; slot < directory.slots; slot++) {
      const generation = directory.generation(slot);
      const before = this.#visitors.get(slot);
      if (generation === 0 || generation === before?.generation) continue;
      if (before === undefined && directory.isGivenUp(slot, generation)) continue;
      if (before !== undefined) this.#bury(before);
      this.#admit(directory, slot, generation);
    }
  }

  #admit(directory: Directory, slot: number, generation: number): void {
    const name = ringsName(slot, generation);
    let connection: Connection | undefined;
    try {
      connection = new Connection(directory.segments.attach(name, CONNECTION_BYTES));
      rmSync(join(directory.folder, name), { force: true });
      const visitor = new Visitor(
        slot,
        generation,
        this.#connections++,
        connection,
        this.#responder,
        this.counters,
        this.#scheduled,
      );
      this.#visitors.set(slot, visitor);
      this.counters.connections++;
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      // It died while it came, or is none of ours.
      connection?.close();
      this.counters.refused[error.code] = (this.counters.refused[error.code] ?? 0) + 1;
      directory.giveUp(slot, generation);
    }
  }

  #part(visitor: Visitor): void {
    const { slot, generation, from } = visitor;
    if (this.#visitors.get(slot) !== visitor) return;
    this.#visitors.delete(slot);
    this.#directory?.giveUp(slot, generation);
    visitor.close();
    this.counters.connections--;
    this.#options.onConnectionClosed?.(from.connection);
  }

  /** One whose lock another one has, or nobody. Dead without a word: nobody else removes its bell. */
  #bury(visitor: Visitor): void {
    if (!visitor.isGone) rmSync(visitor.bellPath, { force: true });
    this.#part(visitor);
  }

  #tick(): void {
    for (const peer of this.#peers.values()) peer.tick();
    const directory = this.#directory;
    if (directory === undefined || this.#isClosed) return;
    directory.beat();
    for (const visitor of this.#visitors.values()) {
      if (isLocked(slotLock(directory.folder, visitor.slot))) continue;
      this.#bury(visitor);
    }
  }

  #flush(): void {
    for (let i = 0; i < this.#dirty.length; i++) {
      this.#dirty[i].isScheduled = false;
      if (this.#dirty[i].flush()) this.counters.writes++;
    }
    this.#dirty.length = 0;
  }
}

function sharedOf(self: NodeId, epoch: number, counters: FabricCounters): Shared {
  const scratch = new Scratch();
  return { self, instance: uniqueId(), counters, scratch, spares: new SpareFrames(), epoch };
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "this end was closed");
}

function unreachable(node: NodeId): SituError {
  return new SituError("SITU_UNREACHABLE", `there is no node ${node} in the configuration`);
}
