/**
 * The NIC worker of a node with the protocol "xenic": the thread that owns the sockets, the locks and the NIC's memory, and runs all
 * phases of the commit (protocols/xenic/). Its ports:
 *
 *   post           one-way frames on TCP; to itself, when this turn is over
 *   read, write    host memory, which both threads see: at once
 *   toHost, toNic  the protocol's program is here on both sides of the bus; what crosses are requests of the host's procedures, over
 *                  rings (host-link.ts), and the logs
 *
 * The host's thread is not asked for anything of a commit. It is called when there is something to apply and it sleeps.
 */

import { packConfiguration } from "../../cluster/configuration.ts";
import type { Description } from "../../cluster/describe.ts";
import { largerThanNic } from "../../database/xenic/xenic-execution.ts";
import {
  DESCRIBE_KIND,
  type FabricCounters,
  type Incoming,
  MEMBERSHIP_KIND,
  type NodeId,
  type Sender,
  type Ticket,
} from "../../fabric/fabric.ts";
import type { ChannelEnd } from "../../fabric/rings/channel.ts";
import { openTcp, type TcpEndpoint } from "../../fabric/tcp/endpoint.ts";
import { type Reader, Writer } from "../../fabric/wire.ts";
import {
  KIND_NAMES,
  XENIC_CALL,
  XENIC_EXECUTE,
  XENIC_LOG_LENGTH,
  XENIC_OPEN_TABLE,
  XENIC_READ,
  XENIC_SUBMIT,
} from "../../protocols/kinds.ts";
import { Sequences } from "../../protocols/names.ts";
import {
  decodeCall,
  decodeItems,
  encodeItems,
  encodeOutcome,
  type OpenedTable,
  type WantedTable,
} from "../../protocols/xenic/client-messages.ts";
import { confirm, confirmation } from "../../protocols/xenic/confirm.ts";
import {
  type Work,
  XenicCoordinator,
  type XenicOutcome,
} from "../../protocols/xenic/coordinator.ts";
import { gather } from "../../protocols/xenic/execute.ts";
import { type FixedPlacement, fixedPlacement } from "../../protocols/xenic/fixed-placement.ts";
import { type Item, type RowName, rowId, XenicMessage } from "../../protocols/xenic/message.ts";
import { XenicNic } from "../../protocols/xenic/nic.ts";
import type { NicPorts } from "../../protocols/xenic/ports.ts";
import { start } from "../../protocols/xenic/routine.ts";
import { sharedTableBytes } from "../../protocols/xenic/shared-table.ts";
import { realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_ASYNC_PAUSE_MS,
  XENIC_LOG_RECORDS,
  XENIC_MAX_ROW_BYTES,
  XENIC_MAX_ROWS,
  XENIC_MAX_SCHEMA_BYTES,
  XENIC_MAX_TABLES,
  XENIC_SOCKET_TIMES,
  XENIC_TRANSACTION_BYTES,
} from "../../runtime/limits.ts";
import { Random, uniqueId } from "../../runtime/random.ts";
import { HostLink, Passed } from "../host-link.ts";
import { cannotListen } from "../nic.ts";
import { Formation, UNFORMED } from "./formation.ts";
import { NicMemory, type SharedLogs } from "./nic-memory.ts";
import {
  type NicProcedure,
  NicProcedures,
  rowRoom,
  tooLarge,
  tooManyBytes,
} from "./nic-procedures.ts";
import { wordsOf } from "./procedure-worker.ts";
import type { XenicNodeConfiguration } from "./xenic-configuration.ts";

/** What a node with the protocol "xenic" tells of itself. */
export interface XenicStats {
  readonly counters: FabricCounters;
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that are not over, locked rows, commits that the host has not applied. */
  readonly open: number;
  readonly locked: number;
  readonly pinned: number;
  /** Lookups in the NIC's indexes, and those that found the row there. */
  readonly lookups: number;
  readonly hits: number;
  /** Messages to other nodes, by their names. */
  readonly sent: Readonly<Record<string, number>>;
  /** Questions among them that were asked again, since there was no answer for a while. */
  readonly repeated: number;
  /** Records of commits and of logs that the host has not applied. */
  readonly commitRecords: number;
  readonly logRecords: number;
  /** How often the host was called to its logs, and requests that crossed to or from it. */
  readonly hostCalls: number;
  readonly crossings: number;
}

export interface XenicTask {
  readonly xenic: XenicNodeConfiguration;
  readonly end: ChannelEnd;
  readonly logs: SharedLogs;
  readonly nicProcedures: readonly NicProcedure[];
}

/** What the NIC tells its host's thread while it runs. */
export interface XenicNicListener {
  formed(configurationId: number): void;
  refused(error: SituError): void;
  /** There is something in the logs, and the host sleeps. */
  wake(): void;
  /** A table was made. `known` is called when the host has it. */
  table(
    opened: OpenedTable,
    copies: ReadonlyMap<number, SharedArrayBuffer>,
    known: () => void,
  ): void;
}

const NOBODY = { high: 0, low: 0 };

export class XenicNicService {
  readonly #task: XenicTask;
  readonly #listener: XenicNicListener;
  readonly #link: HostLink;
  readonly #endpoint: TcpEndpoint;
  readonly #procedures: NicProcedures;
  readonly #memory: NicMemory;
  readonly #formation: Formation;
  readonly #tables: OpenedTable[] = [];
  /** By the numbers of tables that the host does not know yet: who waits for it. */
  readonly #opening = new Map<number, (() => void)[]>();
  readonly #sent = new Map<number, number>();
  readonly #random = new Random();
  #nic: XenicNic<NicMemory>;
  #coordinator: XenicCoordinator;
  #placement: FixedPlacement;
  #usedBytes = 0;
  #committed = 0;
  #aborted = 0;
  #crossings = 0;
  #toSelf: XenicMessage[] = [];

  static async open(task: XenicTask, listener: XenicNicListener): Promise<XenicNicService> {
    const { id, cluster, secret, nodeSecret, tls, maxConnections } = task.xenic;
    let service: XenicNicService | undefined;
    const endpoint = await openTcp({
      self: id,
      nodes: new Map(cluster.nodes.map(({ id: node, host, port }) => [node, { host, port }])),
      configurationId: UNFORMED,
      cluster: cluster.cluster,
      instance: uniqueId(),
      service: (incoming) => service!.#serve(incoming),
      posted: (from, kind, body) => service!.#posted(from, kind, body),
      ...(secret === undefined ? {} : { secret }),
      ...(nodeSecret === undefined ? {} : { nodeSecret }),
      ...(tls === undefined ? {} : { tls }),
      ...(maxConnections === undefined ? {} : { maxConnections }),
    });
    service = new XenicNicService(task, listener, endpoint);
    const { host, port } = cluster.nodes.find((node) => node.id === id)!;
    try {
      await endpoint.listen({ host, port });
    } catch (error) {
      await service.close();
      throw cannotListen({ id, host, port }, error as NodeJS.ErrnoException);
    }
    return service;
  }

  private constructor(task: XenicTask, listener: XenicNicListener, endpoint: TcpEndpoint) {
    const { xenic, end, logs, nicProcedures } = task;
    const { id, cluster } = xenic;
    const nodes = cluster.nodes.map((node) => node.id);
    this.#task = task;
    this.#listener = listener;
    this.#endpoint = endpoint;
    this.#placement = fixedPlacement(nodes, cluster.backups, UNFORMED);
    this.#memory = new NicMemory(this.#placement.shardsAt(id), logs, () => listener.wake());
    this.#procedures = new NicProcedures(xenic.procedures, nicProcedures);
    this.#link = new HostLink(end, UNFORMED, (to, incoming) => {
      this.#crossings++;
      if (to === id) this.#serve(incoming);
      else {
        const { kind, body } = incoming;
        endpoint.send(to, new Passed(kind, this.#link.configurationId, body, incoming.defer()));
      }
    });
    [this.#nic, this.#coordinator] = this.#program();
    const said = {
      instance: endpoint.instance,
      procedures: nicProcedures.map(
        ({ name, hasRows }) => `${name}${hasRows ? "" : " (more rows)"}`,
      ),
      backups: cluster.backups,
      nodes: nodes.length,
    };
    const others = nodes.filter((node) => node !== id);
    this.#formation = new Formation(endpoint, others, said, {
      // Not before this constructor has returned.
      formed: (configurationId) => queueMicrotask(() => this.#formed(configurationId)),
      refused: (error) => listener.refused(error),
    });
  }

  get port(): number {
    return this.#endpoint.address().port;
  }

  stats(): XenicStats {
    this.#unpin();
    const { indexes } = this.#nic.rows;
    const sum = (of: (index: (typeof indexes)[number]) => number): number =>
      indexes.reduce((all, index) => all + of(index), 0);
    return {
      counters: this.#endpoint.counters,
      committed: this.#committed,
      aborted: this.#aborted,
      open: this.#coordinator.open.size,
      locked: sum(({ locked }) => locked),
      pinned: sum(({ pins }) => pins),
      lookups: sum(({ counters }) => counters.lookups),
      hits: sum(({ counters }) => counters.hits),
      sent: Object.fromEntries([...this.#sent].map(([kind, count]) => [KIND_NAMES[kind], count])),
      repeated: this.#nic.asking.repeated,
      commitRecords: this.#memory.commits.length,
      logRecords: this.#memory.logged.length,
      hostCalls: this.#memory.wakes,
      crossings: this.#crossings,
    };
  }

  async close(): Promise<void> {
    this.#formation.close();
    await this.#endpoint.close();
    this.#link.close();
    this.#procedures.close();
  }

  #program(): [XenicNic<NicMemory>, XenicCoordinator] {
    const { xenic, nicProcedures } = this.#task;
    const nic = new XenicNic(this.#ports(), this.#memory, this.#placement, {
      procedures: [confirm, ...nicProcedures.map((each) => this.#procedures.asProcedure(each))],
      switches: xenic.switches,
      memoryBytes: xenic.nicMemoryBytes,
      logRecords: XENIC_LOG_RECORDS,
    });
    // What a node was before is gone with all it had, so its transactions have no other life.
    const noLife = (): number => {
      throw new SituError("SITU_OVERLOADED", "this node has begun as many transactions as it can");
    };
    return [nic, new XenicCoordinator(nic, new Sequences(xenic.id, 0, noLife))];
  }

  #formed(configurationId: number): void {
    const { cluster } = this.#task.xenic;
    const nodes = cluster.nodes.map((node) => node.id);
    this.#placement = fixedPlacement(nodes, cluster.backups, configurationId);
    this.#endpoint.configurationId = configurationId;
    this.#link.configurationId = configurationId;
    [this.#nic, this.#coordinator] = this.#program();
    this.#listener.formed(configurationId);
  }

  #ports(): NicPorts {
    const { id } = this.#task.xenic;
    const now = (_words: number, run: () => void): void => run();
    return {
      self: id,
      post: (to, message) => this.#post(to, message),
      read: now,
      write: now,
      toHost: now,
      toNic: now,
      after: (us, run) => realClock.after((us * XENIC_SOCKET_TIMES) / 1e3, run),
    };
  }

  #post(to: NodeId, message: XenicMessage): void {
    if (to === this.#task.xenic.id) {
      this.#toSelf.push(message);
      if (this.#toSelf.length === 1) queueMicrotask(() => this.#serveSelf());
      return;
    }
    this.#sent.set(message.kind, (this.#sent.get(message.kind) ?? 0) + 1);
    this.#endpoint.post(to, message.kind, (out) => message.encode(out));
  }

  #serveSelf(): void {
    const messages = this.#toSelf;
    this.#toSelf = [];
    for (const message of messages) this.#nic.receive(this.#task.xenic.id, message);
  }

  #posted(from: Sender, kind: number, body: Reader): void {
    if (from.node < 0 || kind < XENIC_EXECUTE || kind > XENIC_LOG_LENGTH) {
      throw new SituError("SITU_PERMISSION", `only NICs send ${KIND_NAMES[kind] ?? kind}`);
    }
    this.#unpin();
    const message = XenicMessage.decode(kind, body);
    // Who begins a transaction has opened its tables everywhere. Should one not be known here, it is asked again.
    if (!message.items.every(({ table }) => this.#isOpen(table))) return;
    this.#nic.receive(from.node, message);
  }

  /** What the host has applied: it says so by a word in memory. */
  #unpin(): void {
    const { commits, logged } = this.#memory.takeApplied();
    if (commits.length + logged.length > 0) this.#nic.applied(commits, logged);
  }

  #serve(incoming: Incoming): void {
    const { kind } = incoming;
    if (kind === MEMBERSHIP_KIND) this.#formation.serve(incoming);
    else if (!this.#formation.isFormed) throw this.#notFormed();
    else if (kind === DESCRIBE_KIND) incoming.reply().text(this.#description());
    else if (kind === XENIC_OPEN_TABLE) this.#openTable(incoming);
    else if (kind === XENIC_READ) this.#read(incoming);
    else if (kind === XENIC_SUBMIT) this.#submit(incoming);
    else if (kind === XENIC_CALL) this.#call(incoming);
    else {
      const what = KIND_NAMES[kind] ?? `messages of kind ${kind}`;
      throw new SituError(
        "SITU_UNSUPPORTED",
        `nodes with the protocol "xenic" do not serve ${what}`,
      );
    }
  }

  #notFormed(): SituError {
    const missing = this.#formation.missing.join(", ");
    return new SituError("SITU_OVERLOADED", `the cluster waits for its nodes to start: ${missing}`);
  }

  #description(): string {
    const { id, cluster } = this.#task.xenic;
    const { configurationId, instance } = this.#endpoint;
    const said: { [Key in keyof Description]: unknown } = {
      node: id,
      instance,
      configuration: packConfiguration({ ...cluster, configurationId }),
      protocol: "xenic",
    };
    return JSON.stringify(said);
  }

  #openTable(incoming: Incoming): void {
    const wanted = wantedOf(incoming.body.text());
    const known = this.#tables.find((each) => each?.name === wanted.name);
    if (known !== undefined) {
      if (known.schema !== wanted.schema || (wanted.number ?? known.number) !== known.number) {
        const why = `table ${wanted.name} is known with another schema: ${known.schema}`;
        throw new SituError("SITU_SCHEMA", why);
      }
      this.#replyOpened(incoming.defer(), known);
      return;
    }
    if (wanted.isOpenOnly === true) {
      const why = `table ${wanted.name} is not open at all nodes, and one of them does not answer: tables are made when all do`;
      throw new SituError("SITU_UNREACHABLE", why);
    }
    const { id, cluster, memoryBytes, nicMemoryBytes } = this.#task.xenic;
    const first = Math.min(...cluster.nodes.map((node) => node.id));
    if (wanted.number === undefined && id !== first) {
      throw new SituError("SITU_PROTOCOL", `node ${first} gives tables their numbers`);
    }
    const number = wanted.number ?? this.#tables.length;
    if (number >= XENIC_MAX_TABLES || this.#tables[number] !== undefined) {
      throw new SituError("SITU_FULL", `a cluster has at most ${XENIC_MAX_TABLES} tables`);
    }
    const copies = this.#memory.shards.length;
    const bytes = sharedTableBytes(wanted.shape) * copies;
    if (this.#usedBytes + bytes > memoryBytes) {
      throw new SituError(
        "SITU_FULL",
        `table ${wanted.name} needs ${bytes} bytes at node ${id}, and ${memoryBytes - this.#usedBytes} of its memoryBytes are left: give extents for fewer or shorter rows, or nodes more memory`,
      );
    }
    const { name, schema, shape } = wanted;
    const opened = { name, schema, shape, number };
    // The NIC's memory is shared out as the host's is.
    const nicBytes = Math.floor((bytes / memoryBytes) * nicMemoryBytes);
    const own = this.#nic.primaryShards;
    const added = this.#memory.addTable(opened);
    try {
      for (const shard of own) {
        this.#nic.rows.add(shard, number, added.get(shard)!, Math.floor(nicBytes / own.length));
      }
    } catch (error) {
      const { message } = error as Error;
      throw new SituError(
        "SITU_FULL",
        `table ${wanted.name}: ${message}: give nodes more nicMemoryBytes`,
      );
    }
    this.#usedBytes += bytes;
    this.#tables[number] = opened;
    this.#procedures.addTable(opened);
    this.#opening.set(number, []);
    this.#replyOpened(incoming.defer(), opened);
    const memories = new Map([...added].map(([shard, { memory }]) => [shard, memory]));
    this.#listener.table(opened, memories, () => {
      const waiting = this.#opening.get(number) ?? [];
      this.#opening.delete(number);
      for (const tell of waiting) tell();
    });
  }

  /** Not before the host knows it: what is logged of it must find it there. */
  #replyOpened(ticket: Ticket, opened: OpenedTable): void {
    const tell = (): void => ticket.reply((out) => out.text(JSON.stringify(opened)));
    const waiting = this.#opening.get(opened.number);
    if (waiting === undefined) tell();
    else waiting.push(tell);
  }

  /** Whether both threads know a table. */
  #isOpen(table: number): boolean {
    return this.#tables[table] !== undefined && !this.#opening.has(table);
  }

  #read(incoming: Incoming): void {
    this.#unpin();
    const items = decodeItems(incoming.body);
    for (const item of items) {
      this.#check(item);
      if (!this.#nic.rows.has(item)) throw misplaced();
    }
    const ticket = incoming.defer();
    start(gather(this.#nic, items, NOBODY), (found) => {
      ticket.reply((out) => {
        out.word(found === undefined ? 0 : 1);
        if (found !== undefined) encodeItems(out, found);
      });
    });
  }

  #submit(incoming: Incoming): void {
    this.#unpin();
    const items = decodeItems(incoming.body);
    for (const item of items) this.#check(item);
    if (items.length === 0 || new Set(items.map(rowId)).size < items.length) {
      throw new SituError("SITU_PROTOCOL", "a transaction names each of its rows once");
    }
    const bytes = this.#roomOf(items);
    if (bytes > XENIC_TRANSACTION_BYTES) throw tooLarge("the transaction", bytes);
    this.#requireNodes(items);
    const ticket = incoming.defer();
    this.#begin(confirmation(items), (outcome) => {
      ticket.reply((out) => encodeOutcome(out, outcome));
    });
  }

  #begin(work: Work, done: (outcome: XenicOutcome) => void): void {
    this.#coordinator.begin(work, (outcome) => {
      if (outcome.kind === "committed") this.#committed++;
      else this.#aborted++;
      done(outcome);
    });
  }

  #call(incoming: Incoming): void {
    this.#unpin();
    const { nicProcedures } = this.#task;
    const { at } = incoming.body;
    const called = decodeCall(incoming.body);
    const number = nicProcedures.findIndex(({ name }) => name === called.name);
    const isKnown = nicProcedures[number]?.tables.every((name) =>
      this.#tables.some((each) => each?.name === name && this.#isOpen(each.number)),
    );
    const { runsAtNic } = this.#task.xenic.switches;
    // The host's; or one whose tables have to be opened, which is the host's work, too: it comes back then.
    if (isKnown !== true || !runsAtNic) {
      this.#crossings++;
      incoming.body.at = at;
      this.#link.pass(incoming);
      return;
    }
    this.#requireNodes();
    const out = new Writer();
    out.value(called.values);
    const args = out.views.i32.slice(0, out.at);
    // They travel with the rows that they are about.
    if (args.length * 4 > XENIC_TRANSACTION_BYTES) {
      throw tooManyBytes(`the arguments of procedure ${called.name}`, args.length * 4);
    }
    const ticket = incoming.defer();
    const end = (words: Int32Array): void => {
      ticket.reply((reply) => reply.words(words, 0, words.length));
    };
    const deadline = realClock.nowMs() + called.leftMs;
    const { name } = called;
    this.#procedures.plan(name, args, (planned) => {
      if (planned instanceof Int32Array) end(planned);
      else this.#runUntil(deadline, name, { procedure: number + 1, args, ...planned }, end);
    });
  }

  /** Again, while others are in the way and there is time. */
  #runUntil(
    deadline: number,
    name: string,
    work: Work,
    end: (words: Int32Array) => void,
    attempt = 0,
  ): void {
    this.#begin(work, (outcome) => {
      if (outcome.kind === "committed") {
        end(outcome.result);
        return;
      }
      const error = (code: string, why: string): void =>
        end(wordsOf({ isDone: false, code, message: `procedure ${name} ${why}` }));
      if (outcome.reason === "refused") {
        error("SITU_FULL", "adds a row to a table that has no room for it");
      } else if (outcome.reason === "too large") {
        const { code, message } = largerThanNic(`procedure ${name}`);
        end(wordsOf({ isDone: false, code, message }));
      } else if (realClock.nowMs() >= deadline) {
        if (outcome.reason === "busy") {
          const why =
            "found no room until its time was over: the memory of a NIC is full of rows that are locked or not applied yet, or a host does not keep up with its log";
          error("SITU_OVERLOADED", why);
        } else error("SITU_CONFLICT", "met other transactions until its time was over");
      } else {
        const mostMs = Math.min(0.5 * 2 ** attempt, MAX_ASYNC_PAUSE_MS);
        const pauseMs = (mostMs * (500 + this.#random.below(500))) / 1_000;
        realClock.after(pauseMs, () => this.#runUntil(deadline, name, work, end, attempt + 1));
      }
    });
  }

  /** What a client says of a row. */
  #check({ table, value }: Item): void {
    const opened = this.#tables[table];
    if (!this.#isOpen(table)) throw new SituError("SITU_PROTOCOL", `there is no table ${table}`);
    if (value && value.length > opened.shape.valueWords) {
      throw new SituError("SITU_PROTOCOL", `a row of table ${opened.name} is too long`);
    }
  }

  /** What rows take in messages and logs, if each is as long as it can be. */
  #roomOf(rows: readonly RowName[]): number {
    return rows.reduce((sum, { table }) => sum + rowRoom(this.#tables[table]), 0);
  }

  /**
   * Fails at once if a node is needed that cannot be reached. Whoever writes needs all of them: a coordinator's records are over in
   * their order, so one that waits for a lost node would in the end hold up the logs of all others.
   */
  #requireNodes(items?: readonly (RowName & { readonly isWritten: boolean })[]): void {
    const placement = this.#placement;
    const isReading = items !== undefined && !items.some(({ isWritten }) => isWritten);
    const needed = isReading
      ? new Set(items.map(({ table, key }) => placement.primaryOf(placement.shardOf(table, key))))
      : this.#task.xenic.cluster.nodes.map(({ id }) => id);
    for (const node of needed) {
      const error = this.#formation.whyNot(node);
      if (error !== undefined) throw error;
    }
  }
}

function wantedOf(text: string): WantedTable {
  const given = JSON.parse(text) as WantedTable;
  const { name, schema, shape, number, isOpenOnly = false } = Object(given) as WantedTable;
  const { rows, valueWords } = Object(shape) as WantedTable["shape"];
  const isWhole = (value: unknown, most: number): boolean =>
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= most;
  if (
    typeof name !== "string" ||
    typeof schema !== "string" ||
    schema.length > XENIC_MAX_SCHEMA_BYTES ||
    !isWhole(rows, XENIC_MAX_ROWS) ||
    !isWhole(valueWords, 1 + XENIC_MAX_ROW_BYTES / 4) ||
    !(number === undefined || isWhole(number, XENIC_MAX_TABLES)) ||
    typeof isOpenOnly !== "boolean"
  ) {
    throw new SituError("SITU_PROTOCOL", "a table makes no sense");
  }
  const numbered = number === undefined ? {} : { number };
  return { name, schema, shape: { rows, valueWords }, isOpenOnly, ...numbered };
}

function misplaced(): SituError {
  return new SituError("SITU_PROTOCOL", "a row was asked for where it is not");
}
