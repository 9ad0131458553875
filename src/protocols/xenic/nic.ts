/**
 * A node's NIC in Xenic: what it knows, and which function serves which message. The phases have a file each, with both
 * their sides:
 *
 *   execute.ts    lock and read rows in one message           EXECUTE, EXECUTED
 *   validate.ts   is what was read still so?                  VALIDATE, VALIDATED
 *   log.ts        into the log of a backup's host             LOG, LOGGED
 *   lows.ts       which transactions are over                LOW, LOG_LENGTH
 *   commit.ts     into the primary's log and index; or back   COMMIT, COMMITTED, ABORT, ABORTED
 *   ship.ts       execute at a remote primary (multi-hop)     SHIP, SHIPPED
 *   recovery.ts   after a death                               SURVEY, SURVEYED, DECIDE, DECIDED
 *
 * coordinator.ts takes transactions through them, local.ts those of which all rows are at the own node.
 *
 * A NIC belongs to one configuration. With the next one it begins anew (`reconfigure`): what was under way then does not go on,
 * since all its continuations are dropped, and is settled by recovery; messages of other configurations are not served. Until
 * recovery is done it serves nothing else.
 */

import type { NodeId, Timer } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  XENIC_ABORT,
  XENIC_ABORTED,
  XENIC_COMMIT,
  XENIC_COMMITTED,
  XENIC_EXECUTE,
  XENIC_EXECUTED,
  XENIC_LOG,
  XENIC_LOG_LENGTH,
  XENIC_LOGGED,
  XENIC_LOW,
  XENIC_SHIP,
  XENIC_SHIPPED,
  XENIC_VALIDATE,
  XENIC_VALIDATED,
} from "../kinds.ts";
import { type Name, UnderWay } from "../names.ts";
import { Asking } from "./asking.ts";
import { serveAbort, serveCommit } from "./commit.ts";
import { serveExecute } from "./execute.ts";
import type { HostMemory, LogRecord, XenicHost } from "./host.ts";
import { serveLog, serveLow } from "./log.ts";
import type { Item, RowName, XenicMessage } from "./message.ts";
import type { NicPorts, Placement, Switches } from "./ports.ts";
import { PrimaryRows } from "./primary-rows.ts";
import type { XenicProcedure } from "./procedure.ts";
import { serveShip } from "./ship.ts";
import { serveValidate } from "./validate.ts";

/** What a primary knows of a transaction that is under way. */
export interface Held {
  readonly name: Name;
  /** By their names: what it has locked here. */
  readonly locks: Map<string, RowName>;
  /** Rounds of EXECUTE that are being served. */
  readonly pending: Set<number>;
  isCommitting: boolean;
  isShipping: boolean;
  /** What was executed here for another coordinator: all writes of the transaction, wherever, and its result. */
  executed: Executed | undefined;
}

export interface Executed {
  readonly items: readonly Item[];
  readonly shards: readonly number[];
  readonly result: Int32Array;
}

/** What a backup knows: which shards of it are in its log, or about to be. */
export interface Logged {
  readonly name: Name;
  readonly shards: Map<number, "appending" | "there">;
}

export interface NicOptions {
  readonly procedures: readonly XenicProcedure[];
  readonly switches: Switches;
  /** All that its indexes may use. */
  readonly memoryBytes: number;
  /** Records in its host's log above which nothing new is begun here. */
  readonly logRecords: number;
}

export class XenicNic<Host extends HostMemory = XenicHost> {
  readonly host: Host;
  readonly options: NicOptions;
  readonly self: NodeId;
  placement: Placement;
  ports: NicPorts;
  rows: PrimaryRows;
  held = new UnderWay<Held>();
  logged = new UnderWay<Logged>();
  asking: Asking;
  /** Whether it waits for the end of a recovery. */
  isRecovering = false;
  /** The configuration in which it has served last. */
  servedConfigurationId: number;
  /** What crosses the bus outlives a configuration: a transaction that begins, or an outcome that is told. */
  readonly bus: NicPorts;

  constructor(ports: NicPorts, host: Host, placement: Placement, options: NicOptions) {
    this.bus = ports;
    this.self = ports.self;
    this.host = host;
    this.placement = placement;
    this.servedConfigurationId = placement.configurationId;
    this.options = options;
    this.ports = this.#portsNow();
    this.rows = this.#freshRows();
    this.asking = new Asking(this.ports);
  }

  get primaryShards(): number[] {
    return this.host.shards.filter((shard) => this.placement.primaryOf(shard) === this.self);
  }

  /** Messages of recovery are not for here (recovery.ts). */
  receive(from: NodeId, message: XenicMessage): void {
    if (this.isRecovering) return;
    // Every message says which of its coordinator's transactions are over.
    this.host.raiseLow(message.name);
    this.held.find(message.name);
    this.logged.find(message.name);
    switch (message.kind) {
      case XENIC_EXECUTE:
        serveExecute(this, message);
        break;
      case XENIC_VALIDATE:
        serveValidate(this, message);
        break;
      case XENIC_LOG:
        serveLog(this, message);
        break;
      case XENIC_COMMIT:
        serveCommit(this, message);
        break;
      case XENIC_ABORT:
        serveAbort(this, message);
        break;
      case XENIC_SHIP:
        serveShip(this, message);
        break;
      case XENIC_LOW:
        serveLow(this, from, message);
        break;
      case XENIC_EXECUTED:
      case XENIC_VALIDATED:
      case XENIC_LOGGED:
      case XENIC_COMMITTED:
      case XENIC_ABORTED:
      case XENIC_SHIPPED:
      case XENIC_LOG_LENGTH:
        this.asking.answered(from, message);
        break;
      default:
        throw new SituError("SITU_PROTOCOL", `a NIC serves no message of kind ${message.kind}`);
    }
  }

  /** The host has applied records: its acknowledgement came with other traffic. */
  applied(commits: readonly LogRecord[], logged: readonly LogRecord[]): void {
    for (const { items } of commits) for (const item of items) this.rows.applied(item);
    // They are below their coordinator's low, so late copies of their LOGs are known as such.
    for (const { name } of logged) this.logged.drop(name);
  }

  /** The state of a transaction at this primary, begun if there is none. */
  hold(name: Name): Held {
    let held = this.held.find(name);
    if (held === undefined) {
      held = {
        name,
        locks: new Map(),
        pending: new Set(),
        isCommitting: false,
        isShipping: false,
        executed: undefined,
      };
      this.held.begin(name, held);
    }
    return held;
  }

  /** Nothing of what was under way goes on. */
  reconfigure(placement: Placement): void {
    this.placement = placement;
    this.isRecovering = true;
    this.ports = this.#portsNow();
    this.asking = new Asking(this.ports);
  }

  /** Recovery is done: no transaction is under way, no row is locked or pinned. */
  restart(): void {
    this.servedConfigurationId = this.placement.configurationId;
    this.rows = this.#freshRows();
    this.held = new UnderWay();
    this.logged = new UnderWay();
    this.isRecovering = false;
  }

  /** Good for this configuration only. */
  #portsNow(): NicPorts {
    const { configurationId } = this.placement;
    return guarded(this.bus, () => this.placement.configurationId === configurationId);
  }

  #freshRows(): PrimaryRows {
    const { shardOf } = this.placement;
    return new PrimaryRows(
      this.ports,
      this.host,
      this.primaryShards,
      shardOf,
      this.options.memoryBytes,
    );
  }
}

/** One on whatever memory. */
export type AnyNic = XenicNic<HostMemory>;

/** Ports whose continuations are dropped when the configuration is over. */
function guarded(ports: NicPorts, isCurrent: () => boolean): NicPorts {
  const keep =
    (run: () => void): (() => void) =>
    () => {
      if (isCurrent()) run();
    };
  return {
    self: ports.self,
    post: (to, message) => {
      if (isCurrent()) ports.post(to, message);
    },
    read: (words, done) => ports.read(words, keep(done)),
    write: (words, done) => ports.write(words, keep(done)),
    toHost: (words, run) => ports.toHost(words, keep(run)),
    toNic: (words, run) => ports.toNic(words, keep(run)),
    after: (us, run): Timer => ports.after(us, keep(run)),
  };
}
