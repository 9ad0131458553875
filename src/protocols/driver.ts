/**
 * Runs coroutines over a fabric. Each batch that a coroutine yields is sent at once, and so leaves
 * with what others send in the same turn; the coroutine goes on when all of the batch has ended.
 *
 * Messages that were lost are sent again, after a pause that grows. Whoever serves them must
 * therefore be idempotent (names.ts). An insistent message is sent until it is answered: past the
 * point where a transaction can only go on, there is nothing else to do. Others end when the
 * coroutine's time is over, answered or not; a reply that comes later is not heard.
 *
 * A message to the own node is served here, through the same bytes, without the fabric.
 *
 * A coroutine may belong to one configuration: then nothing of it is sent in another. What it has read at
 * one node and validates there later means something only while the same nodes have the same data.
 */

import type { ConfigurationId, Endpoint, Request, Service } from "../fabric/fabric.ts";
import { SituError } from "../runtime/errors.ts";
import { RESEND_MAX_MS, RESEND_MIN_MS } from "../runtime/limits.ts";
import { Deadlines, type Timed } from "./deadlines.ts";
import { Loopback } from "./loopback.ts";
import { type Batch, type Exchange, isLost, type Routine, type Waiting } from "./message.ts";

export class Driver {
  readonly endpoint: Endpoint;
  readonly deadlines: Deadlines;
  /** Batches that left, for those who count round trips; only of those that went elsewhere. */
  roundTrips = 0;
  messages = 0;
  /** Told of each request that failed for a reason that a change of the configuration may have. */
  troubled: ((request: Request, why: SituError) => void) | undefined;
  readonly #loopback: Loopback | undefined;
  readonly #running = new Set<Run<unknown>>();
  /** What is sent again soon. */
  readonly #paused = new Set<Pause>();
  #isClosed = false;

  readonly #isServedHere: (kind: number) => boolean;

  /**
   * `service` serves messages to the own node; clients have none. Kinds that another thread of the
   * node must serve go over the endpoint.
   */
  constructor(
    endpoint: Endpoint,
    service?: Service,
    isServedHere: (kind: number) => boolean = everything,
  ) {
    this.endpoint = endpoint;
    this.deadlines = new Deadlines(endpoint.clock);
    this.#isServedHere = isServedHere;
    if (service !== undefined) this.#loopback = new Loopback(endpoint.self, service);
  }

  /** How many coroutines run. */
  get running(): number {
    return this.#running.size;
  }

  /**
   * Runs a coroutine. Exactly one of the two is called, perhaps before this returns. With a `configurationId`,
   * its messages fail with SITU_STALE_CONFIGURATION once this end has another one.
   */
  run<T>(
    routine: Routine<T>,
    timeoutMs: number,
    done: (result: T) => void,
    failed: (error: unknown) => void,
    configurationId?: ConfigurationId,
  ): void {
    const run = new Run(this, routine, timeoutMs, done, failed, configurationId);
    this.#running.add(run as Run<unknown>);
    run.resume();
    if (timeoutMs > 0 && this.#running.has(run as Run<unknown>)) this.deadlines.add(run);
  }

  /** The same as a promise, where a few more microseconds do not matter. */
  start<T>(routine: Routine<T>, timeoutMs: number, configurationId?: ConfigurationId): Promise<T> {
    return new Promise((resolve, reject) => {
      this.run(routine, timeoutMs, resolve, reject, configurationId);
    });
  }

  /** Runs one that nobody waits for and that cannot fail but by a bug; it has no time limit of its own. */
  detach(routine: Routine<unknown>): void {
    this.run(routine, 0, ignore, rethrow);
  }

  ended(run: Run<unknown>): void {
    this.#running.delete(run);
    this.deadlines.delete(run);
  }

  send(message: Exchange): void {
    message.attempts++;
    message.configurationId = this.endpoint.configurationId;
    if (this.#isClosed) {
      // Not even to the own node: its memory may be another's by now.
      message.failed(closed());
      return;
    }
    if (
      message.to === this.endpoint.self &&
      this.#loopback !== undefined &&
      this.#isServedHere(message.kind)
    ) {
      this.#loopback.serve(message);
    } else {
      this.messages++;
      this.endpoint.send(message.to, message);
    }
  }

  count(batch: Batch): void {
    const { self } = this.endpoint;
    if (batch.some(({ to }) => to !== self)) this.roundTrips++;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends a message again after a pause. */
  sendLater(message: Exchange, run: Run<unknown>): void {
    const pauseMs = Math.min(RESEND_MIN_MS * 2 ** Math.min(message.attempts, 10), RESEND_MAX_MS);
    const pause: Pause = { message, run };
    this.#paused.add(pause);
    this.endpoint.clock.after(pauseMs, () => {
      if (this.#paused.delete(pause)) this.#sendAgain(pause);
    });
  }

  /** What was refused may be served now: sends all of it again, without the rest of its pause. */
  hurry(): void {
    const paused = [...this.#paused];
    this.#paused.clear();
    for (const pause of paused) {
      pause.message.attempts = 0;
      this.#sendAgain(pause);
    }
  }

  #sendAgain({ message, run }: Pause): void {
    // It may have ended meanwhile, with the time of the coroutine.
    if (message.waiting !== run) return;
    message.error = undefined;
    run.send(message);
  }

  /** Coroutines that run end with SITU_CLOSED as soon as what they wait for ends. */
  close(): void {
    this.#isClosed = true;
  }
}

interface Pause {
  readonly message: Exchange;
  readonly run: Run<unknown>;
}

class Run<T> implements Waiting, Timed {
  readonly #driver: Driver;
  readonly #routine: Routine<T>;
  /** 0 if it has none: then what is not insistent is sent once. */
  readonly deadlineMs: number;
  readonly #done: (result: T) => void;
  readonly #failed: (error: unknown) => void;
  readonly #configurationId: ConfigurationId | undefined;
  #batch: Batch = [];
  #pending = 0;
  #isSending = false;
  #isLate = false;

  constructor(
    driver: Driver,
    routine: Routine<T>,
    timeoutMs: number,
    done: (result: T) => void,
    failed: (error: unknown) => void,
    configurationId: ConfigurationId | undefined,
  ) {
    this.#driver = driver;
    this.#configurationId = configurationId;
    this.#routine = routine;
    this.deadlineMs = timeoutMs > 0 ? driver.endpoint.clock.nowMs() + timeoutMs : 0;
    this.#done = done;
    this.#failed = failed;
  }

  /** Runs the coroutine up to the first batch that does not end at once. */
  resume(): void {
    for (;;) {
      let step: IteratorResult<Batch, T>;
      try {
        step = this.#routine.next();
      } catch (error) {
        this.#driver.ended(this as Run<unknown>);
        this.#failed(error);
        return;
      }
      if (step.done) {
        this.#driver.ended(this as Run<unknown>);
        this.#done(step.value);
        return;
      }
      const batch = step.value;
      this.#batch = batch;
      this.#pending = batch.length;
      this.#driver.count(batch);
      this.#isSending = true;
      for (const message of batch) {
        message.waiting = this;
        message.error = undefined;
        message.attempts = 0;
        if (this.#isLate && !message.isInsistent) message.failed(tooLate(message));
        else this.send(message);
      }
      this.#isSending = false;
      if (this.#pending > 0) return;
    }
  }

  send(message: Exchange): void {
    if (!this.#isSuperseded) this.#driver.send(message);
    else message.failed(superseded(this.#driver.endpoint.configurationId));
  }

  get #isSuperseded(): boolean {
    const own = this.#configurationId;
    return own !== undefined && own !== this.#driver.endpoint.configurationId;
  }

  ended(message: Exchange): void {
    const { error } = message;
    if (error !== undefined) this.#driver.troubled?.(message, error);
    if (error !== undefined && isLost(error) && this.#sendsAgain(message)) return;
    message.waiting = undefined;
    if (--this.#pending === 0 && !this.#isSending) this.resume();
  }

  late(): void {
    this.#isLate = true;
    for (const message of this.#batch) {
      if (message.waiting === this && !message.isInsistent) message.failed(tooLate(message));
    }
  }

  #sendsAgain(message: Exchange): boolean {
    const { clock } = this.#driver.endpoint;
    if (this.#driver.isClosed) {
      message.error = closed();
      return false;
    }
    if (this.#isSuperseded) {
      message.error = superseded(this.#driver.endpoint.configurationId);
      return false;
    }
    if (!message.isInsistent && (this.#isLate || clock.nowMs() >= this.deadlineMs)) return false;
    this.#driver.sendLater(message, this as Run<unknown>);
    return true;
  }
}

function tooLate({ to, error }: Exchange): SituError {
  if (error !== undefined) return error;
  return new SituError("SITU_LOST", `node ${to} did not answer in time`);
}

function closed(): SituError {
  return new SituError("SITU_CLOSED", "this end of the fabric is being closed");
}

function superseded(configurationId: ConfigurationId): SituError {
  return new SituError(
    "SITU_STALE_CONFIGURATION",
    `this end has configuration ${configurationId} by now`,
  );
}

function ignore(): void {}

export function rethrow(error: unknown): never {
  throw error;
}

function everything(): boolean {
  return true;
}
