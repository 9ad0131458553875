/**
 * What a client's requests do: each is found, checked as Redis checks it, and run. Requests that came
 * together run together (batch.ts); reads of single keys run without a transaction, as they are lock-free;
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
import { ReplyError, wrongArity } from "./reply-error.ts";
import type { SessionState } from "./session-state.ts";
import type { RedisThread } from "./thread.ts";
import { TransactionState } from "./transaction-state.ts";

const NO_PASSWORD_GIVEN = "NOAUTH Authentication required.";
/** What is done at once also after MULTI. */
const OUTSIDE_MULTI = new Set(["multi", "exec", "discard", "watch", "quit", "reset"]);
const ABORTED = "EXECABORT Transaction discarded because of previous errors.";

export class Conversation {
  readonly transaction = new TransactionState();
  /** The last epoch that a reply waits for, where replies wait for the disk. */
  epoch = 0;
  readonly #thread: RedisThread;
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

  constructor(thread: RedisThread, session: SessionState) {
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
      const found = thread.registry.find(request);
      if (found?.runsInStore && found.takes(request.count)) {
        if (batch.isReads && !found.isRead) this.finish();
        batch.add(request, found);
        const isEnough = batch.isReads && batch.count >= thread.readsAtOnce;
        if (isEnough || batch.isFull) this.finish();
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

  /** Runs all that was gathered: reads one by one, anything else as one transaction. */
  finish(): void {
    const { batch } = this.#thread;
    const { count } = batch;
    if (count === 0) return;
    if (batch.isReads) this.#readAll(count);
    else this.#runAll(count);
    batch.clear();
  }

  /**
   * Without a transaction: each sees what was committed when it looked. They are called from here and
   * not by `#run`, which meets so many commands that V8 would not inline any of them.
   */
  #readAll(count: number): void {
    const replies = this.#replies;
    const call = this.#call;
    const { batch, metrics } = this.#thread;
    const { requests, commands } = batch;
    this.#mark = replies.length;
    this.#begin();
    for (let i = 0; i < count; i++) {
      const before = replies.length;
      const found = commands[i];
      call.request = requests[i];
      try {
        found.run(call);
      } catch (error) {
        replies.rewind(before);
        if (error instanceof ReplyError) this.#answer(found, error);
        else this.#refuse(found, error);
      }
      metrics.count(found.number);
    }
    this.#countFailures();
  }

  #runAll(count: number): void {
    const thread = this.#thread;
    const { commands } = thread.batch;
    if (!this.#runTogether(0, count)) {
      // Together they could not: then those fail that do so alone.
      for (let i = 0; i < count; i++) this.#runTogether(i, i + 1);
    }
    for (let i = 0; i < count; i++) thread.metrics.count(commands[i].number);
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
    for (let i = this.#first; i < end; i++) this.#run(batch.requests[i], batch.commands[i]);
  }

  /** An attempt at a transaction: what another one did to the replies is undone. */
  #begin(): void {
    this.#replies.rewind(this.#mark);
    if (this.#failures.length > 0) this.#failures.length = 0;
  }

  /** Runs one command; what it refuses becomes its reply. */
  #run(request: Request, found: Registered): void {
    const replies = this.#replies;
    const before = replies.length;
    this.#call.request = request;
    try {
      found.run(this.#call);
    } catch (error) {
      if (!(error instanceof ReplyError)) throw error;
      replies.rewind(before);
      this.#answer(found, error);
    }
  }

  /** A command's own error. */
  #answer(found: Registered, error: ReplyError): void {
    this.#failures.push(found);
    this.#replies.error(error.message, "latin1");
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
    for (let i = 0; i < length; i++) this.#run(requests[i], commands[i]);
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

  #countFailures(): void {
    const failures = this.#failures;
    for (let i = 0; i < failures.length; i++) this.#thread.metrics.failed(failures[i].number);
  }

  /** Counts errors; where replies wait for the disk, what was just committed is to be waited for. */
  #committed(): void {
    this.#countFailures();
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

/** A web page that makes a browser talk to this port: as Redis does, it gets no answer. */
function isFromBrowser({ bytes, starts, ends }: Request): boolean {
  const first = bytes.toString("latin1", starts[0], Math.min(ends[0], starts[0] + 5)).toLowerCase();
  return first === "post" || first === "host:";
}
