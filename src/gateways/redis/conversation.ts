/**
 * What a client's requests do: each is found, checked as Redis checks it, and run. Requests that came
 * together run together (batch.ts); a plain GET runs without a transaction, as reads are lock-free;
 * and what MULTI queues runs as one transaction when EXEC says so.
 */

import { nowMs } from "../../runtime/clock.ts";
import { commandChannel, publishCommand } from "../../runtime/diagnostics.ts";
import { MAX_QUEUED_BYTES } from "../../runtime/limits.ts";
import type { Replies } from "../resp/replies.ts";
import { Request } from "../resp/request.ts";
import { Call } from "./call.ts";
import { errorReply, isOfStore, unknownCommand, unknownSubcommand } from "./errors.ts";
import { type Registered, subcommandOf } from "./registry.ts";
import { ReplyError, WRONG_TYPE, wrongArity } from "./reply-error.ts";
import type { SessionState } from "./session-state.ts";
import { STRING } from "./tables.ts";
import type { GatewayThread } from "./thread.ts";
import { TransactionState } from "./transaction-state.ts";

const NO_PASSWORD_GIVEN = "NOAUTH Authentication required.";
/** What is done at once also after MULTI. */
const OUTSIDE_MULTI = new Set(["multi", "exec", "discard", "watch", "quit", "reset"]);
const ABORTED = "EXECABORT Transaction discarded because of previous errors.";

export class Conversation {
  readonly transaction = new TransactionState();
  /** The last epoch that a reply waits for, where replies wait for the disk. */
  epoch = 0;
  readonly #thread: GatewayThread;
  readonly #session: SessionState;
  readonly #replies: Replies;
  readonly #call: Call;
  #isAuthenticated: boolean;
  /** No MULTI is open and the password was given: requests may run together. */
  #isPlain: boolean;
  /** Where the replies of the transaction that runs begin, and which of the batch it has. */
  #mark = 0;
  #first = 0;
  #end = 0;
  #isAborted = false;
  /** Commands of the transaction that runs, or ran last, whose reply is an error. */
  readonly #failures: Registered[] = [];

  constructor(thread: GatewayThread, session: SessionState) {
    this.#thread = thread;
    this.#session = session;
    this.#replies = thread.replies;
    this.#call = new Call(thread.keys, thread, session, thread.replies, new Request());
    this.#isAuthenticated = thread.settings.password === "";
    this.#isPlain = this.#isAuthenticated;
  }

  get isAuthenticated(): boolean {
    return this.#isAuthenticated;
  }

  set isAuthenticated(is: boolean) {
    this.#isAuthenticated = is;
    this.#isPlain = is && !this.transaction.isOpen;
  }

  /** Answers a request, or gathers it to be answered by `finish`. */
  serve(request: Request): void {
    const thread = this.#thread;
    const { batch } = thread;
    if (commandChannel.hasSubscribers) {
      this.#serveTraced(request);
      return;
    }
    if (this.#isPlain) {
      if (isCalled(request, GET, 2)) {
        if (batch.count === 0) batch.isReads = true;
        this.#gather(request, thread.get);
        if (batch.isReads && batch.count >= thread.readsAtOnce) this.finish();
        return;
      }
      if (batch.isReads) this.finish();
      if (isCalled(request, SET, 3)) {
        this.#gather(request, thread.set);
        return;
      }
      const found = thread.registry.find(request);
      if (found?.runsInStore && found.takes(request.count)) {
        this.#gather(request, found);
        return;
      }
    }
    this.finish();
    this.#serveAlone(request);
  }

  /** Answers a request with an argument that was longer than the longest value, and was not kept. */
  refuseTooLong(): void {
    this.finish();
    if (this.transaction.isOpen) this.transaction.isSpoilt = true;
    const { maxBulkBytes } = this.#thread.limits;
    this.#replies.error(`ERR string exceeds maximum allowed size (${maxBulkBytes} bytes)`);
  }

  #gather(request: Request, found: Registered): void {
    const { batch } = this.#thread;
    batch.add(request, found);
    if (batch.isFull) this.finish();
  }

  /** For those who listen: one by one, so that each has its time and its error. */
  #serveTraced(request: Request): void {
    const startMs = nowMs();
    this.finish();
    const replies = this.#replies;
    const before = replies.length;
    const { database, registry } = this.#thread;
    const name = registry.find(request)?.fullName ?? "unknown";
    this.#serveAlone(request);
    const reply = replies.buffer.toString("latin1", before, Math.min(before + 32, replies.length));
    const prefix = reply.startsWith("-") ? reply.slice(1).split(/[ \r]/, 1)[0] : "";
    publishCommand(database.path, name, nowMs() - startMs, this.#session.id, prefix);
  }

  /** GET, lock-free: it sees what was committed when it looked. */
  #get(request: Request): void {
    const thread = this.#thread;
    const replies = this.#replies;
    const { key, metrics } = thread;
    key.set(request.bytes, request.starts[1], request.ends[1]);
    const before = replies.length;
    let type: number;
    try {
      type = thread.keys.replyString(key, replies, thread.timeMs);
    } catch (error) {
      replies.rewind(before);
      this.#refuse(thread.get, error);
      return;
    }
    if (type === STRING) {
      metrics.hits(1);
    } else if (type === 0) {
      metrics.misses(1);
      replies.nil();
    } else {
      metrics.hits(1);
      metrics.failed(thread.get.number);
      replies.error(WRONG_TYPE);
    }
  }

  /** Runs all that was gathered: GETs one by one, anything else as one transaction. */
  finish(): void {
    const thread = this.#thread;
    const { batch } = thread;
    const { count } = batch;
    if (count === 0) return;
    if (batch.isReads) {
      for (let i = 0; i < count; i++) this.#get(batch.requests[i]);
      thread.metrics.count(thread.get.number, count);
    } else {
      this.#runAll(count);
    }
    batch.clear();
  }

  #runAll(count: number): void {
    const thread = this.#thread;
    const { commands } = thread.batch;
    if (!this.#runTogether(0, count)) {
      // Together they could not: then those fail that do so alone.
      for (let i = 0; i < count; i++) this.#runTogether(i, i + 1);
    }
    for (let i = 0; i < count; i++) thread.metrics.count(commands[i].number);
    // A key that was gone for these must not be there again for those that follow.
    thread.timeMs = thread.keys.nowMs;
  }

  /** Some of the batch in one transaction; false if that failed, and there are several. */
  #runTogether(first: number, end: number): boolean {
    const mark = this.#replies.length;
    this.#mark = mark;
    this.#first = first;
    this.#end = end;
    try {
      this.#thread.keys.run(runBatched, this);
    } catch (error) {
      this.#replies.rewind(mark);
      this.#thread.noteStuck(error);
      if (end - first > 1 && isOfStore(error)) return false;
      this.#refuse(this.#thread.batch.commands[first], error);
      return true;
    }
    this.#committed();
    return true;
  }

  /** For a batch's transaction. */
  runBatched(): void {
    const { batch } = this.#thread;
    const end = this.#end;
    this.#begin();
    for (let i = this.#first; i < end; i++) this.#runInside(batch.requests[i], batch.commands[i]);
  }

  /** An attempt at a transaction: what another one did to the replies is undone. */
  #begin(): void {
    this.#replies.rewind(this.#mark);
    if (this.#failures.length > 0) this.#failures.length = 0;
  }

  /** For a transaction's body: runs one command of it. */
  #runInside(request: Request, found: Registered): void {
    const thread = this.#thread;
    if (found === thread.set && request.count === 3) this.#set(request);
    else if (found === thread.unwatch) this.#replies.ok();
    else this.#run(request, found);
  }

  #set(request: Request): void {
    const { keys, key } = this.#thread;
    const { bytes, starts, ends } = request;
    key.set(bytes, starts[1], ends[1]);
    keys.value.set(bytes, starts[2], ends[2]);
    keys.putSlice(key, STRING, 0);
    this.#replies.ok();
  }

  #run(request: Request, found: Registered): void {
    const replies = this.#replies;
    const before = replies.length;
    this.#call.request = request;
    try {
      found.run(this.#call);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      this.#failures.push(found);
      replies.rewind(before);
      replies.error(error.message, "latin1");
    }
  }

  #serveAlone(request: Request): void {
    const thread = this.#thread;
    const parent = thread.registry.find(request);
    if (parent === undefined) {
      this.#reject(unknownCommand(request), request);
      return;
    }
    const hasChoice = parent.subcommands !== undefined && request.count > 1;
    const found = hasChoice ? subcommandOf(parent, request) : parent;
    if (found === undefined) {
      this.#reject(unknownSubcommand(parent, request), request);
    } else if (!found.takes(request.count)) {
      this.#reject(wrongArity(found.fullName), request);
    } else if (!this.#isAuthenticated && !found.needsNoPassword) {
      this.#reject(NO_PASSWORD_GIVEN, request);
    } else {
      this.#session.lastCommand = found.fullName;
      this.#carryOut(request, found);
    }
  }

  #carryOut(request: Request, found: Registered): void {
    const isLater = this.transaction.isOpen && !OUTSIDE_MULTI.has(found.fullName);
    if (isLater) {
      this.#queue(request, found);
      return;
    }
    if (found.runsInStore) {
      this.#thread.batch.add(request, found);
      this.finish();
      return;
    }
    this.#thread.metrics.count(found.number);
    switch (found.fullName) {
      case "multi":
        this.#multi();
        break;
      case "exec":
        this.#exec();
        break;
      case "discard":
        this.#discard();
        break;
      case "watch":
        this.#watch(request);
        break;
      case "unwatch":
        this.#unwatch();
        break;
      default:
        this.#runBetween(request, found);
    }
  }

  #runBetween(request: Request, found: Registered): void {
    const before = this.#replies.length;
    this.#mark = before;
    this.#begin();
    // Of the last transaction, which may be another's: this one may have none.
    this.#thread.keys.tx.epoch = 0;
    try {
      this.#run(request, found);
    } catch (error) {
      this.#replies.rewind(before);
      this.#refuse(found, error);
      return;
    }
    this.#committed();
  }

  #multi(): void {
    if (this.transaction.isOpen) {
      this.#replies.error("ERR MULTI calls can not be nested");
      return;
    }
    this.transaction.begin();
    this.#isPlain = false;
    this.#replies.ok();
  }

  #queue(request: Request, found: Registered): void {
    const { queue } = this.transaction;
    const { count, starts, ends } = request;
    const bytes = queue.bytes + ends[count - 1] - starts[0];
    if (queue.length >= this.#thread.maxPipeline || bytes > MAX_QUEUED_BYTES) {
      this.#reject("ERR too many commands in MULTI: EXEC will be refused", request);
      return;
    }
    this.transaction.add(request, found);
    this.#replies.simple("QUEUED");
  }

  #discard(): void {
    if (!this.transaction.isOpen) {
      this.#replies.error("ERR DISCARD without MULTI");
      return;
    }
    this.endTransaction();
    this.#replies.ok();
  }

  #watch(request: Request): void {
    if (this.transaction.isOpen) {
      this.#replies.error("ERR WATCH inside MULTI is not allowed");
      return;
    }
    const { bytes, starts, ends, count } = request;
    if (!this.transaction.mayWatch(count - 1)) {
      this.#replies.error("ERR too many watched keys");
      return;
    }
    const wanted: Buffer[] = [];
    for (let i = 1; i < count; i++) wanted.push(bytes.subarray(starts[i], ends[i]));
    try {
      this.transaction.watch(this.#thread.keys, wanted);
      this.#replies.ok();
    } catch (error) {
      this.#refuse(undefined, error);
    }
  }

  #unwatch(): void {
    this.transaction.unwatch();
    this.#replies.ok();
  }

  /** All queued commands in one transaction, if the watched keys are as they were. */
  #exec(): void {
    const replies = this.#replies;
    const transaction = this.transaction;
    if (!transaction.isOpen) {
      replies.error("ERR EXEC without MULTI");
      return;
    }
    const mark = replies.length;
    this.#mark = mark;
    try {
      if (transaction.isSpoilt) replies.error(ABORTED);
      else this.#runQueue();
    } catch (error) {
      replies.rewind(mark);
      this.#refuse(undefined, error);
    }
    this.endTransaction();
  }

  #runQueue(): void {
    const { keys, metrics } = this.#thread;
    keys.run(runQueued, this);
    this.#thread.timeMs = keys.nowMs;
    if (this.#isAborted) this.#replies.nilArray();
    else for (const { number } of this.transaction.queue.commands) metrics.count(number);
    this.#committed();
  }

  /** For EXEC's transaction. */
  runQueue(): void {
    const { queue } = this.transaction;
    this.#begin();
    this.#isAborted = !this.transaction.isUnchanged(this.#thread.keys);
    if (this.#isAborted) return;
    this.#replies.array(queue.length);
    const { requests, commands, length } = queue;
    for (let i = 0; i < length; i++) this.#runInside(requests[i], commands[i]);
  }

  /** Forgets MULTI and WATCH. */
  endTransaction(): void {
    this.transaction.end();
    this.#isPlain = this.#isAuthenticated;
  }

  /** An error that says why a request was not even begun. */
  #reject(text: string, request: Request): void {
    if (isFromBrowser(request)) {
      this.#session.closeAfterReply();
      return;
    }
    if (this.transaction.isOpen) this.transaction.isSpoilt = true;
    this.#replies.error(text, "latin1");
  }

  /** An error of the store. */
  #refuse(found: Registered | undefined, error: unknown): void {
    if (found !== undefined) this.#thread.metrics.failed(found.number);
    this.#thread.noteStuck(error);
    this.#replies.error(errorReply(error));
  }

  /** Counts errors; where replies wait for the disk, what was just committed is to be waited for. */
  #committed(): void {
    const failures = this.#failures;
    for (let i = 0; i < failures.length; i++) this.#thread.metrics.failed(failures[i].number);
    if (this.#thread.waits) this.epoch = Math.max(this.epoch, this.#thread.keys.tx.epoch);
  }
}

/** The body of a batch's transaction. */
function runBatched(conversation: Conversation): void {
  conversation.runBatched();
}

function runQueued(conversation: Conversation): void {
  conversation.runQueue();
}

const GET = 0x676574;
const SET = 0x736574;
const LOWER = 0x202020;

/** Whether a request is that of the two quickest commands: a name of three letters, as a number. */
function isCalled(request: Request, name: number, count: number): boolean {
  const start = request.starts[0];
  if (request.count !== count || request.ends[0] - start !== 3) return false;
  const { bytes } = request;
  const letters = (bytes[start] << 16) | (bytes[start + 1] << 8) | bytes[start + 2];
  return (letters | LOWER) === name;
}

/** A web page that makes a browser talk to this port: as Redis does, it gets no answer. */
function isFromBrowser({ bytes, starts, ends }: Request): boolean {
  const first = bytes.toString("latin1", starts[0], Math.min(ends[0], starts[0] + 5)).toLowerCase();
  return first === "post" || first === "host:";
}
