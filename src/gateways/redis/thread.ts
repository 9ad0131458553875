/**
 * A thread that serves clients: the store is open in it, and all of its sessions share one keyspace,
 * one batch and one buffer of replies, for only one of them runs at a time. What the commands see of
 * it is `Server`.
 */

import type { Socket } from "node:net";
import type { DurabilityMode } from "../../attach/settings.ts";
import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { AssertionError } from "../../runtime/assert.ts";
import { afterTurn, every, realClock, wallClockMs } from "../../runtime/clock.ts";
import { TimeoutError } from "../../runtime/errors.ts";
import {
  DEFAULT_TIMEOUT_MS,
  EXPIRY_SWEEP_AGAIN_MS,
  EXPIRY_SWEEP_BUDGET_MS,
  EXPIRY_SWEEP_MS,
  GARBAGE_TURN_MS,
  GATEWAY_STUCK_MS,
  MAX_INLINE_REQUEST_BYTES,
  MAX_VALUE_BYTES,
} from "../../runtime/limits.ts";
import { COUNTER, type CommandMetrics, gatewaySums } from "../metrics/command-metrics.ts";
import type { DecoderLimits } from "../resp/decoder.ts";
import { Replies } from "../resp/replies.ts";
import type { ClientThread, Peer, ThreadListener } from "../threads/wire-protocol.ts";
import { AllKeys } from "./all-keys.ts";
import { Batch } from "./batch.ts";
import type { Command } from "./command.ts";
import { COMMANDS } from "./commands/command-table.ts";
import { isOfStore } from "./errors.ts";
import { Keyspace } from "./keyspace.ts";
import { Registry } from "./registry.ts";
import type { Server, ServerFigures } from "./server.ts";
import { ClientSession } from "./session.ts";
import { LiveSettings, type SettingChanges, type SettingValues } from "./settings.ts";
import { Sweeper } from "./sweeper.ts";

/** What a thread is told; plain data, so that it can be sent to it. */
export interface RedisThreadOptions {
  readonly path: string;
  readonly memoryBytes: number | "auto" | undefined;
  readonly durability: DurabilityMode | undefined;
  readonly settings: SettingValues;
  readonly maxRequestBytes: number;
  readonly maxPipeline: number;
  readonly maxOutputBytes: number;
  readonly port: number;
  readonly threads: number;
  /** One of them sweeps. */
  readonly sweeps: boolean;
}

/**
 * Sessions whose replies leave together. One by one, who is waiting would be woken for each; all at
 * once, it would have nothing to do until then, and this thread nothing after it.
 */
const SENT_TOGETHER = 6;

export const registry = new Registry(COMMANDS);
const byName: ReadonlyMap<string, Command> = new Map(COMMANDS.map((each) => [each.name, each]));

export class RedisThread implements Server, ClientThread<SettingChanges> {
  readonly database: Database;
  readonly settings: LiveSettings;
  readonly commands = byName;
  readonly startedMs = wallClockMs();
  readonly port: number;
  readonly threads: number;
  readonly sessions = new Map<number, ClientSession>();
  readonly allKeys: AllKeys;
  readonly registry = registry;
  readonly keys: Keyspace;
  readonly batch = new Batch();
  readonly replies = new Replies();
  readonly metrics: CommandMetrics;
  readonly limits: DecoderLimits;
  readonly maxPipeline: number;
  readonly maxOutputBytes: number;
  /** Reads that are gathered: be their values as long as they may, a client can take them. */
  readonly readsAtOnce: number;
  /** Whether replies wait until what they tell is on disk. */
  readonly waits: boolean;
  readonly #listener: ThreadListener<SettingChanges>;
  readonly #sweeper: Sweeper;
  #sweeping: { cancel(): void } | undefined;
  readonly #idleWatch: { cancel(): void };
  readonly #unsent: ClientSession[] = [];
  #isPaying = false;
  #isClosing = false;

  constructor(
    database: Database,
    options: RedisThreadOptions,
    listener: ThreadListener<SettingChanges>,
  ) {
    this.database = database;
    this.port = options.port;
    this.threads = options.threads;
    this.#listener = listener;
    this.settings = new LiveSettings(options.settings, (changes) => listener.announced(changes));
    this.keys = new Keyspace(database);
    this.allKeys = new AllKeys(database, this.keys);
    this.metrics = this.keys.metrics;
    this.waits = database.stats().durability.mode === "sync";
    this.keys.waits = this.waits;
    this.limits = {
      maxBulkBytes: options.settings.maxBulkBytes,
      maxRequestBytes: options.maxRequestBytes,
      maxInlineBytes: MAX_INLINE_REQUEST_BYTES,
    };
    this.maxPipeline = options.maxPipeline;
    this.maxOutputBytes = options.maxOutputBytes;
    this.replies.limit = options.maxOutputBytes;
    this.readsAtOnce = Math.max(1, Math.floor(options.maxOutputBytes / (4 * MAX_VALUE_BYTES)));
    this.#sweeper = new Sweeper(this.keys, database);
    if (options.sweeps) this.#sweepIn(EXPIRY_SWEEP_MS);
    this.#idleWatch = every(1_000, () => this.#closeIdle());
  }

  get figures(): ServerFigures {
    const sums = this.database.metrics.sums();
    let commandsProcessed = 0;
    for (const { number } of registry.all) commandsProcessed += sums.callsOf(number);
    return { ...gatewaySums(sums), clients: sums.clients, commandsProcessed };
  }

  /** Serves a client from here on. */
  adopt(socket: Socket, peer: Peer): void {
    const session = new ClientSession(this, socket, peer);
    this.sessions.set(peer.id, session);
    this.metrics.clients(this.sessions.size);
    this.metrics.add(COUNTER.connectionsReceived, 1);
    socket.on("data", (chunk: Buffer) => session.receive(chunk));
    socket.on("drain", () => session.drained());
    socket.on("end", () => session.finished());
    // What a client does to its connection is no news; "close" follows.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.sessions.delete(peer.id);
      this.metrics.clients(this.sessions.size);
      this.#listener.left(peer.id);
    });
    socket.resume();
  }

  /** Sends a session's replies when there are some, or this turn is over. */
  sendLater(session: ClientSession): void {
    const unsent = this.#unsent.push(session);
    if (unsent === 1) afterTurn(this.#sendAll);
    else if (unsent === SENT_TOGETHER) this.#sendAll();
  }

  readonly #sendAll = (): void => {
    const sessions = this.#unsent.splice(0);
    for (let i = 0; i < sessions.length; i++) sessions[i].sendNow();
    if (this.keys.leavesGarbage) this.#payBack();
  };

  /**
   * Who deletes large collections pays for it at once, a little in each turn of the event loop: members
   * can be made quicker than the sweeper alone would take them away.
   */
  #payBack(): void {
    this.keys.leavesGarbage = false;
    if (this.#isPaying) return;
    this.#isPaying = true;
    afterTurn(this.#pay);
  }

  readonly #pay = (): void => {
    this.#isPaying = false;
    if (this.#isClosing) return;
    try {
      if (this.#sweeper.sweepMembers(GARBAGE_TURN_MS)) this.#payBack();
    } catch (error) {
      this.noteStuck(error);
      if (!isOfStore(error)) this.failed(error);
    }
  };

  /** A fault: only of what one client asked for, or of more than that. */
  failed(error: unknown): void {
    if (error instanceof AssertionError) this.#listener.failed(error);
    else process.emitWarning(error as Error);
  }

  /**
   * A command failed. If that was for a process that holds a lock and does not move, those that meet it
   * next do not wait for it, so that other clients are served meanwhile.
   */
  noteStuck(error: unknown): void {
    if (!(error instanceof TimeoutError) || error.holder === undefined) return;
    this.database.executor.giveUpOn(error.holder.slot, GATEWAY_STUCK_MS);
  }

  /** Waits until all commits up to an epoch are on disk. */
  durable(epoch: number): Promise<void> {
    return this.database.executor.durability.await(epoch, DEFAULT_TIMEOUT_MS);
  }

  /** A setting was changed in another thread. */
  notice(changes: SettingChanges): void {
    this.settings.take(changes);
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#sweeping?.cancel();
    this.#idleWatch.cancel();
    const closed = [...this.sessions.values()].map((session) => session.end());
    await Promise.all(closed);
  }

  #sweepIn(ms: number): void {
    this.#sweeping = realClock.after(ms, () => this.#sweep());
  }

  #sweep(): void {
    let hasMore = false;
    try {
      hasMore = this.#sweeper.sweep(EXPIRY_SWEEP_BUDGET_MS);
    } catch (error) {
      // A store that is full, or busy, is swept another time.
      this.noteStuck(error);
      if (!isOfStore(error)) this.failed(error);
    }
    // A quarter of the time at most, as Redis's own: clients go first.
    this.#sweepIn(hasMore ? EXPIRY_SWEEP_AGAIN_MS : EXPIRY_SWEEP_MS);
  }

  #closeIdle(): void {
    const { timeoutSeconds } = this.settings;
    if (timeoutSeconds === 0) return;
    const sinceMs = wallClockMs() - timeoutSeconds * 1_000;
    for (const session of this.sessions.values()) {
      if (session.lastMs < sinceMs) session.destroy();
    }
  }
}
