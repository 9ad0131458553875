/**
 * The coordinator of Xenic's commit, at the NIC of the node whose host has begun the transaction (§4.2):
 *
 *   EXECUTE    at each primary; again while the procedure wants more rows
 *   run        the procedure: at the host, or here (function shipping, §4.2.2)
 *   VALIDATE   rows that were only read
 *   LOG        at all backups of what is written. Up to here it may abort; from here on it goes on until it is done
 *   tell       the host
 *   COMMIT     at the primaries
 *
 * or SHIP in place of the first four, if one remote primary is enough (ship.ts).
 *
 * When all backups have logged, the writes are in as many memories as there are backups, and in this one's own. If this node is
 * one of the backups, that is one memory less: after as many deaths as there are backups they could all be gone, the primary
 * having nothing but locks (the paper does not discuss this). Then the primary gets the LOG as well (`provesAll`). It costs no
 * message more, since the one to the own node is none, and no time.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { XENIC_ATTEMPTS } from "../../runtime/limits.ts";
import {
  XENIC_ABORTED,
  XENIC_COMMITTED,
  XENIC_EXECUTED,
  XENIC_LOGGED,
  XENIC_SHIPPED,
  XENIC_VALIDATED,
} from "../kinds.ts";
import type { Name, Sequences } from "../names.ts";
import { type Answer, FOR_EVER, type Post } from "./asking.ts";
import { abortMessage, commitMessage } from "./commit.ts";
import { executeMessage, gather, lockAndRead } from "./execute.ts";
import { logPosts, resultOf } from "./log.ts";
import { Lows } from "./lows.ts";
import {
  BUSY,
  CONFLICT,
  type Item,
  OK,
  ownerOf,
  REFUSED,
  type RowName,
  rowId,
  type Status,
  TOO_LARGE,
  type XenicMessage,
} from "./message.ts";
import type { AnyNic } from "./nic.ts";
import { type Execution, execute, perform, type Wanted, type Write } from "./procedure.ts";
import { type NicRoutine, start } from "./routine.ts";
import { shipMessage } from "./ship.ts";
import { isSame, validateMessage } from "./validate.ts";

export interface Work extends Wanted {
  readonly procedure: number;
  readonly args: Int32Array;
}

/** "busy": there was no room, and may be later. "refused": a table is full. "too large": it never has room in a NIC's memory. */
export type AbortReason = "conflict" | "busy" | "refused" | "too large";

export type XenicOutcome =
  | { readonly kind: "committed"; readonly result: Int32Array }
  | { readonly kind: "aborted"; readonly reason: AbortReason };

/** A transaction that is not over, as recovery finds it. */
export interface Open {
  readonly name: Name;
  readonly work: Work;
  /** Tells the host, once. */
  tell: ((outcome: XenicOutcome) => void) | undefined;
  /** From LOG on. */
  writes: readonly Item[];
  shards: readonly number[];
  result: Int32Array;
  /** Whether all backups have logged it. */
  isLogged: boolean;
}

const NO_WORDS = new Int32Array(0);

export class XenicCoordinator {
  readonly open = new Map<number, Open>();
  readonly #nic: AnyNic;
  readonly #sequences: Sequences;
  readonly #lows: Lows;

  constructor(nic: AnyNic, sequences: Sequences) {
    this.#nic = nic;
    this.#sequences = sequences;
    this.#lows = new Lows(nic, sequences);
  }

  /** A transaction that the host has handed over. `done` runs at the host. */
  begin(work: Work, done: (outcome: XenicOutcome) => void): void {
    const open = this.#begin(work, done);
    if (open !== undefined) start(this.#run(open), () => this.#over(open));
  }

  /** One that the host has executed itself, on rows of the own node: what it has read, and what it writes (§4.2.4). */
  beginLocal(
    work: Work,
    items: readonly Item[],
    writes: readonly Write[],
    result: Int32Array,
    done: (outcome: XenicOutcome) => void,
  ): void {
    const open = this.#begin(work, done);
    if (open === undefined) return;
    open.result = result;
    start(this.#runLocal(open, items, writes), () => this.#over(open));
  }

  /** Another configuration: what is open was settled by recovery. */
  settle(outcomeOf: (open: Open) => XenicOutcome): void {
    this.#lows.clear();
    this.#sequences.endAll();
    for (const open of [...this.open.values()]) {
      const { tell } = open;
      open.tell = undefined;
      this.open.delete(open.name.sequence);
      tell?.(outcomeOf(open));
    }
  }

  #begin(work: Work, done: (outcome: XenicOutcome) => void): Open | undefined {
    const { procedures } = this.#nic.options;
    // What only reads makes no log longer.
    const mayWrite = work.writes.length > 0 || !procedures[work.procedure].isOneShot;
    const isPressed = mayWrite && this.#lows.isPressed;
    if (this.#nic.isRecovering || isPressed || this.#sequences.isFull) {
      this.#nic.bus.toHost(1, () => done({ kind: "aborted", reason: "busy" }));
      return undefined;
    }
    const name = this.#sequences.begin();
    const open: Open = {
      name,
      work,
      tell: done,
      writes: [],
      shards: [],
      result: NO_WORDS,
      isLogged: false,
    };
    this.open.set(name.sequence, open);
    return open;
  }

  #over({ name }: Open): void {
    this.open.delete(name.sequence);
    this.#sequences.end(name.sequence);
  }

  *#run(open: Open): NicRoutine<void> {
    const { procedures, switches } = this.#nic.options;
    const { work } = open;
    const procedure = procedures[work.procedure];
    const isHere = procedure.runs === "nic" && switches.runsAtNic;
    const remote = this.#primariesOf([...work.reads, ...work.writes]);
    remote.delete(this.#nic.self);
    if (isHere && switches.hops && procedure.isOneShot && remote.size === 1) {
      yield* this.#runByHop(open, [...remote][0]);
    } else {
      yield* this.#runHere(open, isHere);
    }
  }

  *#runHere(open: Open, isAtNic: boolean): NicRoutine<void> {
    const { name, work } = open;
    const { switches, procedures } = this.#nic.options;
    const rows = new Map<string, Item>();
    const locked = new Set<NodeId>();
    let wanted: Wanted = work;
    let execution: Execution;
    for (let round = 0; ; round++) {
      const items = itemsOf(wanted, switches.combines);
      const status = yield* this.#execute(name, round, items, rows, locked);
      if (status !== OK) return yield* this.#abort(open, status, locked);
      // Rows that are to be written and were read before they are locked.
      if (!switches.combines) {
        for (const row of wanted.writes) mark(rows, row);
      }
      const procedure = procedures[work.procedure];
      const found = [...rows.values()];
      const compute = (): Execution => execute(procedure, work.args, found);
      execution = isAtNic
        ? yield* perform(procedure, work.args, found)
        : yield* this.#atHost(found, compute);
      if (execution.kind !== "more") break;
      wanted = execution;
    }
    if (execution.kind === "refused") return yield* this.#abort(open, REFUSED, locked);
    if (execution.kind === "conflict") return yield* this.#abort(open, CONFLICT, locked);
    if (!switches.combines) {
      const status = yield* this.#lockWhatWasRead(name, rows, locked);
      if (status !== OK) return yield* this.#abort(open, status, locked);
    }
    const onlyRead = [...rows.values()].filter(({ isWritten }) => !isWritten);
    if (onlyRead.length > 0 && rows.size > 1 && !(yield* this.#validate(name, onlyRead))) {
      return yield* this.#abort(open, CONFLICT, locked);
    }
    open.result = execution.result;
    this.#decide(open, execution.writes);
    if (open.writes.length === 0) {
      this.#tell(open);
      yield* this.#release(open, locked);
      return;
    }
    yield* this.#log(open);
    yield* this.#commit(open, locked);
  }

  /** §4.2.3. The own rows are locked, all of them, and go with the message. */
  *#runByHop(open: Open, remote: NodeId): NicRoutine<void> {
    const { name, work } = open;
    const nic = this.#nic;
    const { placement, self } = nic;
    const items = itemsOf(work, true);
    const own = items.filter((item) => this.#primaryOf(item) === self);
    const others = items.filter((item) => !own.includes(item));
    const locked = new Set<NodeId>();
    const rows = new Map<string, Item>();
    const isWriting = items.some(({ isWritten }) => isWritten);
    if (own.length > 0 && !isWriting) {
      // Nothing to log, and rows at two nodes to validate: as any other that only reads.
      return yield* this.#runHere(open, true);
    }
    if (own.length > 0) {
      const all = own.map((item) => ({ ...item, isWritten: true }));
      const status = yield* this.#execute(name, 0, all, rows, locked);
      if (status !== OK) return yield* this.#abort(open, status, locked);
    }
    // Whether a row may be written is as the transaction has said, not as it was locked.
    const sent = own.map((item) => ({ ...rows.get(rowId(item)), ...item }));
    const message = shipMessage(name, self, work.procedure, work.args, [...others, ...sent]);
    this.#refresh(name);
    const logged = new Set<string>();
    let shipped: XenicMessage | undefined;
    let carried: XenicMessage | undefined;
    const isComplete = yield* nic.asking.until(
      name.sequence,
      [{ to: remote, message }],
      ({ from, message: answer }) => {
        if (answer.kind === XENIC_SHIPPED) {
          // A late copy may be told that it is over, although backups have logged it: then it is not.
          if (logged.size > 0) return false;
          shipped = answer;
          return true;
        }
        if (answer.kind !== XENIC_LOGGED) return false;
        this.#lows.noteLength(from, answer.status);
        logged.add(`${answer.number}:${from}`);
        if (answer.words.length > 0) carried = answer;
        return (
          carried !== undefined &&
          answer.shards.every((shard) =>
            placement.backupsOf(shard).every((backup) => logged.has(`${shard}:${backup}`)),
          )
        );
      },
      // Once it was sent the remote primary may have logged it: only it can tell that it has not.
      isWriting ? FOR_EVER : XENIC_ATTEMPTS,
    );
    if (!isComplete) return yield* this.#abort(open, CONFLICT, locked);
    const answer = shipped ?? (carried as XenicMessage);
    if (shipped !== undefined && shipped.status !== OK) {
      return yield* this.#abort(open, shipped.status, locked);
    }
    open.result = resultOf(answer.words);
    open.shards = answer.shards;
    open.writes = answer.items.filter((item) => this.#primaryOf(item) === self);
    if (answer.shards.length === 0) {
      this.#tell(open);
      yield* this.#release(open, locked);
      return;
    }
    open.isLogged = true;
    this.#lows.owe(open.name, open.shards);
    locked.add(remote);
    yield* this.#commit(open, locked);
  }

  *#runLocal(open: Open, items: readonly Item[], writes: readonly Write[]): NicRoutine<void> {
    const nic = this.#nic;
    const { name } = open;
    const locked = new Set<NodeId>();
    let found: readonly Item[] | undefined;
    let status: Status = OK;
    if (items.some(({ isWritten }) => isWritten)) {
      locked.add(nic.self);
      ({ status, found } = yield* lockAndRead(nic, nic.hold(name), items));
    } else found = yield* gather(nic, items, ownerOf(name));
    // The host's table may lag behind what the NIC knows (the second hole): all that it has read is compared.
    const isValid = found?.every(({ version }, i) => isSame(version, items[i].version)) ?? false;
    if (status !== OK || !isValid) {
      return yield* this.#abort(open, status === OK ? CONFLICT : status, locked);
    }
    this.#decide(open, writes);
    if (writes.length === 0) {
      this.#tell(open);
      yield* this.#release(open, locked);
      return;
    }
    yield* this.#log(open);
    yield* this.#commit(open, locked);
  }

  /** Reads rows at their primaries into `rows`, and locks those that are written. */
  *#execute(
    name: Name,
    round: number,
    items: readonly Item[],
    rows: Map<string, Item>,
    locked: Set<NodeId>,
  ): NicRoutine<Status> {
    const { self, asking } = this.#nic;
    const posts = this.#posts(name, items, (some) => executeMessage(name, self, round, some));
    const locking = posts.filter(({ message }) => message.items.some(({ isWritten }) => isWritten));
    for (const { to } of locking) locked.add(to);
    const answers = yield* asking.each(name.sequence, posts, XENIC_EXECUTED, XENIC_ATTEMPTS);
    const status = statusOf(answers);
    // Who was to lock and has refused keeps nothing, of earlier rounds neither.
    for (const { from, message } of answers ?? []) {
      if (message.status !== OK && locking.some(({ to }) => to === from)) locked.delete(from);
    }
    if (status !== OK) return status;
    for (const { message } of answers as Answer[]) {
      for (const item of message.items) rows.set(rowId(item), item);
    }
    return OK;
  }

  /** Without combined operations: rows are locked by a message of their own, and must be as they were. */
  *#lockWhatWasRead(name: Name, rows: Map<string, Item>, locked: Set<NodeId>): NicRoutine<Status> {
    const written = [...rows.values()].filter(({ isWritten }) => isWritten);
    const wanted = written.map(({ table, key }) => ({ table, key, isWritten: true }));
    const now = new Map<string, Item>();
    const status = yield* this.#execute(name, LOCKING_ROUND, wanted, now, locked);
    if (status !== OK) return status;
    const isSound = written.every((row) => isSame(now.get(rowId(row))?.version, row.version));
    return isSound ? OK : CONFLICT;
  }

  *#validate(name: Name, items: readonly Item[]): NicRoutine<boolean> {
    const { self, asking } = this.#nic;
    const posts = this.#posts(name, items, (some) => validateMessage(name, self, some));
    const answers = yield* asking.each(name.sequence, posts, XENIC_VALIDATED, XENIC_ATTEMPTS);
    return statusOf(answers) === OK;
  }

  *#log(open: Open): NicRoutine<void> {
    const { name, shards, writes } = open;
    const { placement, self, asking, options } = this.#nic;
    this.#refresh(name);
    const { provesAll } = options.switches;
    const posts = logPosts(placement, name, self, shards, writes, { provesAll });
    const answers = yield* asking.each(name.sequence, posts, XENIC_LOGGED, FOR_EVER);
    for (const { from, message } of answers ?? []) this.#lows.noteLength(from, message.status);
    this.#lows.owe(open.name, open.shards);
    open.isLogged = true;
  }

  *#commit(open: Open, locked: ReadonlySet<NodeId>): NicRoutine<void> {
    const { name, shards, writes } = open;
    const { self, asking } = this.#nic;
    this.#tell(open);
    this.#refresh(name);
    const posts = [...locked].map((to) => {
      const items = writes.filter((item) => this.#primaryOf(item) === to);
      return { to, message: commitMessage(name, self, shards, items) };
    });
    yield* asking.each(name.sequence, posts, XENIC_COMMITTED, FOR_EVER);
  }

  *#abort(open: Open, status: Status, locked: ReadonlySet<NodeId>): NicRoutine<void> {
    this.#tell(open, { kind: "aborted", reason: reasonOf(status) });
    yield* this.#release(open, locked);
  }

  /** Nobody waits for this but the locks. */
  *#release({ name }: Open, locked: ReadonlySet<NodeId>): NicRoutine<void> {
    const { self, asking } = this.#nic;
    this.#refresh(name);
    const posts = [...locked].map((to) => ({ to, message: abortMessage(name, self) }));
    yield* asking.each(name.sequence, posts, XENIC_ABORTED, FOR_EVER);
  }

  *#atHost(items: readonly Item[], compute: () => Execution): NicRoutine<Execution> {
    const { ports } = this.#nic;
    let execution: Execution | undefined;
    yield (resume) =>
      ports.toHost(wordsOf(items), () => {
        const computed = compute();
        execution = computed;
        ports.toNic(computed.kind === "done" ? wordsOf(computed.writes) : 4, resume);
      });
    return execution as Execution;
  }

  #decide(open: Open, writes: readonly Write[]): void {
    const { shardOf } = this.#nic.placement;
    open.writes = writes.map((row) => ({ ...row, isWritten: true }));
    open.shards = [...new Set(writes.map(({ table, key }) => shardOf(table, key)))];
  }

  #tell(open: Open, outcome?: XenicOutcome): void {
    const { tell, result } = open;
    if (tell === undefined) return;
    open.tell = undefined;
    const told: XenicOutcome = outcome ?? { kind: "committed", result };
    this.#nic.bus.toHost(4 + result.length, () => tell(told));
  }

  #posts(
    name: Name,
    items: readonly Item[],
    messageOf: (items: readonly Item[]) => XenicMessage,
  ): Post[] {
    this.#refresh(name);
    const groups = new Map<NodeId, Item[]>();
    for (const item of items) {
      const to = this.#primaryOf(item);
      const group = groups.get(to);
      if (group === undefined) groups.set(to, [item]);
      else group.push(item);
    }
    return [...groups].map(([to, some]) => ({ to, message: messageOf(some) }));
  }

  #primaryOf({ table, key }: RowName): NodeId {
    const { placement } = this.#nic;
    return placement.primaryOf(placement.shardOf(table, key));
  }

  #primariesOf(rows: readonly RowName[]): Set<NodeId> {
    return new Set(rows.map((row) => this.#primaryOf(row)));
  }

  #refresh(name: Name): void {
    name.low = this.#sequences.low;
  }
}

/** Above all rounds of a procedure that wants more. */
const LOCKING_ROUND = 1 << 20;

function itemsOf({ reads, writes }: Wanted, locks: boolean): Item[] {
  const items = new Map<string, Item>();
  for (const { table, key } of reads)
    items.set(rowId({ table, key }), { table, key, isWritten: false });
  for (const { table, key } of writes) {
    items.set(rowId({ table, key }), { table, key, isWritten: locks });
  }
  return [...items.values()];
}

function mark(rows: Map<string, Item>, row: RowName): void {
  const item = rows.get(rowId(row));
  if (item !== undefined) rows.set(rowId(row), { ...item, isWritten: true });
}

function reasonOf(status: Status): AbortReason {
  if (status === REFUSED) return "refused";
  if (status === TOO_LARGE) return "too large";
  return status === BUSY ? "busy" : "conflict";
}

function statusOf(answers: readonly Answer[] | undefined): Status {
  if (answers === undefined) return CONFLICT;
  return answers.find(({ message }) => message.status !== OK)?.message.status ?? OK;
}

function wordsOf(items: readonly { readonly value?: Int32Array | null | undefined }[]): number {
  return items.reduce((sum, { value }) => sum + 4 + (value?.length ?? 0), 2);
}
